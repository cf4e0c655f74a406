// Tells the tracer of calls and keeps, on its own and in the plainest way, what the trace must then say.
#pragma once
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "trace/tracer.hpp"

namespace stretto::trace::testing {

struct Truth {
  // function, communicator, datatype, op, location, bin, outcome
  using CellName = std::tuple<int, int, int, int, int, int, int>;
  // communicator, direction, partner
  using PartnerName = std::tuple<int, int, int>;
  struct Sum {
    uint64_t calls = 0, sent = 0, received = 0, ticks = 0, first_ticks = 0, last_ticks = 0;
    bool operator==(const Sum&) const = default;
  };
  struct Traffic {
    uint64_t calls = 0, bytes = 0;
    bool operator==(const Traffic&) const = default;
  };

  std::map<CellName, Sum> cells;
  std::map<PartnerName, Traffic> partners;
  uint64_t events = 0, parts = 0, wide_events = 0;               // `events` without parts and without `wide` ones
  uint64_t event_ticks = 0, event_sent = 0, event_received = 0;  // sums over events and parts
  uint64_t dropped_events = 0;
  std::vector<std::pair<uint32_t, uint32_t>> marks;  // what, number

  // The file's name and what is in it, as JSON.
  std::string json(const std::string& file, const TraceHeader& header) const;
};

// What a trace is told, and its truth. Times are those given, so that the file is the same every time.
class Teller {
 public:
  explicit Teller(Mode mode) : mode_(mode) {}

  void tell(const CallFacts& facts, uint64_t begin, uint64_t spent);
  void tell_part(const CallFacts& facts, uint64_t begin, uint64_t spent);
  void tell_mark(uint32_t what, uint32_t number);
  void expect_events(bool wanted) { wanted_ = wanted; }

  Truth truth;

 private:
  bool expects(const CallFacts& facts) const;
  void note_event(const CallFacts& facts, uint64_t spent);
  void note_partner(const CallFacts& facts);

  Mode mode_;
  bool wanted_ = true;
};

}  // namespace stretto::trace::testing
