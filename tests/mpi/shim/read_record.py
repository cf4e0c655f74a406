"""Reads a record as docs/record_format.md specifies it; a second opinion on the files, independent of python/stretto."""

import dataclasses
import pathlib
import struct

HEADER = struct.Struct("<8sIIIiiiQQQQQQIIIIII128s64s192s")
KINDS = 32
NAME_BYTES = 40
ARRIVALS_AND_TURNS = 32 * 64 + 16 + 512 * 16  # bytes at the end
HEADER_FIELDS = (
    "magic version header_bytes stage world_rank world_size pid start_ticks start_ns last_ticks last_ns init_ns finalize_ns "
    "functions reasons algorithms blocks blocks_used accelerating mpi_library host verdict"
).split()
KIND_FIELDS = [f"{what}_{unit}" for what in ("accelerated", "declined") for unit in ("calls", "bytes", "ticks")]


@dataclasses.dataclass
class Record:
    header: dict
    functions: dict  # name -> (calls, ticks, bytes), summed over the threads
    kinds: list  # per kind a dict of KIND_FIELDS
    declines: list  # per kind {reason: count}
    ran: list  # per kind {algorithm: count}


def named(names, values):
    return dict(zip(names, values, strict=True))


def text(raw):
    return raw.split(b"\0", 1)[0].decode()


def read(path):
    data = pathlib.Path(path).read_bytes()
    header = named(HEADER_FIELDS, HEADER.unpack_from(data))
    assert header["magic"] == b"STRETTOR" and header["version"] == 4 and header["header_bytes"] == HEADER.size
    for key in ("mpi_library", "host", "verdict"):
        header[key] = text(header[key])
    at = HEADER.size
    tables = []
    for length in (header["functions"], header["reasons"], header["algorithms"]):
        tables.append([text(data[at + i * NAME_BYTES : at + (i + 1) * NAME_BYTES]) for i in range(length)])
        at += length * NAME_BYTES
    return Record(header, *sum_blocks(data, round_up(at), header, tables))


def round_up(value):
    return (value + 63) // 64 * 64


def sum_blocks(data, at, header, tables):
    functions, reasons, algorithms = map(len, tables)
    words = functions * 3 + KINDS * (6 + reasons + algorithms)
    stride = round_up(words * 8)
    assert len(data) == at + header["blocks"] * stride + ARRIVALS_AND_TURNS
    totals = [0] * words
    for block in range(header["blocks"]):
        values = struct.unpack_from(f"<{words}Q", data, at + block * stride)
        totals = [total + value for total, value in zip(totals, values, strict=True)]
    cells = [tuple(totals[3 * i : 3 * i + 3]) for i in range(functions)]
    rest = totals[3 * functions :]
    kinds = [named(KIND_FIELDS, rest[6 * k : 6 * k + 6]) for k in range(KINDS)]
    rest = rest[6 * KINDS :]
    declines = [named(tables[1], rest[reasons * k : reasons * (k + 1)]) for k in range(KINDS)]
    rest = rest[reasons * KINDS :]
    ran = [named(tables[2], rest[algorithms * k : algorithms * (k + 1)]) for k in range(KINDS)]
    return named(tables[0], cells), kinds, declines, ran
