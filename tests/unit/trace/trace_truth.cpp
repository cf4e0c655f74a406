#include "unit/trace/trace_truth.hpp"

#include <stdio.h>

namespace stretto::trace::testing {

namespace {

// The first power of two that is no less, counted.
int bin_of(uint64_t bytes) {
  int bin = bytes == 0 ? 0 : 1;
  for (uint64_t most = 1; bytes > most; most *= 2) ++bin;
  return bin;
}

// As docs/trace_format.md says it: all below 4096 (256, 16), then about half as many of each octave.
bool sampled_by_the_words(uint16_t communicator, uint32_t sequence) {
  if (communicator >= 1024) return false;
  const uint64_t all_below = communicator < 8 ? 4096 : communicator < 64 ? 256 : 16;
  uint64_t step = 1;
  while (sequence / step >= all_below) step *= 2;
  constexpr uint64_t words = uint64_t(1) << 32;
  uint64_t hash = sequence * uint64_t(0x9e3779b1) % words;
  hash = (hash ^ hash / 32768) * 0x85ebca77 % words;
  hash ^= hash / 8192;
  return hash < words / step;  // its upper bits are 0
}

std::string number(uint64_t value) {
  return std::to_string(value);
}

// {"key": value, ...} of keys with numbers.
std::string object(const std::vector<std::pair<const char*, int64_t>>& fields) {
  std::string text = "{";
  for (const auto& [key, value] : fields)
    text += (text.size() > 1 ? ", \"" : "\"") + std::string(key) + "\": " + std::to_string(value);
  return text + "}";
}

std::string list(const char* key, const std::vector<std::string>& items) {
  std::string text = "  \"" + std::string(key) + "\": [";
  for (size_t i = 0; i < items.size(); ++i) text += (i ? ",\n    " : "\n    ") + items[i];
  return text + (items.empty() ? "]" : "\n  ]");
}

std::string of_cell(const Truth::CellName& name, const Truth::Sum& sum) {
  const auto& [function, communicator, datatype, op, location, bin, outcome] = name;
  return object({{"function", function},
                 {"communicator", communicator},
                 {"datatype", datatype},
                 {"op", op},
                 {"location", location},
                 {"bin", bin},
                 {"outcome", outcome},
                 {"calls", int64_t(sum.calls)},
                 {"sent", int64_t(sum.sent)},
                 {"received", int64_t(sum.received)},
                 {"ticks", int64_t(sum.ticks)},
                 {"first_ticks", int64_t(sum.first_ticks)},
                 {"last_ticks", int64_t(sum.last_ticks)}});
}

}  // namespace

void Teller::tell(const CallFacts& facts, uint64_t begin, uint64_t spent) {
  enter(facts, begin);
  leave(facts, begin, begin + spent);
  const int bin = bin_of(facts.sent > facts.received ? facts.sent : facts.received);
  Truth::Sum& sum =
      truth.cells[{facts.function, facts.communicator, facts.datatype, facts.op, facts.location, bin, facts.outcome}];
  if (sum.calls++ == 0) sum.first_ticks = begin;
  sum.sent += facts.sent;
  sum.received += facts.received;
  sum.ticks += spent;
  sum.last_ticks = begin;
  note_partner(facts);
  if (!expects(facts)) return;
  ++truth.events;
  note_event(facts, spent);
}

void Teller::tell_part(const CallFacts& facts, uint64_t begin, uint64_t spent) {
  add_part(facts, begin, begin + spent);
  note_partner(facts);
  if (!expects(facts)) return;
  ++truth.parts;
  note_event(facts, spent);
}

void Teller::tell_mark(uint32_t what, uint32_t of) {
  mark(what, of);
  truth.marks.emplace_back(what, of);
}

bool Teller::expects(const CallFacts& facts) const {
  if (!wanted_) return false;
  return mode_ == Mode::full || (facts.collective && sampled_by_the_words(facts.communicator, facts.sequence));
}

void Teller::note_event(const CallFacts& facts, uint64_t spent) {
  constexpr uint64_t most = UINT32_MAX;
  if (spent > most || facts.sent > most || facts.received > most) ++truth.wide_events;
  truth.event_ticks += spent;
  truth.event_sent += facts.sent;
  truth.event_received += facts.received;
}

void Teller::note_partner(const CallFacts& facts) {
  if (facts.direction == Direction::none) return;
  Truth::Traffic& traffic = truth.partners[{facts.communicator, int(facts.direction), facts.partner}];
  ++traffic.calls;
  traffic.bytes += facts.direction == Direction::sent || facts.direction == Direction::put ? facts.sent : facts.received;
}

std::string Truth::json(const std::string& file, const TraceHeader& header) const {
  std::vector<std::string> of_cells, of_partners, of_marks;
  for (const auto& [name, sum] : cells) of_cells.push_back(of_cell(name, sum));
  for (const auto& [name, traffic] : partners)
    of_partners.push_back(object({{"communicator", std::get<0>(name)},
                                  {"direction", std::get<1>(name)},
                                  {"partner", std::get<2>(name)},
                                  {"calls", int64_t(traffic.calls)},
                                  {"bytes", int64_t(traffic.bytes)}}));
  for (const auto& [what, of] : marks) of_marks.push_back(object({{"what", what}, {"number", of}}));
  std::string text = "{\n  \"file\": \"" + file + "\",\n";
  text += "  \"mode\": " + number(header.mode) + ",\n  \"stage\": " + number(header.stage) + ",\n";
  text +=
      "  \"world_rank\": " + std::to_string(header.world_rank) + ",\n  \"world_size\": " + number(uint64_t(header.world_size));
  for (const auto& [key, value] : {std::pair{"events", events},
                                   {"parts", parts},
                                   {"wide_events", wide_events},
                                   {"event_ticks", event_ticks},
                                   {"event_sent", event_sent},
                                   {"event_received", event_received},
                                   {"dropped_events", dropped_events}})
    text += ",\n  \"" + std::string(key) + "\": " + number(value);
  return text + ",\n" + list("marks", of_marks) + ",\n" + list("cells", of_cells) + ",\n" + list("partners", of_partners) +
         "\n}\n";
}

}  // namespace stretto::trace::testing
