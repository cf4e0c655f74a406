#include "shim/far_record.hpp"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "engine/identity.hpp"
#include "platform/meeting.hpp"
#include "shim/context.hpp"
#include "shim/hooks.hpp"
#include "trace/recorder.hpp"

namespace stretto::shim {
namespace {

constexpr size_t page_bytes = 4096;
constexpr size_t longest_line = 256;
constexpr uint64_t greeting_ns = 1'000'000'000, patience_ns = 5'000'000'000;

bool empty(const char* page, size_t bytes) {
  return page[0] == 0 && memcmp(page, page + 1, bytes - 1) == 0;
}

// "record JOB NONCE BYTES PAGES", and of each page that is not all zero its number and its bytes: most of a record is never used.
// The number of bytes put into `to`, which has room for all.
size_t put_together(const trace::LooseRecord& record, const char* job, char* to) {
  char* const pages = to + longest_line;
  char* end = pages;
  uint32_t count = 0;
  for (size_t at = 0; at < record.bytes; at += page_bytes) {
    const size_t bytes = std::min(page_bytes, record.bytes - at);
    if (empty(record.base + at, bytes)) continue;
    const uint32_t number = uint32_t(at / page_bytes);
    memcpy(end, &number, sizeof number);
    memset(end + sizeof number, 0, page_bytes);
    memcpy(end + sizeof number, record.base + at, bytes);
    end += sizeof number + page_bytes;
    ++count;
  }
  static const uint64_t nonce = now_ns() ^ (uint64_t(getpid()) << 40);  // what is sent again takes the place of what was sent
  const int line =
      snprintf(to, longest_line, "record %.64s %llx %zu %u\n", job, static_cast<unsigned long long>(nonce), record.bytes, count);
  memmove(to + line, pages, size_t(end - pages));
  return size_t(line) + size_t(end - pages);
}

bool sent(const trace::LooseRecord& record, const Settings& s) {
  const size_t pages = (record.bytes + page_bytes - 1) / page_bytes;
  std::unique_ptr<char[]> message(new (std::nothrow) char[longest_line + pages * (sizeof(uint32_t) + page_bytes)]);
  if (!message || *s.job == '\0' || context().job.nodes() == engine::Nodes::unreachable) return false;
  char answer[16];
  const size_t bytes = put_together(record, s.job, message.get());
  const Status status = platform::ask_meeting(s.meeting, {message.get(), bytes}, {now_ns() + greeting_ns, now_ns() + patience_ns},
                                              answer, sizeof answer);
  return status.ok() && strcmp(answer, "kept") == 0;
}

}  // namespace

void send_record() {
  const trace::LooseRecord record = trace::loose_record();
  if (record.base == nullptr || *settings().meeting == '\0') return;  // it has its file, or the user has been told
  if (sent(record, settings()) || engine::locality().rank > 0) return;
  log(Level::warning, "no record in %s, nor by the network: the summary lacks this node's ranks", settings().record_dir);
}

}  // namespace stretto::shim
