#include <charconv>
#include <string_view>

#include "transport/fault/fault.hpp"

namespace stretto::transport {
namespace {

// A decimal number at the front of *text, which is left with what follows it.
bool take_number(std::string_view* text, uint64_t* value) {
  auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), *value);
  if (error != std::errc{}) return false;
  text->remove_prefix(size_t(end - text->data()));
  return true;
}

bool parse_count(std::string_view text, uint64_t most, uint64_t* value) {
  return take_number(&text, value) && text.empty() && *value <= most;
}

bool parse_time(std::string_view text, uint64_t* ns) {
  constexpr uint64_t longest_ns = 3'600'000'000'000;
  if (!take_number(&text, ns)) return false;
  uint64_t unit = text == "ns" ? 1 : text == "us" ? 1'000 : text == "ms" ? 1'000'000 : 0;
  if (unit == 0 || *ns > longest_ns / unit) return false;
  *ns *= unit;
  return true;
}

bool parse_item(std::string_view item, Faults* faults) {
  size_t equals = item.find('=');
  if (equals == item.npos) return false;
  std::string_view key = item.substr(0, equals), value = item.substr(equals + 1);
  if (key == "delay") return parse_time(value, &faults->delay_ns);
  if (key == "cut") return parse_count(value, UINT64_MAX, &faults->cut_after);
  uint64_t every = 0;
  if (key != "refuse" || !parse_count(value, UINT32_MAX, &every)) return false;
  faults->refuse_every = uint32_t(every);
  return true;
}

}  // namespace

Status parse_faults(const char* text, Faults* faults) {
  Faults parsed;
  std::string_view rest = text;
  while (!rest.empty()) {
    size_t comma = rest.find(',');
    bool dangling = comma != rest.npos && comma + 1 == rest.size();
    if (dangling || !parse_item(rest.substr(0, comma), &parsed)) return invalid("faults read like delay=20us,refuse=3,cut=100");
    rest.remove_prefix(comma == rest.npos ? rest.size() : comma + 1);
  }
  *faults = parsed;
  return Status::good();
}

}  // namespace stretto::transport
