#include "platform/parse.hpp"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
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

Status read_file(const char* path, char* buffer, size_t capacity, size_t* length) {
  *length = 0;
  const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return refused(strerror(errno), errno);
  struct stat found{};
  const bool regular = fstat(fd, &found) == 0 && S_ISREG(found.st_mode);
  ssize_t got = regular ? 1 : 0;
  while (got != 0 && *length < capacity) {
    got = read(fd, buffer + *length, capacity - *length);
    if (got < 0 && errno != EINTR) break;
    if (got > 0) *length += size_t(got);
  }
  const int error = errno;
  ::close(fd);
  if (!regular) return refused("not a regular file", EINVAL);
  return got < 0 ? refused(strerror(error), error) : Status::good();
}

std::string_view read_text(const char* path, char* buffer, size_t capacity) {
  size_t used;
  [[maybe_unused]] const Status as_far_as_it_reads = read_file(path, buffer, capacity - 1, &used);
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
