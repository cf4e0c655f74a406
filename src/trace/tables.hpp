// The tables of the trace that describe what the calls are about.
#pragma once
#include "trace/recorder.hpp"
#include "trace/trace_state.hpp"

namespace stretto::trace {

// Writes the name tables. Under the mutex.
Status write_name_tables(const Tables& tables);

// Appends a mark; false: no room. Under the mutex.
bool append_mark(const MarkEntry& mark);

// In the child of a fork: what the shim holds pointers to becomes the child's own memory.
void detach_tables();

}  // namespace stretto::trace
