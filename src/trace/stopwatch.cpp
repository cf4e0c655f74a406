#include "trace/stopwatch.hpp"

namespace stretto::trace {

__attribute__((tls_model("initial-exec"))) constinit thread_local Stopwatch stopwatch;

}  // namespace stretto::trace
