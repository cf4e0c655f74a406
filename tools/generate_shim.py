#!/usr/bin/env python3
"""Generates the wrappers of the preload libraries from src/shim/functions.txt.

    generate_shim.py TABLE --output FOLDER    C++ sources, version scripts and the list for the ABI check
    generate_shim.py TABLE --list             the wrapped functions by category, as Markdown

Nothing but the standard library is needed; CMake runs this at build time.
"""

from __future__ import annotations

import argparse
import pathlib
from typing import TypedDict

from shim_descriptors import descriptor
from shim_table import USED, Function, read_table
from shim_wrappers import FORTRAN_FORMS, NOTE, fortran_forms, fortran_source, fortran_wrapped, hook_of, wrappers_source

PUBLIC_INTERFACE = (
    "stretto_version",
    "stretto_settings",
    "stretto_accelerating",
    "stretto_algorithms",
    "stretto_default_rules",
    "stretto_tuning",
    "stretto_next_rules",
    "stretto_explain",
)


UNCOUNTED = ("MPI_Type_free",)  # wrapped by hand for what must be known of it
REVOKE = ("MPIX_Comm_revoke", "PMPIX_Comm_revoke")


class LibraryFacts(TypedDict):
    large: bool  # has _c forms
    since: str  # the newest functions exported
    fortran: str  # whose Fortran bindings are wrapped
    extensions: tuple[str, ...]  # beyond the standard, wrapped by hand


# library: which names of the table it exports, and which Fortran bindings of its MPI bypass the C functions MPI_X
LIBRARIES: dict[str, LibraryFacts] = {
    "ompi": {"large": False, "since": "4.0", "fortran": "ompi", "extensions": REVOKE},
    "ompi4": {"large": False, "since": "3.1", "fortran": "ompi", "extensions": ()},
    "mpich": {"large": True, "since": "5.0", "fortran": "mpich", "extensions": REVOKE},
    "mpich3": {"large": False, "since": "3.1", "fortran": "mpich", "extensions": REVOKE},
    "abi": {"large": True, "since": "5.0", "fortran": "", "extensions": ()},
}


def descriptors_source(functions: list[Function]) -> list[str]:
    lines = [NOTE + '#include "shim/profile/descriptor.hpp"', "", "namespace stretto::shim::profile {", ""]
    lines += ["const Descriptor descriptors[wrapped_count] = {"]
    lines += [descriptor(f) for f in functions if f.category != USED]
    return [*lines, "};", "", "}  // namespace stretto::shim::profile"]


def functions_header(functions: list[Function]) -> list[str]:
    wrapped = sum(f.category != USED for f in functions)
    lines = [
        NOTE + "// Included by shim/mpi.hpp only.",
        "#pragma once",
        "",
        "namespace stretto::shim {",
        "",
        f"inline constexpr uint32_t wrapped_count = {wrapped};  // these come first; their numbers are those of the record",
        f"inline constexpr uint32_t function_count = {len(functions)};",
        'extern const char* const function_names[function_count];  // "MPI_Send", ...',
        "",
        "struct Functions {",
    ]
    lines += [f"  static constexpr Function<{f.signature}, {number}> {f.short}{{}};" for number, f in enumerate(functions)]
    lines += ["};", "", "constexpr Functions mpi() { return {}; }", "", "namespace number {"]
    lines += [f"inline constexpr uint32_t {f.short} = {number};" for number, f in enumerate(functions)]
    lines += [
        "}  // namespace number",
        "",
        "// Which never wait for another process.",
        "constexpr bool is_local(uint32_t index) {",
        "  switch (index) {",
    ]
    lines += [f"    case number::{f.short}:" for f in functions if f.category != USED and f.local]
    lines += ["      return true;", "    default:", "      return false;", "  }", "}", "", "}  // namespace stretto::shim"]
    return lines


def names_source(functions: list[Function]) -> list[str]:
    lines = [
        NOTE + '#include "shim/mpi.hpp"',
        "",
        "namespace stretto::shim {",
        "",
        "const char* const function_names[function_count] = {",
    ]
    lines += [f'    "{f.name}",' for f in functions]
    return [*lines, "};", "", "}  // namespace stretto::shim"]


def exported(functions: list[Function], library: str) -> list[str]:
    """The names that a library exports, sorted."""
    facts = LIBRARIES[library]
    here = [f for f in functions if f.category != USED and f.since <= facts["since"] and (facts["large"] or not f.large)]
    in_fortran = fortran_wrapped(here, facts["fortran"]) + [f for f in here if "hand" in f.marks]
    names = {f.name for f in here} | {
        f.name.lower() + suffix for f in in_fortran for _, suffix in fortran_forms(f, facts["fortran"])
    }
    names |= {f"P{f.name}" for f in here} | {f"P{name}" for name in UNCOUNTED}
    return sorted(names | set(UNCOUNTED) | set(facts["extensions"]) | set(PUBLIC_INTERFACE))


def version_script(names: list[str]) -> list[str]:
    return ["{", "  global:", *(f"    {name};" for name in names), "  local: *;", "};"]


def where_found(function: Function) -> str:
    if function.large or "fortran" in function.marks:
        return "LARGE" if function.large else "FORTRAN"
    return "SINCE_" + function.since.replace(".", "_")


def abi_list(functions: list[Function]) -> list[str]:
    """ENTRY_<where found>(name) for each function: tests/mpi/shim/check_abi compares the types with a real mpi.h."""
    return [NOTE] + [f"ENTRY_{where_found(f)}({f.short})" for f in functions]


def markdown_list(functions: list[Function]) -> list[str]:
    lines: list[str] = []
    category = ""
    for function in functions:
        if function.category == USED or function.large:
            continue
        if function.category != category:
            category = function.category
            lines += ["", f"### {category.capitalize()}", ""]
        large = any(f.name == function.name + "_c" for f in functions)
        notes = (
            ["`_c`"] * large
            + [f"MPI {function.since}"] * (function.since > "3.1")
            + ["may be taken over"] * bool(hook_of(function) or "prepared" in function.marks)
        )
        lines.append(f"- `{function.name}`" + (f" ({', '.join(notes)})" if notes else ""))
    return lines[1:]


def write(path: pathlib.Path, lines: list[str]) -> None:
    """Leaves an unchanged file alone, so that nothing is compiled again."""
    text = "\n".join(lines) + "\n"
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path, help="folder for the generated files")
    parser.add_argument("--list", action="store_true", help="print the wrapped functions as Markdown")
    options = parser.parse_args()
    functions = read_table(options.table)
    if options.list:
        print("\n".join(markdown_list(functions)))
    if options.output:
        write(options.output / "shim/functions.hpp", functions_header(functions))
        write(options.output / "names.cpp", names_source(functions))
        write(options.output / "wrappers.cpp", wrappers_source(functions))
        write(options.output / "descriptors.cpp", descriptors_source(functions))
        for mpi in filter(None, FORTRAN_FORMS):
            write(options.output / f"fortran_{mpi}.cpp", fortran_source(functions, mpi))
        write(options.output / "abi_list.inc", abi_list(functions))
        for library in LIBRARIES:
            names = exported(functions, library)
            write(options.output / f"{library}.map", version_script(names))
            write(options.output / f"{library}.exports", names)


if __name__ == "__main__":
    main()
