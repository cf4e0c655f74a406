// Which of several ways to do something with so many bytes is the fastest, found out by trying them all: by CPU, caches and
// kernel each may take several times as long as another. Either one rank chooses and takes the time, and the others go along; or
// all do, and note the same times. Only blocking calls try: what runs beside others cannot be timed.
//
// A trial is a few calls the one way, then a few the next: each way needs its own memory in the caches, so only calls that follow
// one another tell its time; the middle one of them counts. A way that is clearly slower than one before is left after two calls.
// Then the fastest way is used, untimed, until the next trial: at first soon, as memory that is used for the first time tells
// little, then after four times as many calls each time that it is still about as fast as any, and after the most where the
// difference is clear. Calls in between may be watched: what takes quite another time than in the trial is tried anew. What has
// become slow may become fast again, which no call that goes another way shows: as long as a way is known to have been faster
// than the fastest is now, the next trial is not far.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace stretto::collective {

template <int ways>
class Trials {
 public:
  struct Choice {
    int way;               // 0 .. ways - 1
    bool timed;            // the time is to be noted
    bool begins = false;   // the first call this way in a trial
    float known = 0;       // of a timed call: the shortest time of a way in this trial so far, in ticks per byte; infinity: none
    bool watched = false;  // not timed for a trial; watch() may be told its time
  };

  // `untried`: the way where nothing is known and the call cannot be timed.
  Choice choose(size_t bytes, bool may_time = true, int untried = 0) {
    Sizes& sizes = of(bytes);
    if (!may_time) return {fastest(bytes, untried), false};
    if (settled_ || sizes.untimed > 0) {
      sizes.untimed -= !settled_;
      return {sizes.fastest, false, false, 0, sizes.known && sizes.untimed % watched_each == watched_each - 1};
    }
    return {sizes.way(), true, sizes.noted == 0, sizes.least};
  }

  // So far as is known; `untried` before anything is.
  int fastest(size_t bytes, int untried = 0) {
    const Sizes& sizes = of(bytes);
    return sizes.known || settled_ ? sizes.fastest : untried;
  }

  // A call that was to be timed could not be. Later ones make up for it, but not for ever: not every program lets calls be timed.
  void miss(size_t bytes) {
    Sizes& sizes = of(bytes);
    if (++sizes.missed < calls_missed) return;
    sizes.untimed = sizes.wait_longer();
    sizes.forget();
  }

  // Of a call that was to be timed.
  void note(size_t bytes, int way, uint64_t ticks) {
    Sizes& sizes = of(bytes);
    float* times = sizes.times;
    times[sizes.noted++] = float(ticks) / float(bytes);
    const float much = sizes.known ? about : clearly;
    const bool hopeless = sizes.noted == 2 && *std::min_element(times, times + 2) > much * sizes.least;
    if (sizes.noted < calls_each && !hopeless) return;
    std::nth_element(times, times + sizes.noted / 2, times + sizes.noted);
    settle_way(sizes, way, times[sizes.noted / 2]);
  }

  // Of a call that was to be watched: once several of them took twice or half the time that the fastest way took in the trial,
  // the next trial begins. The more of these confirm what was known, the more calls it takes.
  void watch(size_t bytes, uint64_t ticks) {
    Sizes& sizes = of(bytes);
    const float time = float(ticks) / float(bytes), usual = sizes.usual[sizes.fastest];
    const bool strange = time > much_else * usual || much_else * time < usual;
    sizes.strange = uint8_t(std::max(sizes.strange + (strange ? 1 : -1), 0));
    if (sizes.strange < sizes.alarm) return;
    sizes.strange = 0;
    sizes.alarm = uint8_t(std::min(2 * sizes.alarm, most_strange));
    sizes.untimed = 0;
  }

  // The way that is to be tried cannot be the fastest, as is known: it is left out of this trial.
  void leave_out(size_t bytes, int way) { settle_way(of(bytes), way, std::numeric_limits<float>::infinity()); }

  // For good.
  void settle(int way) {
    settled_ = true;
    for (Sizes& sizes : sizes_) sizes.fastest = uint8_t(way);
  }

 private:
  static constexpr int calls_each = 5, calls_missed = 16, shortest = 8, longest = 4096, not_far = 256;
  static constexpr int watched_each = 8, least_strange = 2, most_strange = 64;
  static constexpr float clearly = 1.5, about = 1.25, better = 1.06, much_else = 2;  // times as long
  static constexpr float fading = 1.1;               // what a way is known to have been, from trial to trial
  static constexpr int smallest = 13, classes = 13;  // up to 16 KiB, ..., from 32 MiB

  // Between two powers of two bytes. Times are ticks per byte.
  struct Sizes {
    uint8_t fastest = 0, tried = 0;  // ways tried in this trial: the fastest of the one before, then those that follow it
    uint8_t noted = 0, missed = 0;
    uint8_t strange = 0, alarm = least_strange;  // watched calls that were, less those that were not; as many begin a trial
    bool known = false;                          // one has come to its end
    uint16_t untimed = 0;                        // calls before the next trial
    uint16_t period = 0;                         // calls between this trial and the next; 0: there was none yet
    float times[calls_each], usual[ways], least = std::numeric_limits<float>::infinity();
    float once[ways] = {};  // the least that was usual; 0: nothing is known
    int way() const { return (fastest + tried) % ways; }
    uint16_t wait_longer() { return period = uint16_t(std::clamp(4 * int(period), shortest, longest)); }
    void forget() {
      tried = 0;
      noted = missed = 0;
      least = std::numeric_limits<float>::infinity();
    }
  };

  Sizes& of(size_t bytes) { return sizes_[std::clamp(int(std::bit_width(bytes)) - 1 - smallest, 0, classes - 1)]; }

  static void settle_way(Sizes& sizes, int way, float usual) {
    sizes.usual[way] = usual;
    sizes.once[way] = sizes.once[way] == 0 ? usual : std::min(usual, fading * sizes.once[way]);
    sizes.least = std::min(sizes.least, usual);
    sizes.noted = 0;
    if (++sizes.tried == ways) decide(sizes);
  }

  // Ways that are about as fast as one another take turns in being the fastest: that is no news.
  static void decide(Sizes& sizes) {
    const float former = sizes.usual[sizes.fastest];
    const bool confirmed = sizes.known && former <= about * sizes.least;
    sizes.known = true;
    if (former > better * sizes.least) sizes.fastest = uint8_t(std::min_element(sizes.usual, sizes.usual + ways) - sizes.usual);
    sizes.untimed = confirmed ? sizes.wait_longer() : sizes.period = shortest;
    if (confirmed && next_to(sizes, sizes.usual) > 2 * sizes.least) sizes.untimed = longest;
    if (about * next_to(sizes, sizes.once) < sizes.least) sizes.untimed = std::min<uint16_t>(sizes.untimed, not_far);
    if (!confirmed) sizes.alarm = least_strange;
    sizes.forget();
  }

  // Of the other ways' times the shortest.
  static float next_to(const Sizes& sizes, const float (&times)[ways]) {
    float next = std::numeric_limits<float>::infinity();
    for (int way = 0; way < ways; ++way)
      if (way != sizes.fastest) next = std::min(next, times[way]);
    return next;
  }

  Sizes sizes_[classes];
  bool settled_ = false;
};

}  // namespace stretto::collective
