// Asking a process on another machine: a line to it, and bytes behind it where there are any; one line back; over TCP.
//
// Whoever answers greets first, so that no other service that happens to listen there is mistaken for it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/status.hpp"

namespace stretto::platform {

inline constexpr const char* meeting_greeting = "stretto meeting 1\n";

// addresses: "10.0.0.1:4000/10.1.0.1:4000", all of one process; whichever answers first is taken. The question's line ends in a
// newline, the answer comes without. Asks again when the connection breaks.
// refused: nobody has greeted by greeted_ns. timed_out: the question was sent, and no answer came by answered_ns.
struct Deadlines {
  uint64_t greeted_ns, answered_ns;  // CLOCK_MONOTONIC
};
Status ask_meeting(const char* addresses, std::string_view question, const Deadlines& deadlines, char* answer,
                   size_t answer_bytes);

}  // namespace stretto::platform
