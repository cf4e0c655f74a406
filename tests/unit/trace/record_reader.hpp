// Reads a record file by the words of docs/record_format.md, not by the recorder's own layout code; and a way to run
// each test in a process of its own, since a process has one record.
#pragma once
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "trace/recorder.hpp"

namespace stretto::trace::testing {

inline const char* const function_names[] = {"MPI_Send", "MPI_Recv", "MPI_Allreduce"};
inline const char* const reason_names[] = {"none", "size"};
inline const char* const algorithm_names[] = {"flat", "tree"};
inline const Tables tables{function_names, 3, reason_names, 2, algorithm_names, 2};

inline std::vector<char> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class Reader {
 public:
  explicit Reader(std::vector<char> bytes) : bytes_(std::move(bytes)) { memcpy(&header, bytes_.data(), sizeof header); }

  std::string name(uint32_t index) const { return bytes_.data() + 488 + 40 * index; }
  size_t size() const { return bytes_.size(); }
  size_t first_block() const { return up(488 + 40 * (header.functions + header.reasons + header.algorithms)); }
  size_t block_bytes() const { return up(8 * words()); }

  size_t arrivals() const { return first_block() + header.blocks * block_bytes(); }
  size_t turns() const { return arrivals() + 32 * 64; }
  uint64_t word_at(size_t offset) const {
    uint64_t value;
    memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }

  // Word `index` of a block, and its sum over all blocks.
  uint64_t word(uint32_t block, size_t index) const {
    uint64_t value;
    memcpy(&value, bytes_.data() + first_block() + block * block_bytes() + 8 * index, sizeof value);
    return value;
  }
  uint64_t total(size_t index) const {
    uint64_t sum = 0;
    for (uint32_t block = 0; block < header.blocks; ++block) sum += word(block, index);
    return sum;
  }

  size_t calls(uint32_t function) const { return 3 * function; }
  size_t ticks(uint32_t function) const { return 3 * function + 1; }
  size_t bytes(uint32_t function) const { return 3 * function + 2; }
  size_t kind(uint32_t which, uint32_t field) const { return 3 * header.functions + 6 * which + field; }
  size_t decline(uint32_t which, uint32_t reason) const {
    return 3 * header.functions + 32 * 6 + which * header.reasons + reason;
  }
  size_t ran(uint32_t which, uint32_t algorithm) const {
    return 3 * header.functions + 32 * (6 + header.reasons) + which * header.algorithms + algorithm;
  }

  Header header;

 private:
  size_t words() const { return 3 * header.functions + 32 * (6 + header.reasons + header.algorithms); }
  static size_t up(size_t value) { return (value + 63) / 64 * 64; }
  std::vector<char> bytes_;
};

// A new empty folder, gone with its files at the end.
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/stretto_trace_XXXXXX";
    path = mkdtemp(name);
  }
  ~Folder() {
    for (const std::string& file : files()) unlink(file.c_str());
    rmdir(path.c_str());
  }
  std::vector<std::string> files() const {
    std::vector<std::string> found;
    DIR* folder = opendir(path.c_str());
    while (const dirent* entry = readdir(folder)) {
      if (entry->d_name[0] != '.') found.push_back(path + "/" + entry->d_name);
    }
    closedir(folder);
    return found;
  }
  std::string path;
};

// The wait status of a child that runs `body` and exits with its result.
inline int in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

}  // namespace stretto::trace::testing
