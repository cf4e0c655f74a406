"""Clocks: a process's ticks on the job's common time line.

The common line is the reference clock of the trace format (world rank 0's node), in seconds. Between two synchronisations a clock
is taken to drift evenly (Hunold and Carpen-Amarie 2018), so that their error bounds hold all the time; beyond the last one it may
drift by `DRIFT`. Processes of one node read the same counter, so that one of them speaks for those that left no entry.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto.trace import Header, Trace

DRIFT = 1e-5  # of two nodes' clocks against one another, in seconds per second: what is left unsaid by one synchronisation
UNKNOWN = math.inf  # error of a clock that was never compared

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Timeline:
    """Ticks to seconds: piecewise linear through `ticks` (counted from `base`) and `seconds`, one `tick` long outside."""

    base: int
    ticks: Array
    seconds: Array
    tick: float  # seconds; 0: unknown
    error: float  # bound against the reference clock, in seconds

    def at(self, ticks: Any) -> Any:
        """Seconds of one or many absolute tick counts."""
        if isinstance(ticks, np.ndarray):
            return self._map((ticks - np.uint64(self.base)).view(np.int64).astype(np.float64))
        return float(self._map(np.array([(int(ticks) - self.base)], np.float64))[0])

    def _map(self, since: Array) -> Array:
        first, last = self.ticks[0], self.ticks[-1]
        if len(self.ticks) == 1:
            return np.asarray(self.seconds[0] + (since - first) * self.tick)
        if len(self.ticks) == 2:
            inside = self.seconds[0] + (since - first) * ((self.seconds[1] - self.seconds[0]) / (last - first))
        else:
            inside = np.interp(since, self.ticks, self.seconds)
        if len(since) and (since.min() < first or since.max() > last):
            inside = np.where(since < first, self.seconds[0] + (since - first) * self.tick, inside)
            inside = np.where(since > last, self.seconds[-1] + (since - last) * self.tick, inside)
        return np.asarray(inside)

    def moved(self, seconds: float) -> Timeline:
        return Timeline(self.base, self.ticks, self.seconds + seconds, self.tick, self.error)


def same_counter(one: Header, other: Header) -> bool:
    """True where both processes read one counter: on one host, and one node where that is known."""
    nodes_agree = one.node == other.node or one.node < 0 or other.node < 0
    return one.host == other.host and one.clock == other.clock and nodes_agree and bool(one.host)


def timelines(traces: list[Trace], problems: list[str]) -> list[Timeline]:
    """A time line for each trace; `problems` gains a line where some could not be compared."""
    own = [_synchronised(trace, problems) or _reference(trace.header) for trace in traces]
    if traces and not any(own):
        first = min(range(len(traces)), key=lambda number: traces[number].header.world_rank & 0xFFFFFFFF)
        own[first] = _alone(traces[first].header)
    lines = [line or _borrowed(trace, traces, own) for trace, line in zip(traces, own, strict=True)]
    unknown = sum(line.error == UNKNOWN for line in lines)
    if unknown:
        problems.append(
            f"the clocks of {unknown} processes were never compared with rank 0's: their arrival times are by wall clock"
        )
    return lines


def _synchronised(trace: Trace, problems: list[str]) -> Timeline | None:
    """From the process's own clock entries."""
    header, rate = trace.header, _rate(trace)
    entries = trace.clock[np.argsort(trace.clock["ticks"], kind="stable")]
    since = (entries["ticks"] - np.uint64(header.start_ticks)).view(np.int64).astype(np.float64)
    seconds = entries["reference_ns"].astype(np.float64) * 1e-9
    errors = entries["error_ns"].astype(np.float64) * 1e-9
    fits = _plausible(since, seconds, errors, rate)
    if not fits.all():
        problems.append(f"{trace.path.name}: {int((~fits).sum())} clock entries that do not fit its clock were left out")
        since, seconds, errors = since[fits], seconds[fits], errors[fits]
    if not len(since):
        return None
    error = float(errors.max())
    if error > 0:
        reached = max(header.last_ticks, header.finalize_ticks, header.start_ticks) - header.start_ticks
        error += DRIFT * max(0.0, reached - float(since[-1])) * rate
    return Timeline(header.start_ticks, since, seconds, rate, error)


def _rate(trace: Trace) -> float:
    """Seconds per tick: by the header, else by the synchronisations, else by what the clock is."""
    rate = trace.header.seconds_per_tick()
    if rate or len(trace.clock) < 2:
        return rate or (1e-9 if trace.header.clock == "CLOCK_MONOTONIC" else 0.0)
    ticks, ns = (float(trace.clock[name].max() - trace.clock[name].min()) for name in ("ticks", "reference_ns"))
    return ns / ticks * 1e-9 if ticks > 0 else 0.0


def _plausible(since: Array, seconds: Array, errors: Array, rate: float) -> Array:
    """Entries that follow the first one at about the clock's own rate."""
    fits = np.isfinite(seconds) & (errors < 1e6) & (np.abs(since) < 2.0**62)
    if fits.any() and rate > 0:
        first = int(np.flatnonzero(fits)[0])
        expected = seconds[first] + (since - since[first]) * rate
        fits &= np.abs(seconds - expected) <= 1e-3 * (since - since[first]) * rate + 10 * (errors + errors[first]) + 1e-6
        kept = np.flatnonzero(fits)
        for values in (since[kept], seconds[kept]):
            fits[kept[1:]] &= values[1:] > np.maximum.accumulate(values)[:-1]
    return fits


def _reference(header: Header) -> Timeline | None:
    """World rank 0 is what the others compare with."""
    return _alone(header) if header.world_rank == 0 and not header.library.startswith("NCCL") else None


def _alone(header: Header) -> Timeline:
    return Timeline(header.start_ticks, np.zeros(1), np.zeros(1), header.seconds_per_tick(), 0.0)


def _borrowed(trace: Trace, traces: list[Trace], lines: list[Timeline | None]) -> Timeline:
    """From a process that reads the same counter, else from the wall clock."""
    header = trace.header
    known = [(other.header, line) for other, line in zip(traces, lines, strict=True) if line is not None]
    for other, line in known:
        if same_counter(header, other):
            offset = float(other.start_ticks - header.start_ticks)
            return Timeline(
                header.start_ticks, line.ticks + offset, line.seconds, line.tick or header.seconds_per_tick(), line.error
            )
    other, line = known[0]
    start = line.at(other.start_ticks) + (header.start_realtime_ns - other.start_realtime_ns) * 1e-9
    return Timeline(header.start_ticks, np.zeros(1), np.array([start]), header.seconds_per_tick(), UNKNOWN)
