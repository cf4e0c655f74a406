// The kernel's text files, read as text: pure functions, so that odd files can be tested without odd machines.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/status.hpp"

namespace stretto::platform {

// Reads up to `capacity` bytes of a file that a user has named. Refused where it is a pipe or a device too, whose reader might
// wait for ever. *length bytes have been read in any case.
Status read_file(const char* path, char* buffer, size_t capacity, size_t* length);

// Reads up to capacity - 1 bytes of a file into `buffer`, zero-terminated; empty when it cannot be read.
std::string_view read_text(const char* path, char* buffer, size_t capacity);

// Takes the text up to the next `separator` off the front of *rest (all of it when there is none).
std::string_view next_token(std::string_view* rest, char separator);

// Decimal digits and nothing else, apart from surrounding white space.
bool parse_number(std::string_view text, uint64_t* value);

// "48K", "1024K", "32M", "123": bytes. 0 when it does not read so.
size_t parse_size(std::string_view text);

// What /proc/PID/stat says; the command name in it may hold spaces and parentheses.
struct ProcessStat {
  char state = '?';
  uint64_t threads = 0;
  uint64_t start = 0;  // clock ticks since boot
};
bool parse_stat(std::string_view text, ProcessStat* stat);

// cgroup v2 cpu.max, "QUOTA PERIOD" or "max PERIOD": CPUs' worth of time. 0: unlimited or unreadable.
double parse_cpu_max(std::string_view text);

// cgroup v1 cpu.cfs_quota_us (-1: unlimited) and cpu.cfs_period_us. 0 as above.
double parse_cfs_quota(std::string_view quota, std::string_view period);

// A size limit of a cgroup in bytes; SIZE_MAX for "max", for anything unreadable and for v1's "unlimited" (near 2^63).
size_t parse_memory_limit(std::string_view text);

}  // namespace stretto::platform
