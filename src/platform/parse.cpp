#include "platform/parse.hpp"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <charconv>

namespace stretto::platform {
namespace {

constexpr std::string_view blanks = " \t\n";

std::string_view trim(std::string_view text) {
  size_t first = text.find_first_not_of(blanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

double quota_in_cpus(std::string_view quota, std::string_view period) {
  uint64_t granted = 0, of = 0;
  if (!parse_number(quota, &granted) || !parse_number(period, &of) || of == 0) return 0;
  return double(granted) / double(of);
}

}  // namespace

std::string_view read_text(const char* path, char* buffer, size_t capacity) {
  size_t used = 0;
  buffer[0] = 0;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  while (used < capacity - 1) {
    ssize_t got = read(fd, buffer + used, capacity - 1 - used);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    used += size_t(got);
  }
  ::close(fd);
  buffer[used] = 0;
  return {buffer, used};
}

std::string_view next_token(std::string_view* rest, char separator) {
  size_t end = rest->find(separator);
  std::string_view token = rest->substr(0, end);
  rest->remove_prefix(end == rest->npos ? rest->size() : end + 1);
  return token;
}

bool parse_number(std::string_view text, uint64_t* value) {
  text = trim(text);
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc{} && end == text.data() + text.size();
}

size_t parse_size(std::string_view text) {
  text = trim(text);
  if (text.empty()) return 0;
  unsigned shift = text.back() == 'K' ? 10 : text.back() == 'M' ? 20 : text.back() == 'G' ? 30 : 0;
  if (shift != 0) text.remove_suffix(1);
  uint64_t value = 0;
  if (!parse_number(text, &value) || value > (SIZE_MAX >> shift)) return 0;
  return size_t(value) << shift;
}

bool parse_stat(std::string_view text, ProcessStat* stat) {
  constexpr int state_field = 3, threads_field = 20, start_field = 22;
  size_t name_end = text.rfind(')');
  if (name_end == text.npos || text.size() < name_end + 2) return false;
  std::string_view rest = text.substr(name_end + 2);
  for (int field = state_field; field <= start_field; ++field) {
    std::string_view token = next_token(&rest, ' ');
    if (token.empty()) return false;
    if (field == state_field) stat->state = token.front();
    if (field == threads_field && !parse_number(token, &stat->threads)) return false;
    if (field == start_field && !parse_number(token, &stat->start)) return false;
  }
  return true;
}

double parse_cpu_max(std::string_view text) {
  text = trim(text);
  std::string_view quota = next_token(&text, ' ');
  return quota_in_cpus(quota, text);
}

double parse_cfs_quota(std::string_view quota, std::string_view period) {
  return quota_in_cpus(quota, period);
}

size_t parse_memory_limit(std::string_view text) {
  constexpr uint64_t v1_unlimited = uint64_t(1) << 62;
  uint64_t bytes = 0;
  if (!parse_number(text, &bytes) || bytes >= v1_unlimited) return SIZE_MAX;
  return size_t(bytes);
}

}  // namespace stretto::platform
