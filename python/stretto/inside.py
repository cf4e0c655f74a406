"""Asks the preload library of this very process: run as a program by `preload.ask`, with LD_PRELOAD set.

A request on standard input is a JSON list of calls, each a list: a function and what it needs; so is the answer. Nothing but
the standard library is imported.
"""

from __future__ import annotations

import ctypes
import json
import sys
from typing import Any


class Question(ctypes.Structure):
    """stretto_question of include/stretto/stretto.h."""

    _fields_ = (
        ("collective", ctypes.c_char_p),
        ("bytes", ctypes.c_ulonglong),
        ("ranks", ctypes.c_int),
        ("crowded", ctypes.c_int),
        ("arena", ctypes.c_int),
        ("library", ctypes.c_char_p),
        ("fresh", ctypes.c_int),
        ("nodes", ctypes.c_int),
    )


def text(library: ctypes.CDLL, name: str) -> str:
    function = getattr(library, name)
    function.restype = ctypes.c_char_p
    return (function() or b"").decode("utf-8", "replace")


def tuning(library: ctypes.CDLL) -> list[str]:
    """Where measured rules belong, the line they begin with, the machine in words."""
    told = [ctypes.c_char_p() for _ in range(3)]
    library.stretto_tuning(*map(ctypes.byref, told))
    return [(one.value or b"").decode("utf-8", "replace") for one in told]


def explain(library: ctypes.CDLL, rules: str | None, words: list[Any]) -> list[Any]:
    """(code, algorithm, line). `words`: collective, bytes, ranks, crowded, arena, library, fresh, nodes."""
    asked = Question(words[0].encode(), *words[1:5], words[5].encode(), *words[6:8])
    algorithm, line = ctypes.c_char_p(), ctypes.c_int()
    given = rules.encode() if rules is not None else None
    code = library.stretto_explain(given, ctypes.byref(asked), ctypes.byref(algorithm), ctypes.byref(line))
    return [code, (algorithm.value or b"").decode(), line.value]


def main() -> int:
    library = ctypes.CDLL(None)
    answers: list[Any] = []
    for name, *rest in json.load(sys.stdin):
        try:
            if name == "stretto_tuning":
                answers.append(tuning(library))
            elif name == "stretto_explain":
                answers.append(explain(library, *rest))
            else:
                answers.append(text(library, name))
        except AttributeError:
            answers.append(None)  # a library that lacks the function, or none at all
    json.dump(answers, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
