"""A headless browser for tests: what a page looks like once it is laid out."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
SECONDS = 120.0

# Opens everything that can be opened, then measures. It replaces the policy that forbids scripts, in the test's copy only.
MEASURE = """<script>
document.querySelectorAll("details").forEach(one => one.open = true);
const found = {overflow: document.documentElement.scrollWidth - innerWidth, title: document.title, figures: [], outside: [],
  wide: [], images: document.images.length, height: document.documentElement.scrollHeight};
document.querySelectorAll("main svg").forEach(svg => {
  const marks = svg.querySelectorAll("rect, path, image, line").length;
  const box = svg.getBoundingClientRect(), name = svg.querySelector("title").textContent;
  found.figures.push({name, marks, width: box.width, height: box.height});
  const view = svg.viewBox.baseVal;
  svg.querySelectorAll("text").forEach(text => {
    const at = text.getBBox();
    if (at.x < -1 || at.y < -1 || at.x + at.width > view.width + 1 || at.y + at.height > view.height + 1)
      found.outside.push([name, text.textContent, Math.round(at.x), Math.round(at.x + at.width), view.width]);
  });
});
document.querySelectorAll(".scroll").forEach(one => {
  if (one.scrollWidth > one.clientWidth + 1) found.wide.push([one.innerText.slice(0, 60), one.scrollWidth, one.clientWidth]);
});
document.documentElement.setAttribute("data-found", JSON.stringify(found));
</script>"""


def find() -> str:
    """The browser's path; empty where there is none."""
    return next((path for path in map(shutil.which, NAMES) if path), "")


def run(page: Path, *options: str) -> subprocess.CompletedProcess[str]:
    profile = tempfile.mkdtemp(prefix="stretto-browser-")
    fixed = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
    try:
        return subprocess.run(
            [find(), *fixed, f"--user-data-dir={profile}", *options, page.as_uri()],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=True,
        )
    finally:
        shutil.rmtree(profile, ignore_errors=True)


def measure(page: Path, width: int = 1366, height: int = 768) -> dict[str, Any]:
    """The layout of a page in a window of that size."""
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text(encoding="utf-8"))
    copy = page.with_name(f"measured-{page.name}")
    copy.write_text(text.replace("</body>", MEASURE + "</body>"), encoding="utf-8")
    done = run(copy, "--dump-dom", f"--window-size={width},{height}")
    match = re.search(r'data-found="([^"]*)"', done.stdout)
    assert match, f"the page was not laid out: {done.stderr[-2000:]}"
    found: dict[str, Any] = json.loads(match[1].replace("&quot;", '"').replace("&amp;", "&"))
    return found


def complaints(page: Path) -> list[str]:
    """What the page writes to the console."""
    done = run(page, "--dump-dom", "--enable-logging=stderr", "--log-level=0")
    return [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def screenshot(page: Path, target: Path, width: int = 1366, height: int = 900) -> bytes:
    run(page, f"--screenshot={target}", f"--window-size={width},{height}")
    return target.read_bytes()
