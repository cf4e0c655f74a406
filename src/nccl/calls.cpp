#include "nccl/calls.hpp"

#include <stdlib.h>
#include <string.h>

#include "base/clock.hpp"
#include "nccl/abi.hpp"
#include "nccl/plugin.hpp"
#include "nccl/session.hpp"

namespace stretto::nccl {

constinit thread_local Thread this_thread{};

namespace {

constexpr uint32_t most_waiting = 1u << 20;

// What each rank of n puts in and gets, in counts.
struct Share {
  uint64_t sent, received;
};

Share share_of(const Operands& o, uint64_t n, bool root) {
  switch (o.function) {
    case Reduce:
      return {1, root ? 1u : 0u};
    case Broadcast:
    case Bcast:
      return {root ? 1u : 0u, root ? 0u : 1u};
    case AllGather:
      return {1, n};
    case ReduceScatter:
      return {n, 1};
    case AlltoAll:
      return {n, n};
    case Gather:
      return {1, root ? n : 0};
    case Scatter:
      return {root ? n : 0, 1};
    case Send:
      return {1, 0};
    case Recv:
      return {0, 1};
    default:
      return {1, 1};
  }
}

uint16_t datatype_entry(Datatype datatype) {
  static std::atomic<uint32_t> entries[datatype_count];  // index + 1
  if (datatype < 0 || datatype >= datatype_count) return trace::none16;
  uint32_t known = entries[datatype].load(std::memory_order_acquire);
  if (known) return uint16_t(known - 1);
  trace::DatatypeEntry entry{};
  strncpy(entry.name, datatypes[datatype].name, sizeof entry.name - 1);
  entry.size = entry.extent = datatypes[datatype].bytes;
  const uint16_t index = trace::add_datatype(entry);
  entries[datatype].store(index + 1u, std::memory_order_release);
  return index;
}

uint8_t op_entry(Op op) {
  static std::atomic<uint32_t> entries[op_count];
  if (op < 0) return trace::none8;
  if (op >= op_count) op = op_count - 1;
  uint32_t known = entries[op].load(std::memory_order_acquire);
  if (known) return uint8_t(known - 1);
  const uint8_t index = trace::add_operation(ops[op]);
  entries[op].store(index + 1u, std::memory_order_release);
  return index;
}

// Whether `peer` means anything: NCCL's events have a root in every case.
bool names_a_rank(Function function) {
  switch (function) {
    case Reduce:
    case Broadcast:
    case Bcast:
    case Gather:
    case Scatter:
    case Send:
    case Recv:
      return true;
    default:
      return false;
  }
}

uint64_t bytes_of(Datatype datatype) {
  return datatype < 0 || datatype >= datatype_count ? 0 : datatypes[datatype].bytes;
}

uint8_t location_of(const Communicator* communicator, const Share& share) {
  constexpr uint8_t none = 15;
  const uint8_t both = device_location(communicator);
  const uint8_t send = share.sent ? both & 15 : none;
  const uint8_t receive = share.received ? both >> 4 : none;
  return uint8_t(send | receive << 4);
}

void number(Call& call) {
  if (!call.operation || !call.facts.collective || (call.facts.flags & trace::failed)) return;
  call.facts.sequence = next_sequence(call.communicator);
  if (call.api) tell_sequence(call);
}

// A call that failed does not count on its communicator: where it already has its number, that is given back.
void mark_failed(Call& call) {
  call.facts.flags |= trace::failed;
  if (!call.operation || !call.facts.collective || this_thread.depth) return;
  uint32_t after = call.facts.sequence + 1;
  call.communicator->next_sequence.compare_exchange_strong(after, call.facts.sequence);
}

void write(Call& call) {
  if (!recording()) return;
  if (call.communicator) call.facts.communicator = entry_of(call.communicator);
  trace::leave(call.facts, call.begin, call.end);
  now_and_then();
}

bool make_room() {
  Thread& t = this_thread;
  if (t.waiting_count < t.waiting_capacity) return true;
  const uint32_t capacity = t.waiting_capacity ? 2 * t.waiting_capacity : 64;
  void* larger = capacity > most_waiting ? nullptr : realloc(static_cast<void*>(t.waiting), capacity * sizeof(Call));
  if (!larger) return false;
  t.waiting = static_cast<Call*>(larger);
  t.waiting_capacity = capacity;
  return true;
}

bool same_operation(const Operands& mine, const Operands& theirs) {
  const Function function = mine.function == Bcast ? Broadcast : mine.function;
  if (function != theirs.function) return false;
  if (function == Send) return mine.peer == theirs.peer && mine.send == theirs.send;
  if (function == Recv) return mine.peer == theirs.peer && mine.receive == theirs.receive;
  return mine.send == theirs.send && mine.receive == theirs.receive &&
         mine.count * bytes_of(mine.datatype) == theirs.count * bytes_of(theirs.datatype);
}

}  // namespace

bool is_collective(Function function) {
  return function < Send || function == Bcast;
}

uint32_t next_sequence(Communicator* communicator) {
  const uint32_t sequence = communicator->next_sequence.fetch_add(1, std::memory_order_relaxed);
  count_iterations(communicator, sequence);
  return sequence;
}

trace::CallFacts describe(const Operands& o, Communicator* communicator) {
  trace::CallFacts facts;
  facts.function = o.function;
  facts.communicator = entry_of(communicator);  // from here on its size and rank are known
  const uint64_t unit = o.count * bytes_of(o.datatype);
  const Share share = share_of(o, uint64_t(communicator->size), o.peer == communicator->rank);
  facts.datatype = datatype_entry(o.datatype);
  facts.op = op_entry(o.op);
  facts.sent = unit * share.sent;
  facts.received = unit * share.received;
  if (names_a_rank(o.function)) facts.peer = o.peer;
  if (o.function >= Send && o.function <= Recv) facts.partner = world_rank_of(communicator, o.peer);
  facts.collective = is_collective(o.function);
  facts.location = location_of(communicator, share);
  if (o.function == Send) facts.direction = trace::Direction::sent;
  if (o.function == Recv) facts.direction = trace::Direction::received;
  if (facts.collective && o.function != Bcast && o.send && o.send == o.receive) facts.flags |= trace::in_place;
  return facts;
}

void begin_operation(Call& call, const Operands& operands) {
  Thread& t = this_thread;
  call.operands = operands;
  call.communicator = communicator_of(operands.comm);
  call.facts = describe(operands, call.communicator);
  call.operation = true;
  call.serial = t.depth ? t.serial : ++t.serial;
  if (t.depth == 0) number(call);
  t.current = &call;
  call.begin = ticks();
  if (t.depth == 0 && recording()) trace::enter(call.facts, call.begin);
}

void begin_plain(Call& call, Function function) {
  call.facts.function = function;
  call.serial = this_thread.serial;
  call.begin = ticks();
  if (this_thread.depth == 0 && recording()) trace::enter(call.facts, call.begin);
}

void end_call(Call& call, Result result) {
  Thread& t = this_thread;
  call.end = ticks();
  t.current = nullptr;
  if (result != success && result != in_progress) mark_failed(call);
  if (t.depth && make_room()) {
    memcpy(static_cast<void*>(&t.waiting[t.waiting_count++]), &call, sizeof call);
    return;
  }
  if (t.depth) number(call);
  write(call);
}

void enter_group() {
  Thread& t = this_thread;
  if (t.depth++ == 0) ++t.serial;
}

void before_group_end(bool simulated) {
  Thread& t = this_thread;
  t.ending = true;
  for (uint32_t i = 0; !simulated && i < t.waiting_count; ++i) number(t.waiting[i]);
}

void after_group_end(Outcome outcome) {
  Thread& t = this_thread;
  t.ending = false;
  for (uint32_t i = 0; i < t.waiting_count; ++i) {
    Call& call = t.waiting[i];
    if (call.operation && outcome == Outcome::simulated) continue;
    if (call.operation && outcome == Outcome::failed) call.facts.flags |= trace::failed;
    write(call);
  }
  free(static_cast<void*>(t.waiting));
  t.waiting = nullptr;
  t.waiting_count = t.waiting_capacity = 0;
  ++t.serial;
}

Call* match_call(const Operands& operands, const Communicator* communicator) {
  Thread& t = this_thread;
  auto fits = [&](Call& call) {
    return call.operation && !call.matched && (!communicator || communicator == call.communicator) &&
           same_operation(call.operands, operands);
  };
  if (t.current && fits(*t.current)) return t.current;
  for (uint32_t i = 0; t.ending && i < t.waiting_count; ++i)
    if (fits(t.waiting[i])) return &t.waiting[i];
  return nullptr;
}

}  // namespace stretto::nccl
