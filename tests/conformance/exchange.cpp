#include "conformance/exchange.hpp"

#include <string.h>

#include <algorithm>
#include <random>

namespace stretto::conformance {
namespace {

constexpr char canary = 0x5C;
constexpr const char* given_up = "another rank has given up, or does not come";

using Range = std::pair<size_t, size_t>;  // [first, second)

class Exchange {
 public:
  Exchange(Rank& me, const Traffic& traffic, Tally* tally)
      : me_(me),
        traffic_(traffic),
        tally_(*tally),
        random_(traffic.seed * 977 + uint64_t(me.rank)),
        own_(pattern(traffic.seed, me.rank, traffic.bytes)),
        buffer_(me, traffic.in_place ? std::vector<char>(traffic.bytes) : own_),
        step_(std::min(traffic.round_bytes, me.transport.cell_bytes())),
        rounds_(std::max<uint64_t>(1, (traffic.bytes + step_ - 1) / step_)) {
    for (int peer = 0; peer < me.size; ++peer) expected_.push_back(pattern(traffic.seed, peer, traffic.bytes));
  }

  std::string play() {
    me_.mine().window = me_.transport.window(buffer_.data()).base;
    if (!me_.meet()) return given_up;
    std::string complaint;
    for (uint64_t round = 0, next = 0; round < rounds_ && complaint.empty(); ++round) {
      for (; next < rounds_ && (next <= round || room(next)) && complaint.empty(); ++next) complaint = produce(next);
      for (int step = 1; step < me_.size && complaint.empty(); ++step) complaint = consume((me_.rank + step) % me_.size, round);
      me_.mine().consumed.store(me_.rounds + round + 1, std::memory_order_release);
    }
    if (!complaint.empty()) return complaint;
    me_.rounds += rounds_;
    return me_.meet() ? "" : given_up;  // the buffer is this exchange's own
  }

 private:
  transport::Cell cell(uint64_t round) const { return {uint32_t(me_.rounds + round), round * step_}; }
  Range range(uint64_t round) const { return {round * step_, std::min(traffic_.bytes, (round + 1) * step_)}; }

  // Whether all ranks are done with the round whose cell this one takes.
  bool room(uint64_t round) {
    for (int peer = 0; peer < me_.size; ++peer)
      if (me_.line(peer).consumed.load(std::memory_order_acquire) + me_.transport.cells() <= me_.rounds + round) return false;
    return true;
  }

  // The range cut at one random place, or whole. Empty pieces occur, and are to be served.
  std::vector<Range> cut(Range whole) {
    if (!traffic_.pieces) return {whole};
    size_t middle = whole.first + random_() % (whole.second - whole.first + 1);
    return {{whole.first, middle}, {middle, whole.second}};
  }

  std::string produce(uint64_t round) {
    if (!me_.wait_until([&] { return room(round); })) return given_up;
    for (auto [from, to] : cut(range(round))) {
      std::string complaint = traffic_.in_place ? fill(round, from, to) : put(round, from, to);
      if (!complaint.empty()) return complaint;
    }
    me_.mine().produced.store(me_.rounds + round + 1, std::memory_order_release);
    return "";
  }

  std::string put(uint64_t round, size_t from, size_t to) {
    Status status = me_.transport.put(cell(round), from, buffer_.data() + from, to - from);
    return status.ok() ? "" : std::string("put: ") + status.what;
  }

  std::string fill(uint64_t round, size_t from, size_t to) {
    void* place = me_.transport.place(cell(round), from, to - from);
    bool is_staged = me_.transport.cell_bytes() != SIZE_MAX;
    if ((place != nullptr) != is_staged) return "place() is for staged transports, and for all of them";
    if (to > from) memcpy(place != nullptr ? place : buffer_.data() + from, own_.data() + from, to - from);
    return "";
  }

  std::string consume(int peer, uint64_t round) {
    if (!me_.wait(me_.line(peer).produced, me_.rounds + round + 1)) return given_up;
    for (auto [from, to] : cut(range(round))) {
      std::string complaint = get(peer, round, from, to - from);
      if (!complaint.empty()) return complaint;
    }
    return "";
  }

  std::string get(int peer, uint64_t round, size_t at, size_t bytes) {
    std::vector<char> scratch(bytes + 1, canary);
    const void* data = nullptr;
    ++tally_.gets;
    Status status = me_.transport.get(peer, {me_.line(peer).window}, cell(round), at, bytes, scratch.data(), &data);
    if (scratch[bytes] != canary) return "get wrote beyond its scratch";
    if (status.code == Code::refused) {
      ++tally_.refused;
      return "";
    }
    if (!status.ok()) return std::string("get: ") + status.what;
    if (bytes == 0 || memcmp(data, expected_[peer].data() + at, bytes) == 0) return "";
    return "wrong bytes of rank " + std::to_string(peer) + " in round " + std::to_string(round) + ", [" + std::to_string(at) +
           ", " + std::to_string(at + bytes) + ")";
  }

  Rank& me_;
  const Traffic& traffic_;
  Tally& tally_;
  std::mt19937_64 random_;
  std::vector<char> own_;
  Buffer buffer_;  // what the window shows
  std::vector<std::vector<char>> expected_;
  size_t step_;
  uint64_t rounds_;
};

}  // namespace

std::vector<char> pattern(uint64_t seed, int rank, size_t bytes) {
  std::mt19937_64 random(seed * 1009 + uint64_t(rank));
  std::vector<char> data(bytes);
  for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
    uint64_t word = random();
    memcpy(data.data() + i, &word, std::min(sizeof word, bytes - i));
  }
  return data;
}

std::string exchange(Rank& me, const Traffic& traffic, Tally* tally) {
  return Exchange(me, traffic, tally).play();
}

}  // namespace stretto::conformance
