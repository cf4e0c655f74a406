#include "base/log.hpp"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <atomic>

namespace stretto {
namespace {

std::atomic<Level> threshold{Level::warning};

void write_line(const char* format, va_list arguments) {
  char line[512] = "stretto: ";
  size_t used = strlen(line);
  int n = vsnprintf(line + used, sizeof line - used - 1, format, arguments);
  if (n < 0) return;
  used = used + size_t(n) < sizeof line - 1 ? used + size_t(n) : sizeof line - 2;
  line[used++] = '\n';
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, line, used);
}

// True the first time a format is seen. Bounded: formats are literals, and a full table repeats rather than forgets to warn.
bool first_time(const char* format) {
  static std::atomic<const char*> seen[64];
  for (auto& slot : seen) {
    const char* known = slot.load(std::memory_order_acquire);
    if (known == nullptr && slot.compare_exchange_strong(known, format)) return true;
    if (known == format) return false;
  }
  return true;
}

}  // namespace

void set_log_level(Level level) {
  threshold.store(level, std::memory_order_relaxed);
}

void log(Level level, const char* format, ...) {
  if (level > threshold.load(std::memory_order_relaxed)) return;
  va_list arguments;
  va_start(arguments, format);
  write_line(format, arguments);
  va_end(arguments);
}

void log_once(Level level, const char* format, ...) {
  if (level > threshold.load(std::memory_order_relaxed) || !first_time(format)) return;
  va_list arguments;
  va_start(arguments, format);
  write_line(format, arguments);
  va_end(arguments);
}

InLine::InLine(const Status& status) {
  if (status.code == Code::invalid && status.detail > 0) snprintf(text, sizeof text, ", line %d", status.detail);
}

}  // namespace stretto
