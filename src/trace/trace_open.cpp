// The life of a trace: opening, switching, the child of a fork.
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "trace/lane.hpp"
#include "trace/memory.hpp"
#include "trace/tables.hpp"
#include "trace/trace_cost.hpp"
#include "trace/tracer.hpp"

namespace stretto::trace {

namespace {

constexpr const char* tick_source =
#if defined(__x86_64__)
    "tsc";
#elif defined(__aarch64__)
    "cntvct";
#else
    "CLOCK_MONOTONIC";
#endif

uint64_t realtime_ns() {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
}

void write_header(TraceHeader* header, const TraceOptions& options) {
  header->version = trace_version;
  header->header_bytes = page_bytes;
  header->mode = uint32_t(options.mode);
  header->world_rank = header->node = -1;
  header->pid = getpid();
  const ClockPair now = read_both(10);
  header->start_ticks = header->last_ticks = now.ticks;
  header->start_ns = header->last_ns = now.ns;
  header->start_realtime_ns = realtime_ns();
  header->limit_bytes = options.limit_bytes;
  gethostname(header->host, sizeof header->host - 1);
  snprintf(header->job, sizeof header->job, "%s", options.job ? options.job : "");
  snprintf(header->clock, sizeof header->clock, "%s", tick_source);
}

// Last of all: a file without it is not complete.
void write_magic(TraceHeader* header) {
  uint64_t magic;
  static_assert(sizeof magic == sizeof trace_magic);
  memcpy(&magic, trace_magic, sizeof magic);
  std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(header->magic)).store(magic, std::memory_order_release);
}

bool in_iterations(uint64_t number) {
  return state.first_iteration <= number && number <= state.last_iteration;
}

bool all_iterations() {
  return state.first_iteration == 0 && state.last_iteration == UINT64_MAX;
}

void want_events(bool wanted) {
  const Wanted which = !wanted ? Wanted::none : state.mode == Mode::full ? Wanted::all : Wanted::sample;
  state.wanted.store(which, std::memory_order_relaxed);
}

void adopt(const TraceOptions& options) {
  state.mode = options.mode;
  state.limit_bytes = options.limit_bytes;
  state.event_section = options.event_section / page_bytes * page_bytes;
  if (state.event_section < page_bytes) state.event_section = page_bytes;
  state.first_iteration = options.iterations.first;
  state.last_iteration = options.iterations.last;
}

Status write_beginning(const TraceOptions& options, const Tables& tables, TraceHeader** header) {
  if (options.limit_bytes < 2 * page_bytes) return no_memory("the limit of the trace is too small");
  void* page = nullptr;
  STRETTO_TRY(state.file.grow(page_bytes, &page));
  *header = static_cast<TraceHeader*>(page);
  write_header(*header, options);
  return write_name_tables(tables);
}

// Under the mutex.
void append_mark_now(uint32_t what, uint32_t number) {
  if (!append_mark({ticks(), what, number})) count(&TraceHeader::dropped_events);
}

void set_recording(Mode mode) {
  std::atomic_ref<Mode>(recording).store(mode, std::memory_order_relaxed);
}

}  // namespace

Status open_trace(const TraceOptions& options, const Tables& tables) {
  const std::lock_guard<std::mutex> lock(state.mutex);
  if (live_header()) return invalid("the trace is open already");
  if (options.mode == Mode::off) return invalid("there is nothing to trace");
  char tail[64];
  snprintf(tail, sizeof tail, "%s.trace", options.suffix);
  adopt(options);
  STRETTO_TRY(prepare_lanes());
  STRETTO_TRY(state.file.create(options.directory, tail));
  TraceHeader* header = nullptr;
  if (const Status status = write_beginning(options, tables, &header); !status.ok()) {
    state.file.remove();
    return status;
  }
  want_events(true);
  header->event_cost_ticks = state.call_cost = measure_call_cost();
  header->clock_cost_ticks = measure_clock_cost();
  want_events(all_iterations());
  header->file_bytes = state.file.bytes();
  write_magic(header);
  state.header.store(header, std::memory_order_release);
  set_recording(options.mode);
  return Status::good();
}

TraceHeader* trace_header() {
  return live_header();
}

void calibrate_trace() {
  TraceHeader* header = live_header();
  if (!header) return;
  const ClockPair now = read_both();
  put(header->last_ticks, now.ticks);
  put(header->last_ns, now.ns);
}

// The file stays the parent's: what the child still holds pointers to becomes memory of its own.
void trace_after_fork_child() {
  TraceHeader* header = live_header();
  set_recording(Mode::off);
  if (!header) return;
  state.wanted.store(Wanted::none, std::memory_order_relaxed);
  state.header.store(nullptr, std::memory_order_release);
  forget_lanes();
  [[maybe_unused]] const Status ignored = make_private(header, page_bytes, page_bytes);
  detach_tables();
}

void switch_recording(bool on) {
  if (!live_header()) return;
  const std::lock_guard<std::mutex> lock(state.mutex);
  const Mode mode = on ? state.mode : Mode::off;
  if (recording == mode) return;
  append_mark_now(on ? 1 : 0, 0);
  set_recording(mode);
}

void reset_sums() {
  if (!live_header()) return;
  const std::lock_guard<std::mutex> lock(state.mutex);
  append_mark_now(2, 0);
  state.generation.fetch_add(1, std::memory_order_relaxed);
  zero_lanes();
}

void mark(uint32_t what, uint32_t number) {
  if (!live_header()) return;
  const std::lock_guard<std::mutex> lock(state.mutex);
  append_mark_now(what, number);
  if (what == 3) want_events(in_iterations(number));
}

}  // namespace stretto::trace
