// What becomes of one call, on a given lane: the code of the hot path.
#pragma once
#include "trace/lane.hpp"
#include "trace/sampling.hpp"
#include "trace/tracer.hpp"

namespace stretto::trace {

inline CellKey cell_key(const CallFacts& facts) {
  const uint64_t larger = facts.sent > facts.received ? facts.sent : facts.received;
  return {uint64_t(facts.function) | uint64_t(facts.communicator) << 16 | uint64_t(facts.datatype) << 32 |
              uint64_t(facts.op) << 48 | uint64_t(facts.location) << 56,
          uint64_t(size_bin(larger)) | uint64_t(facts.outcome) << 8};
}

inline CellKey partner_key(const CallFacts& facts) {
  return {uint64_t(facts.communicator) | uint64_t(facts.direction) << 16 | uint64_t(uint32_t(facts.partner)) << 32, 0};
}

inline void sum_call(Lane& lane, const CallFacts& facts, uint64_t begin, uint64_t spent) {
  Cell* cell = lane.cells.find(cell_key(facts), lane.number);
  if (!cell) return count(&TraceHeader::dropped_cells);
  if (get(cell->calls) == 0) put(cell->first_ticks, begin);
  add(cell->calls, uint64_t(1));
  add(cell->sent, facts.sent);
  add(cell->received, facts.received);
  add(cell->ticks, spent);
  put(cell->last_ticks, begin);
}

inline void sum_partner(Lane& lane, const CallFacts& facts) {
  PartnerCell* cell = lane.partners.find(partner_key(facts), lane.number);
  if (!cell) return count(&TraceHeader::dropped_cells);
  const bool gets = facts.direction == Direction::received || facts.direction == Direction::got;
  add(cell->calls, uint64_t(1));
  add(cell->bytes, gets ? facts.received : facts.sent);
}

inline void sum_between_nodes(Lane& lane, const CallFacts& facts) {
  CallFacts crossing = facts;
  crossing.direction = Direction::between_nodes;
  crossing.partner = int32_t(facts.function | uint32_t(facts.outcome) << 16);
  crossing.sent = facts.between_nodes;
  sum_partner(lane, crossing);
}

inline bool is_wanted(const CallFacts& facts) {
  const Wanted wanted = state.wanted.load(std::memory_order_relaxed);
  if (wanted == Wanted::all) return true;
  return wanted == Wanted::sample && facts.collective && keeps_event(facts.communicator, facts.sequence);
}

inline void fill_event(Event& event, const CallFacts& facts, uint64_t begin, uint8_t flags) {
  event.begin = begin;
  event.function = facts.function;
  event.communicator = facts.communicator;
  event.sequence = facts.sequence;
  event.peer = facts.peer;
  event.tag = facts.tag;
  event.request = facts.request;
  event.datatype = facts.datatype;
  event.op = facts.op;
  event.outcome = facts.outcome;
  event.location = facts.location;
  event.flags = flags;
  event.partitions = facts.partitions;
}

inline void write_event(Lane& lane, const CallFacts& facts, uint64_t begin, uint64_t spent, uint8_t flags) {
  const bool is_wide = ((spent | facts.sent | facts.received) >> 32) != 0;
  Event* event = lane.events.room(is_wide ? 2 : 1, lane.number);
  if (!event) return;
  if (__builtin_expect(is_wide, 0)) {
    fill_event(*event, facts, begin, wide);
    event->spent = uint32_t(spent >> 32);
    event->sent = uint32_t(facts.sent >> 32);
    event->received = uint32_t(facts.received >> 32);
    ++event;
  }
  fill_event(*event, facts, begin, flags);
  event->spent = uint32_t(spent);
  event->sent = uint32_t(facts.sent);
  event->received = uint32_t(facts.received);
  lane.events.commit(is_wide ? 2 : 1);
}

inline void enter_on(Lane& lane, const CallFacts& facts, uint64_t begin) {
  ThreadEntry& inside = *lane.entry;
  put(inside.begin_ticks, begin);
  put(inside.sequence, facts.sequence);
  put(inside.peer, facts.peer);
  put(inside.communicator, facts.communicator);
  std::atomic_ref<uint16_t>(inside.function).store(facts.function, std::memory_order_release);
}

inline void leave_on(Lane& lane, const CallFacts& facts, uint64_t begin, uint64_t end) {
  const uint64_t spent = end > begin ? end - begin : 0;
  if (__builtin_expect(lane.generation != state.generation.load(std::memory_order_relaxed), 0)) catch_up(lane);
  sum_call(lane, facts, begin, spent);
  if (facts.direction != Direction::none) sum_partner(lane, facts);
  if (facts.between_nodes != 0) sum_between_nodes(lane, facts);
  if (is_wanted(facts)) write_event(lane, facts, begin, spent, facts.flags);
  add(lane.entry->events, uint64_t(1));
  if (!facts.timed) add(lane.entry->untimed, uint64_t(1));
  put(lane.entry->function, none16);
}

inline void add_part_on(Lane& lane, const CallFacts& facts, uint64_t begin, uint64_t end) {
  if (__builtin_expect(lane.generation != state.generation.load(std::memory_order_relaxed), 0)) catch_up(lane);
  if (facts.direction != Direction::none) sum_partner(lane, facts);
  if (is_wanted(facts)) write_event(lane, facts, begin, end > begin ? end - begin : 0, facts.flags | part);
}

}  // namespace stretto::trace
