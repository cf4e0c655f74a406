"""`./dev build [PRESET]`: configure, compile (but for release also the tests), and for release put the preload libraries beside
the Python package."""

from __future__ import annotations

import json

from devkit.common import BUILD, ROOT, VENV, DevError, jobs, need, say
from devkit.setup import setup


def presets() -> list[str]:
    table = json.loads((ROOT / "CMakePresets.json").read_text())
    return [row["name"] for row in table["configurePresets"] if not row.get("hidden")]


def build(preset: str = "release", tests: bool = False) -> None:
    """Sets up first where that was not done. `tests`: of release, the test programs and micro-benchmarks too, and the preload
    libraries beside the package stay as they are, as jobs may be using them."""
    if preset not in presets():
        raise DevError(f"no preset {preset}; there are {', '.join(presets())}")
    if not (VENV / "bin" / "cmake").exists():
        setup()
    need(["cmake", "--preset", preset, "--log-level=WARNING"])
    targets = ["all", "stretto_tests"] if tests or preset != "release" else ["all"]
    need(["cmake", "--build", "--preset", preset, "-j", jobs(), "--target", *targets])
    if preset == "release" and not tests:
        need(["cmake", "--install", BUILD / preset, "--prefix", ROOT / "python", "--component", "preload", "--strip"])
        libraries = sorted(file.name for file in (ROOT / "python" / "stretto" / "lib").glob("*.so"))
        say(f"python/stretto/lib: {', '.join(libraries) or 'nothing (no preload target yet)'}")
