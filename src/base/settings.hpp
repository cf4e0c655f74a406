// Every setting Stretto reads from the environment stands in one table, which yields parsing, help and documentation.
#pragma once
#include <stdint.h>

#include "base/status.hpp"

namespace stretto {

// Iterations first..last, both included.
struct IterationRange {
  uint64_t first = 0, last = UINT64_MAX;
};

// Values after parsing, in the order and with the defaults of settings_table().
struct Settings {
  bool accelerate = true;
  const char* job = "";
  const char* record_dir = "";
  const char* rules = "";
  const char* transport = "auto";
  const char* wait = "auto";
  const char* isa = "auto";
  const char* fault = "";
  const char* log = "warning";
  uint64_t memory_mib = 0;
  uint64_t join_timeout_ms = 5000;
  const char* profile = "off";
  uint64_t trace_mib = 512;
  IterationRange iterations;  // empty text: all
  uint64_t iteration_calls = 0;
  const char* nccl_next_plugin = "";
  bool arena = false;
  const char* topology = "";
  const char* domain = "numa";
  const char* order = "ranks";
  uint64_t readers = 4;
  const char* nodes = "auto";
  const char* meeting = "";
  const char* progress = "calls";
  uint64_t turns = 0;
  uint64_t nodes_after = 64;
  const char* offload = "auto";
};

struct SettingRow {
  const char* name;
  const char* type;  // "on|off", "text", "path", "count", "A:B", or the words allowed, separated by '|'
  const char* fallback;
  const char* help;
};

const SettingRow* settings_table(int* count);

// Reads STRETTO_* from `environment` (environ). invalid: an unknown name or an unusable value; *offender then holds
// "NAME=value" of the first such, for the message. Settings keep their defaults where they are absent or wrong.
Status read_settings(char** environment, Settings* settings, const char** offender);

// A number equal on two ranks only if their settings that must agree are the same.
uint64_t fingerprint(const Settings& settings);

// The table as text: name TAB type TAB default TAB help, one line each.
const char* settings_text();

}  // namespace stretto
