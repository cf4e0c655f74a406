"""Rewrites a launcher's command line so that environment variables are set on the ranks, and only there.

What the user's line already says of LD_PRELOAD is merged: the user's libraries come first and are taken out of the line
where they stood, Stretto's comes last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stretto.errors import StrettoError
from stretto.launchers import Style

PRELOAD = "LD_PRELOAD"


def merge(*preloads: str) -> str:
    """One LD_PRELOAD value: the entries in order, none twice."""
    entries = [entry for value in preloads for entry in value.replace(" ", ":").split(":") if entry]
    return ":".join(dict.fromkeys(entries))


def rewrite(
    style: Style,
    command: Sequence[str],
    library: str,
    others: Mapping[str, str],
    env: Mapping[str, str],
    more: Sequence[str] = (),
) -> list[str]:
    """`command` (launcher first) with LD_PRELOAD=`library` and `more` and the variables in `others` set on all ranks.

    `env` is the environment the command will run in: its LD_PRELOAD is kept in front.
    """
    for path in (library, *more):
        if any(character in path for character in ": "):
            raise StrettoError(f"{path}: LD_PRELOAD cannot hold a path with a space or a colon; install Stretto elsewhere")
    library = ":".join((library, *more))
    launcher, *arguments = command
    contexts = _split(arguments) if style is not Style.HYDRA else [list(arguments)]
    rewritten = [_CONTEXT[style](context, library, others, env) for context in contexts]
    words = [launcher]
    for number, context in enumerate(rewritten):
        words += [":", *context] if number else context
    return words


def _split(arguments: Sequence[str]) -> list[list[str]]:
    """The contexts of an MPMD line, which stand between lone colons."""
    contexts: list[list[str]] = [[]]
    for word in arguments:
        if word == ":":
            contexts.append([])
        else:
            contexts[-1].append(word)
    return contexts


def _openmpi(words: list[str], library: str, others: Mapping[str, str], env: Mapping[str, str]) -> list[str]:
    inherited = env.get(PRELOAD, "")
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
    return added + kept


def _hydra(words: list[str], library: str, others: Mapping[str, str], env: Mapping[str, str]) -> list[str]:
    """-genv holds for all contexts; a context's own -env wins over it and so must hold Stretto's library as well."""
    kept: list[str] = []
    users = env.get(PRELOAD, "")
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
    added = [word for name, value in {PRELOAD: merge(users, library), **others}.items() for word in ("-genv", name, value)]
    return added + kept


def _hydra_assignment(words: Sequence[str], position: int) -> tuple[str, str, int]:
    """(name, value, words taken) of `-genv NAME value`, `-genv NAME=value` and -env alike; name empty for anything else."""
    following = list(words[position + 1 : position + 3])
    if words[position] not in ("-genv", "--genv", "-env", "--env") or not following:
        return "", "", 1
    if "=" in following[0]:
        name, value = following[0].split("=", 1)
        return name, value, 2
    return following[0], following[1] if len(following) == 2 else "", 3


def _slurm(words: list[str], library: str, others: Mapping[str, str], env: Mapping[str, str]) -> list[str]:
    exported = env.get("SLURM_EXPORT_ENV", "ALL")
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
    return [f"--export={_slurm_export(exported, library, others, env)}", *kept]


def _slurm_export(exported: str, library: str, others: Mapping[str, str], env: Mapping[str, str]) -> str:
    items = [item for item in exported.split(",") if item and item not in ("NONE", "NIL")]
    passed_on = "ALL" in items or PRELOAD in items
    preloads = [env.get(PRELOAD, "")] if passed_on else []
    preloads += [item.split("=", 1)[1] for item in items if item.startswith(f"{PRELOAD}=")]
    items = [item for item in items if item.split("=", 1)[0] != PRELOAD]
    added = [f"{name}={value}" for name, value in {PRELOAD: merge(*preloads, library), **others}.items()]
    unusable = next((item for item in added if "," in item), None)
    if unusable:
        raise StrettoError(f"{unusable}: srun's --export cannot hold a comma; install Stretto or set TMPDIR elsewhere")
    return ",".join(items + added)


_CONTEXT = {Style.OPENMPI: _openmpi, Style.HYDRA: _hydra, Style.SLURM: _slurm}
