#include "trace/lane.hpp"

#include <pthread.h>
#include <unistd.h>

#include <new>

#include "trace/table.hpp"

namespace stretto::trace {

__attribute__((tls_model("initial-exec"))) constinit thread_local Lane* own_lane = nullptr;

namespace {

using Threads = Table<ThreadEntry, 1, 64>;

constinit Threads threads(SectionType::threads);
constinit Lane* lanes[Threads::most] = {};
constinit uint16_t free_lanes[Threads::most] = {};  // a stack
constinit uint32_t free_count = 0;
constinit Lane lost_lane(true);
pthread_key_t thread_end;

void give_lane_back(void* lane) {
  own_lane = nullptr;
  const std::lock_guard<std::mutex> lock(state.mutex);
  put(static_cast<Lane*>(lane)->entry->function, none16);
  free_lanes[free_count++] = static_cast<Lane*>(lane)->number;
}

ThreadEntry describe_thread() {
  ThreadEntry entry{};
  entry.tid = uint32_t(gettid());
  entry.function = entry.communicator = none16;
  entry.peer = no_peer;
  pthread_getname_np(pthread_self(), entry.name, sizeof entry.name);
  return entry;
}

Lane* new_lane() {
  if (threads.size() == Threads::most) return nullptr;
  Lane* lane = new (std::nothrow) Lane;
  if (lane) lane->entry = threads.append(describe_thread());
  if (!lane || !lane->entry) {
    delete lane;
    return nullptr;
  }
  lane->number = uint16_t(threads.size() - 1);
  lanes[lane->number] = lane;
  return lane;
}

// The tid and the name are those of the lane's latest thread; its calls go on being counted.
Lane* reuse_lane() {
  Lane* lane = lanes[free_lanes[--free_count]];
  ThreadEntry entry = describe_thread();
  entry.events = lane->entry->events;
  entry.untimed = lane->entry->untimed;
  *lane->entry = entry;
  return lane;
}

template <class Word>
void zero(Word& word) {
  put(word, Word(0));
}

void zero_sums(Lane& lane) {
  lane.cells.each([](Cell& cell) {
    for (uint64_t* word : {&cell.calls, &cell.sent, &cell.received, &cell.ticks, &cell.first_ticks, &cell.last_ticks})
      zero(*word);
  });
  lane.partners.each([](PartnerCell& cell) {
    zero(cell.calls);
    zero(cell.bytes);
  });
}

}  // namespace

Lane* join_lane() {
  if (!live_header()) return &lost_lane;
  const std::lock_guard<std::mutex> lock(state.mutex);
  Lane* lane = free_count ? reuse_lane() : new_lane();
  if (lane) pthread_setspecific(thread_end, lane);
  own_lane = lane ? lane : &lost_lane;
  return own_lane;
}

void catch_up(Lane& lane) {
  const std::lock_guard<std::mutex> lock(state.mutex);
  lane.generation = state.generation.load(std::memory_order_relaxed);
  zero_sums(lane);
}

void zero_lanes() {
  for (uint32_t i = 0; i < threads.size(); ++i)
    if (lanes[i]) zero_sums(*lanes[i]);
}

Status prepare_lanes() {
  return pthread_key_create(&thread_end, give_lane_back) == 0 ? Status::good()
                                                              : no_memory("no thread-specific key for the trace");
}

void forget_lanes() {
  own_lane = &lost_lane;
  pthread_setspecific(thread_end, nullptr);
}

}  // namespace stretto::trace
