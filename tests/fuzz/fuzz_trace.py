#!/usr/bin/env python3
"""Damages traces for as long as it is told to: `fuzz_trace.py --seconds 60 --seed 1`.

Reading and analysing them must end in a result or in one clear line, within the memory and time that the file's size allows.
Seeds are the example traces of tests/golden and those of tests/python/trace_writer.py. What failed is kept in --keep, with the
seed of its round in its name.
"""

from __future__ import annotations

import argparse
import random
import resource
import struct
import sys
import tempfile
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "python")]
import trace_writer as writer  # noqa: E402
from stretto import trace  # noqa: E402
from stretto.errors import StrettoError  # noqa: E402
from stretto.profile import analyse  # noqa: E402

WORDS = (0, 1, 2, 48, 63, 64, 255, 4095, 4096, 4097, 65535, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)
MOST_SECONDS = 20  # of one round: the seeds have some hundred kilobytes
MOST_BYTES = 2 << 30  # of address space: a reader that believes a wrong length fails


def seeds() -> list[list[bytes]]:
    """Folders of traces, each as a list of files."""
    golden = [[path.read_bytes()] for path in sorted((ROOT / "tests" / "golden" / "trace_v2").glob("*.trace"))]
    with tempfile.TemporaryDirectory() as name:
        writer.make_example(Path(name), ranks=3, iterations=30)
        example = [path.read_bytes() for path in sorted(Path(name).glob("*.trace"))]
    return [*golden, example]


def damaged(data: bytes, chance: random.Random) -> bytes:
    raw = bytearray(data)
    for _ in range(chance.choice((0, 1, 1, 2, 4, 16, 100))):
        kind = chance.randrange(5)
        page = chance.randrange(max(1, len(raw) // 4096)) * 4096
        if kind == 0:
            at = page + 4 * chance.randrange(40)
            raw[at : at + 4] = struct.pack("<I", chance.choice(WORDS))
        elif kind == 1:
            at = page + 8 * chance.randrange(20)
            raw[at : at + 8] = struct.pack("<Q", chance.choice(WORDS) << chance.choice((0, 0, 8, 32)))
        elif kind == 2:
            raw[chance.randrange(8, len(raw))] = chance.randrange(256)
        elif kind == 3:
            other = chance.randrange(max(1, len(raw) // 4096)) * 4096
            raw[page : page + 4096] = raw[other : other + 4096]
        else:
            at = chance.randrange(8, len(raw))
            raw[at : at + 64] = chance.randbytes(min(64, len(raw) - at))
    return bytes(raw[: chance.choice((len(raw), len(raw), chance.randrange(len(raw))))])


def survives(folder: Path) -> str:
    """Empty, or what went wrong."""
    begin = time.monotonic()
    try:
        for path in folder.glob("*.trace"):
            one = trace.read(path)
            for thread in one.event_threads():
                for _ in one.batches(thread, 100):
                    pass
        analyse(folder)
    except StrettoError as error:
        if "\n" in str(error):
            return f"more than one line: {error}"
    except Exception:
        return traceback.format_exc()
    spent = time.monotonic() - begin
    return f"took {spent:.1f} s" if spent > MOST_SECONDS else ""


def round_(seed: int, folders: list[list[bytes]], keep: Path) -> bool:
    chance = random.Random(seed)
    files = [damaged(one, chance) if chance.random() < 0.8 else one for one in chance.choice(folders)]
    with tempfile.TemporaryDirectory() as name:
        for number, data in enumerate(files):
            (Path(name) / f"rank-{number}.trace").write_bytes(data)
        wrong = survives(Path(name))
    if wrong:
        keep.mkdir(parents=True, exist_ok=True)
        for number, data in enumerate(files):
            (keep / f"{seed}-rank-{number}.trace").write_bytes(data)
        print(f"round {seed}: {wrong}")
    return not wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--keep", type=Path, default=Path("fuzz-failures"))
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    folders, seed, failed = seeds(), options.seed, 0
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        failed += not round_(seed, folders, options.keep)
        seed += 1
    print(f"{seed - options.seed} rounds from seed {options.seed}, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
