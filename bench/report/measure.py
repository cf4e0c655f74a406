#!/usr/bin/env python3
"""How fast a report's analyses are, and what memory they take: `measure.py FOLDER` with a folder of make_traces.py.

Prints one JSON object: events, seconds, events per second, peak resident memory in MiB (of a fresh process; what its imports
alone take is given apart), and what 100 million events would take at that rate. Memory is bounded by the blocks in flight and the
thinned samples, so it hardly grows with the events: it is measured, not extrapolated.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
GOAL_EVENTS, GOAL_SECONDS, GOAL_MIB = 100_000_000, 60, 4096


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    from stretto.profile import analyse

    imports = peak_mib()
    folder = Path(sys.argv[1])
    begin = time.perf_counter()
    profile = analyse(folder)
    seconds = time.perf_counter() - begin
    processor = time.process_time()
    events = int(profile.table("ranks")["events"].sum())
    result = {
        "events": events,
        "seconds": round(seconds, 2),
        "cpu_seconds": round(processor, 2),
        "cpus": len(os.sched_getaffinity(0)),
        "load_before": os.getloadavg()[0],
        "events_per_second": round(events / seconds),
        "peak_mib": round(peak_mib()),
        "imports_mib": round(imports),
        "seconds_for_100_million": round(GOAL_EVENTS / events * seconds, 1),
        "invocations": int(profile.table("arrival").filter(profile.table("arrival")["scope"] == "cluster")["invocations"].sum()),
        "goal": f"{GOAL_EVENTS} events in {GOAL_SECONDS} s and {GOAL_MIB} MiB",
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
