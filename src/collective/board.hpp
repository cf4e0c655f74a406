// The board of a communicator: the shared memory through which its ranks announce themselves.
//
// Three things happen on it. Exchanges: some ranks write a small payload each into a slot of their own, beside the number of the
// exchange, in one cache line when it fits. Meetings: the same, where everybody writes and everybody reads everybody. Rounds:
// ranks show each other cells of staged data and count how far they are. All numbers only grow and are never reset (they have 64
// bits and do not come round); each line has a single writer, but for `carriers`.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/cacheline.hpp"

namespace stretto::collective {

inline constexpr int max_team = 512;  // ranks

// A number that one rank advances and others wait for. sleepers: how many of them sleep on it. note: of a slot, what its payload
// is (patterns/exchange.hpp).
struct Signal {
  std::atomic<uint64_t> value{0};
  std::atomic<uint32_t> sleepers{0};
  uint32_t note = 0;
};
static_assert(sizeof(Signal) == 16);

// Exchanges a writer may be ahead of its slowest reader: few at first, as a page that is touched for the first time costs more
// than some calls.
inline constexpr uint32_t slot_ring = 32, first_slot_ring = 8;
inline constexpr size_t slot_payload = 1072;

// The payload begins in the signal's own line (48 bytes of it).
struct alignas(cache_line) Slot {
  Signal ready;  // number of the newest exchange whose payload stands here
  unsigned char payload[slot_payload];

  // As if it had never been used: the line of the signal. Nobody looks at the rest of what was not announced.
  void clear() { __builtin_memset(static_cast<void*>(this), 0, cache_line); }
};
static_assert(sizeof(Slot) == 17 * cache_line && offsetof(Slot, payload) == 16);

// Where exchange `number` stands. Slots that are used one after the other do not lie one after the other: the CPU of a reader
// would fetch the next one while its writer fills it.
inline constexpr uint64_t slot_ring_grows_at = 256;
constexpr uint32_t slot_of(uint64_t number) {
  const uint64_t turn = number < slot_ring_grows_at ? 0 : number / first_slot_ring * first_slot_ring;
  return uint32_t((turn + number * 3 % first_slot_ring) % slot_ring);
}

// The exchange that must have ended before `number` may be written.
constexpr uint64_t before_slot_of(uint64_t number) {
  return number - (number < slot_ring_grows_at + slot_ring ? first_slot_ring : slot_ring);
}

// When a rank came to the collectives that are compared, by their number (collective/arrival_watch.hpp).
inline constexpr uint32_t arrival_ring = 4 * slot_ring;
struct alignas(cache_line) ArrivalTimes {
  std::atomic<uint64_t> stamps[arrival_ring];
};

struct RankBoard {
  alignas(cache_line) Signal done;    // exchanges that this rank has finished reading
  alignas(cache_line) Signal filled;  // rounds whose cell this rank has filled
  static constexpr uint32_t vectors = 4;
  std::atomic<uint64_t> filled_of[vectors]{};  // in the same line: what the newest of its vectors are (patterns/rounds.hpp)
  alignas(cache_line) Signal reduced;          // rounds whose slice this rank has reduced
  alignas(cache_line) Signal drained;          // rounds that this rank has finished reading
  alignas(cache_line) Signal partial;          // rounds whose slice this rank has reduced over its domain
  alignas(cache_line) Signal spread;           // rounds of which this rank has brought results into its domain
  // Of the domain whose first rank this is (patterns/domain_tickets.hpp): tickets that its ranks have drawn, meetings that are
  // over.
  alignas(cache_line) std::atomic<uint64_t> drawn[2]{};
  alignas(cache_line) Signal met;
  // Collectives over nodes that this rank has come to, of those that look for it.
  alignas(cache_line) std::atomic<uint64_t> came{0};
  std::atomic<uint64_t> stuck_in{0}, stuck_with{0};  // the newest call in which it waited for long (engine/communicator.cpp)
  ArrivalTimes arrivals;
  Slot even_meeting;
  Slot slots[slot_ring];
  Slot odd_meeting;  // far from the other, for the same reason

  Slot& meeting(uint64_t number) { return number % 2 ? odd_meeting : even_meeting; }

  // All but the slots that are not used at first: their rank clears those in time, at exchange `late_slots_cleared_at`. When the
  // first exchange stands there, all ranks have come past that one: whoever waits for a slot is at most a ring ahead of its rank.
  static constexpr uint64_t late_slots_cleared_at = slot_ring_grows_at / 2;
  void clear() {
    __builtin_memset(static_cast<void*>(this), 0, offsetof(RankBoard, even_meeting));
    even_meeting.clear();
    for (uint32_t i = 0; i < first_slot_ring; ++i) slots[i].clear();
    odd_meeting.clear();
  }
  void clear_late_slots() {
    for (uint32_t i = first_slot_ring; i < slot_ring; ++i) slots[i].clear();
  }
};
static_assert(sizeof(RankBoard) == 9 * cache_line + sizeof(ArrivalTimes) + (slot_ring + 2) * sizeof(Slot));

struct Board {
  alignas(cache_line) std::atomic<uint64_t> stage{0};  // where the staging cells are: 0 not asked for, 1 refused, else offset
  std::atomic<uint64_t> presence{0};                   // where the presence board is: likewise (patterns/claims.hpp)
  std::atomic<uint32_t> left{0};                       // ranks that have freed the communicator
  // 1 + a rank that could not take part in what all had chosen, or (by_disagreement) found that others make other calls.
  static constexpr uint32_t by_disagreement = 1u << 31;
  std::atomic<uint32_t> abandoned{0};
  std::atomic<uint32_t> lost{0};  // 1 + a rank that has died, for which somebody's call has ended
  std::atomic<bool> revoked{false};
  static constexpr uint64_t carriers_kept = 64;
  std::atomic<uint64_t> carriers[carriers_kept]{};  // of the newest messages between nodes (hierarchy/cluster.hpp)
  alignas(cache_line) std::atomic<uint64_t> drawn_by_domains[2]{};  // tickets (patterns/domain_tickets.hpp)
  static constexpr int most_seated = 64;
  alignas(cache_line) std::atomic<uint16_t> cpus[most_seated]{};  // 1 + that on which a rank last waited (collective/mates.hpp)
  alignas(cache_line) RankBoard ranks[1];                         // size of them

  static size_t bytes(int size) { return sizeof(Board) + size_t(size - 1) * sizeof(RankBoard); }

  // As if nobody had used it.
  void clear(int size) {
    __builtin_memset(static_cast<void*>(this), 0, offsetof(Board, ranks));
    for (int r = 0; r < size; ++r) ranks[r].clear();
  }
};

}  // namespace stretto::collective
