// Status: what a fallible step inside Stretto returns. No exception is ever thrown; nothing here allocates.
#pragma once
#include <cstdint>

namespace stretto {

enum class Code : uint8_t {
  ok,
  refused,    // a mechanism is not to be had here (system call denied, feature missing): descend to the next one
  no_memory,  // a bounded pool or the system is out of memory: descend
  peer_lost,  // a process that others wait for has died
  timed_out,  // a peer did not show up in the time allowed
  invalid,    // unusable input: a setting, a rules file, a layout
  truncated,  // a peer's message was longer than the room for it, which holds its beginning
  disagreed,  // peers do not call the same collective with the same sizes
  revoked,    // the program has taken the communicator away from all its ranks (MPIX_Comm_revoke)
};

// `what` points to a string literal (or storage as long-lived); `detail` is an errno value, a rank (peer_lost, truncated,
// disagreed), the line of a file, or 0.
struct [[nodiscard]] Status {
  Code code = Code::ok;
  int detail = 0;
  const char* what = "";  // last, so that the whole is returned in two registers
  constexpr bool ok() const { return code == Code::ok; }
  static constexpr Status good() { return {}; }
};

constexpr Status refused(const char* what, int error = 0) {
  return {Code::refused, error, what};
}
constexpr Status no_memory(const char* what, int error = 0) {
  return {Code::no_memory, error, what};
}
constexpr Status peer_lost(const char* what, int rank) {
  return {Code::peer_lost, rank, what};
}
constexpr Status invalid(const char* what, int detail = 0) {
  return {Code::invalid, detail, what};
}
constexpr Status truncated(const char* what, int rank) {
  return {Code::truncated, rank, what};
}
constexpr Status disagreed(const char* what, int rank) {
  return {Code::disagreed, rank, what};
}
constexpr Status revoked() {
  return {Code::revoked, 0, "the communicator is revoked"};
}
constexpr Status calls_differ(int rank) {
  return disagreed("ranks call different collectives, or with different sizes", rank);
}
constexpr Status timed_out(const char* what, int detail = 0) {
  return {Code::timed_out, detail, what};
}

}  // namespace stretto

#define STRETTO_TRY(expression)                                                  \
  do {                                                                           \
    if (::stretto::Status status_ = (expression); !status_.ok()) return status_; \
  } while (false)
