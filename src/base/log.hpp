// One clear line to standard error, prefixed "stretto: "; each distinct message once per process.
#pragma once
#include "base/status.hpp"

namespace stretto {

enum class Level { error, warning, info, debug };

// Lines above this level are dropped (STRETTO_LOG). Default: warning.
void set_log_level(Level level);

// printf-style; one write() per line so that lines of several ranks do not mix.
__attribute__((format(printf, 2, 3))) void log(Level level, const char* format, ...);

// The same, but a message with this format is printed only the first time in this process.
__attribute__((format(printf, 2, 3))) void log_once(Level level, const char* format, ...);

// ", line 3" where that line of an input is invalid, for such messages; else nothing.
struct InLine {
  explicit InLine(const Status& status);
  char text[24] = "";
};

}  // namespace stretto
