"""Rewrites a launcher's command line so that environment variables are set on the ranks, and only there.

What the user's line already says of LD_PRELOAD is merged: the user's libraries come first and are taken out of the line
where they stood, Stretto's comes last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from stretto.errors import StrettoError
from stretto.launchers import Style
from stretto.programs import options_end

PRELOAD = "LD_PRELOAD"


def merge(*preloads: str) -> str:
    """One LD_PRELOAD value: the entries in order, none twice."""
    entries = [entry for value in preloads for entry in value.replace(" ", ":").split(":") if entry]
    return ":".join(dict.fromkeys(entries))


def rewrite(
    style: Style, command: Sequence[str], libraries: str | Sequence[str], others: Mapping[str, str], env: Mapping[str, str]
) -> list[str]:
    """`command` (launcher first) with LD_PRELOAD=`libraries` and the variables in `others` set on all ranks.

    `env` is the environment the command will run in: its LD_PRELOAD is kept in front.
    """
    paths = [libraries] if isinstance(libraries, str) else list(libraries)
    for path in paths:
        if any(character in path for character in ": "):
            raise StrettoError(f"{path}: LD_PRELOAD cannot hold a path with a space or a colon; install Stretto elsewhere")
    library = ":".join(paths)
    launcher, *arguments = command
    return [launcher, *_REWRITE[style](_split(arguments, style), library, others, env)]


@dataclass(frozen=True, slots=True)
class _Context:
    """Of an MPMD line one of the parts between lone colons. Only the launcher's own options are looked at."""

    options: list[str]
    program: list[str]  # and its arguments


def _split(arguments: Sequence[str], style: Style) -> list[_Context]:
    parts: list[list[str]] = [[]]
    for word in arguments:
        if word == ":":
            parts.append([])
        else:
            parts[-1].append(word)
    ends = [options_end(part, letters=style is Style.SLURM) for part in parts]
    return [_Context(part[:end], part[end:]) for part, end in zip(parts, ends, strict=True)]


def _join(parts: Iterable[list[str]]) -> list[str]:
    words: list[str] = []
    for number, part in enumerate(parts):
        words += [":", *part] if number else part
    return words


def _openmpi(contexts: Sequence[_Context], library: str, others: Mapping[str, str], env: Mapping[str, str]) -> list[str]:
    return _join(_openmpi_context(context, library, others, env) for context in contexts)


def _openmpi_context(context: _Context, library: str, others: Mapping[str, str], env: Mapping[str, str]) -> list[str]:
    inherited = env.get(PRELOAD, "")
    words = context.options
    kept: list[str] = []
    users = ""
    position = 0
    while position < len(words):
        word, value = words[position], words[position + 1] if position + 1 < len(words) else ""
        if word in ("-x", "--x") and value.split("=", 1)[0] == PRELOAD:
            users = value.split("=", 1)[1] if "=" in value else inherited
            position += 2
            continue
        kept.append(word)
        position += 1
    preload = merge(users or inherited, library)
    added = [word for name, value in {PRELOAD: preload, **others}.items() for word in ("-x", f"{name}={value}")]
    return [*added, *kept, *context.program]


def _hydra(contexts: Sequence[_Context], library: str, others: Mapping[str, str], env: Mapping[str, str]) -> list[str]:
    """-genv holds for all contexts; a context's own -env wins over it and so must hold Stretto's library as well."""
    users = env.get(PRELOAD, "")
    parts: list[list[str]] = []
    for context in contexts:
        words = context.options
        kept: list[str] = []
        position = 0
        while position < len(words):
            word = words[position]
            name, value, length = _hydra_assignment(words, position)
            if name != PRELOAD:
                kept.append(word)
                position += 1
                continue
            if word.lstrip("-") == "genv":
                users = value
            else:
                kept += [word, PRELOAD, merge(value, library)]
            position += length
        parts.append([*kept, *context.program])
    added = [word for name, value in {PRELOAD: merge(users, library), **others}.items() for word in ("-genv", name, value)]
    return [*added, *_join(parts)]


def _hydra_assignment(words: Sequence[str], position: int) -> tuple[str, str, int]:
    """(name, value, words taken) of `-genv NAME value`, `-genv NAME=value` and -env alike; name empty for anything else."""
    following = list(words[position + 1 : position + 3])
    if words[position] not in ("-genv", "--genv", "-env", "--env") or not following:
        return "", "", 1
    if "=" in following[0]:
        name, value = following[0].split("=", 1)
        return name, value, 2
    return following[0], following[1] if len(following) == 2 else "", 3


def _slurm(contexts: Sequence[_Context], library: str, others: Mapping[str, str], env: Mapping[str, str]) -> list[str]:
    return _join(_slurm_context(context, library, others, env) for context in contexts)


def _slurm_context(context: _Context, library: str, others: Mapping[str, str], env: Mapping[str, str]) -> list[str]:
    exported = env.get("SLURM_EXPORT_ENV", "ALL")
    words = context.options
    kept: list[str] = []
    position = 0
    while position < len(words):
        word = words[position]
        if word.startswith("--export="):
            exported = word.split("=", 1)[1]
        elif word == "--export" and position + 1 < len(words):
            exported = words[position + 1]
            position += 1
        else:
            kept.append(word)
        position += 1
    return [f"--export={_slurm_export(exported, library, others, env)}", *kept, *context.program]


def _slurm_export(exported: str, library: str, others: Mapping[str, str], env: Mapping[str, str]) -> str:
    items = [item for item in exported.split(",") if item and item not in ("NONE", "NIL")]
    passed_on = "ALL" in items or PRELOAD in items
    preloads = [env.get(PRELOAD, "")] if passed_on else []
    preloads += [item.split("=", 1)[1] for item in items if item.startswith(f"{PRELOAD}=")]
    items = [item for item in items if item.split("=", 1)[0] != PRELOAD]
    added = [f"{name}={value}" for name, value in {PRELOAD: merge(*preloads, library), **others}.items()]
    unusable = next((item for item in added if "," in item), None)
    if unusable:
        raise StrettoError(f"{unusable}: srun's --export cannot hold a comma; work, install Stretto or set TMPDIR elsewhere")
    return ",".join(items + added)


_REWRITE = {Style.OPENMPI: _openmpi, Style.HYDRA: _hydra, Style.SLURM: _slurm}
