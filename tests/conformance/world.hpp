// The worlds in which a transport is put to the test: ranks as threads of this process, and ranks as processes.
//
// All that ranks know of each other beyond the transport stands on a board in shared memory; they meet there by atomics.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/cacheline.hpp"
#include "transport/table.hpp"
#include "transport/transport.hpp"

namespace stretto::conformance {

inline constexpr int most_ranks = 8;

struct alignas(cache_line) Line {
  std::atomic<uint32_t> arrived{0};   // barriers this rank has come to
  std::atomic<uint64_t> produced{0};  // rounds this rank has put
  std::atomic<uint64_t> consumed{0};  // rounds this rank has read from everybody
  std::atomic<uint64_t> window{0};
  std::atomic<uint64_t> start{0};  // with the pid: which process this rank is
  std::atomic<int32_t> pid{0};
};

struct Board {
  std::atomic<uint32_t> broken{0};  // a rank has given up: nobody waits any longer
  Line lines[most_ranks];
};

struct Case {
  const transport::Row* row;
  bool processes;
  const char* faults;  // as in STRETTO_FAULT
};

struct Shape {
  int ranks = 2;
  size_t cell_bytes = 4096;  // of staged transports
  uint32_t cells = 4;
};

inline constexpr size_t arena_bytes = size_t(8) << 20;  // of each rank

// One rank as a test sees it.
struct Rank {
  int rank;
  int size;
  Board& board;
  transport::Transport& transport;
  char* arena = nullptr;  // where buffers must lie that peers read; null: anywhere
  uint32_t barriers = 0;
  uint64_t rounds = 0;  // played so far: the same on all ranks between exchanges

  Line& mine() { return board.lines[rank]; }
  Line& line(int peer) { return board.lines[peer]; }

  // All ranks come here before any goes on. False when one has given up.
  bool meet();

  // From now on the others do not wait for this rank.
  void leave() { mine().arrived.store(UINT32_MAX, std::memory_order_release); }

  // Waits until the word has come to `value`. False when a rank has given up, or after a long time.
  template <class Word>
  bool wait(const std::atomic<Word>& word, Word value) {
    return wait_until([&] { return word.load(std::memory_order_acquire) >= value; });
  }
  bool wait_until(const std::function<bool()>& holds);
};

// A rank's buffer that peers can reach. One at a time.
class Buffer {
 public:
  Buffer(Rank& me, const std::vector<char>& contents) : own_(contents), data_(me.arena ? me.arena : own_.data()) {
    std::copy(contents.begin(), contents.end(), data_);
  }
  Buffer(const Buffer&) = delete;
  char* data() { return data_; }

 private:
  std::vector<char> own_;
  char* data_;
};

// What a rank does. Returns what is wrong, or nothing.
using Body = std::function<std::string(Rank&)>;

// Runs the body on every rank and returns the complaints of all; "skip: ..." where this machine denies the mechanism.
std::string run(const Case& test_case, const Shape& shape, const Body& body);

inline bool is_skip(const std::string& outcome) {
  return outcome.rfind("skip:", 0) == 0;
}

}  // namespace stretto::conformance
