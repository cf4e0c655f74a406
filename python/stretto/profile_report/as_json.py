"""A profile as JSON: what both pages show, for programs."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from stretto.profile_model import Profile

SCHEMA = 1  # docs/profiling.md describes it
MOST_ROWS = 100_000  # of a table; the longest of them are thinned by the analyses already


def as_json(profile: Profile) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "folder": profile.folder,
        "job": profile.job,
        "command": profile.command,
        "mode": profile.mode,
        "started": profile.started,
        "wall_seconds": _plain(profile.wall_seconds),
        "world_size": profile.world_size,
        "complete": profile.complete,
        "verdict": [asdict(one) | {"severity": one.severity.value} for one in profile.verdict],
        "overhead": {key: _plain(value) for key, value in asdict(profile.overhead).items()} if profile.overhead else None,
        "problems": profile.problems,
        "unavailable": profile.unavailable,
        "tables": {
            name: [{key: _plain(value) for key, value in row.items()} for row in table.head(MOST_ROWS).iter_rows(named=True)]
            for name, table in profile.tables.items()
        },
    }


def _plain(value: Any) -> Any:
    """JSON has no NaN and no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
