#!/usr/bin/env python3
"""Writes python/stretto/data/takeover.json: what taking a collective over is worth, from a result of bench/run.py.

Per MPI, collective and size the worst (largest) ratio of Stretto's time to that of the MPI below it in the same run, and the
least time of Stretto's: so that what is derived from them is rather too little.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

SOURCE = Path("bench/results/intel-xeon-2core/collectives-quick.json")
TARGET = Path("python/stretto/data/takeover.json")


def table(result: dict[str, Any]) -> list[dict[str, Any]]:
    found: dict[tuple[str, str, int], list[tuple[float, float]]] = {}
    for cell in result["cells"]:
        for mpi, one in cell["stretto"].items():
            key = (mpi, cell["collective"], cell["bytes"])
            if one.get("in_run_ratio"):
                found.setdefault(key, []).append((one["in_run_ratio"], one["us"]))
    return [
        {"mpi": mpi, "collective": kind, "bytes": size, "ratio": max(r for r, _ in seen), "us": min(us for _, us in seen)}
        for (mpi, kind, size), seen in sorted(found.items())
    ]


def document(root: Path) -> str:
    result = json.loads((root / SOURCE).read_text())
    facts = {"source": str(SOURCE), "machine": result["machine"]["cpu"], "ranks": 2, "date": result["machine"]["date"]}
    rows = ",\n".join("    " + json.dumps(row) for row in table(result))
    return json.dumps(facts, indent=2)[:-2] + ',\n  "rows": [\n' + rows + "\n  ]\n}\n"


if __name__ == "__main__":
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    (root / TARGET).write_text(document(root))
