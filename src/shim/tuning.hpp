// Which rules a process runs by: those that STRETTO_RULES names, those measured for this machine and MPI, or the built-in ones.
#pragma once
#include "base/status.hpp"
#include "select/tuned.hpp"

namespace stretto::shim {

// The job's, once MPI can be asked.
select::Library mpi_library();

// Where this process is: machine and MPI library. Found once.
const select::Surroundings& surroundings();

// `setting`: STRETTO_RULES. *path: the file that was read; empty for the built-in rules. Not ok: it cannot be used; a file that
// was not asked for is then to be done without (use_built_in).
Status choose_rules(const char* setting, select::Rules* rules, const char** path);
void use_built_in(select::Rules* rules);

}  // namespace stretto::shim
