// A small deterministic generator (splitmix64). Ranks that seed it alike draw alike, which is how they agree on each call.
#pragma once
#include <cstdint>
#include <cstring>
#include <vector>

namespace differential {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t bits() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // Uniform in [0, bound); bound > 0.
  uint64_t below(uint64_t bound) { return bits() % bound; }
  // Uniform in [low, high], both included.
  int64_t between(int64_t low, int64_t high) { return low + int64_t(below(uint64_t(high - low) + 1)); }
  // True once in n draws.
  bool one_in(uint64_t n) { return below(n) == 0; }
  // Uniform in [0, 1).
  double unit() { return double(bits() >> 11) * 0x1p-53; }

  void fill(unsigned char* to, size_t bytes) {
    for (; bytes >= 8; to += 8, bytes -= 8) {
      uint64_t word = bits();
      memcpy(to, &word, 8);
    }
    uint64_t word = bits();
    memcpy(to, &word, bytes);
  }

  template <class T>
  void shuffle(std::vector<T>& items) {
    for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  uint64_t state_;
};

inline uint64_t mix(uint64_t a, uint64_t b) {
  return Random(a * 0x2545f4914f6cdd1du + b + 1).bits();
}

}  // namespace differential
