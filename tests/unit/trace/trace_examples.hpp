// Example traces with known contents, kept in tests/golden/trace_v2.
#pragma once
#include <string>
#include <vector>

#include "unit/trace/trace_truth.hpp"

namespace stretto::trace::testing {

struct Example {
  const char* name;  // the files are <name>.trace and <name>.json
  Mode mode;
  const char* suffix;
  uint64_t limit_bytes;
  IterationRange iterations;
  void (*tell)(Teller&);
};

extern const std::vector<Example> examples;

// Writes the example's two files into `folder` and returns the truth. The trace is written through the tracer, in a child;
// what differs from run to run (clocks, pid, tid, host) is then replaced by fixed values, so that the bytes are always the
// same. False on failure.
bool write_example(const Example& example, const std::string& folder);

}  // namespace stretto::trace::testing
