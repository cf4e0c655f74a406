#include "nccl/session.hpp"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mutex>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "nccl/calls.hpp"
#include "nccl/functions.hpp"
#include "nccl/library.hpp"
#include "nccl/plugin.hpp"

namespace stretto::nccl {
namespace {

enum class State { unknown, off, on };
std::atomic<State> state{State::unknown};
std::mutex opening;
Settings process_settings;
std::atomic<bool> first_communicator{true};
std::atomic<bool> controlled{false};                // the MPI side tells where iterations begin
std::atomic<const Communicator*> counted{nullptr};  // whose collectives make iterations

// What the MPI side told before there was a trace. Under `opening`.
bool told_off = false;
int64_t told_iteration = -1;

// Rank and size as the launchers tell them. torchrun's come first where torchrun started the process: around it there may be
// a launcher that counts nodes.
struct Launcher {
  const char* condition;
  const char* rank;
  const char* size;
};
constexpr Launcher launchers[] = {
    {"TORCHELASTIC_RUN_ID", "RANK", "WORLD_SIZE"},    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMIX_RANK", "PMIX_RANK", "PMI_SIZE"},           {"PMI_RANK", "PMI_RANK", "PMI_SIZE"},
    {"SLURM_PROCID", "SLURM_PROCID", "SLURM_NTASKS"}, {"RANK", "RANK", "WORLD_SIZE"},
};

int number_in(const char* variable, int otherwise) {
  const char* text = getenv(variable);
  if (!text || *text < '0' || *text > '9') return otherwise;
  return atoi(text);
}

void find_world(int* rank, int* size) {
  *rank = -1;
  *size = 0;
  for (const Launcher& launcher : launchers) {
    if (!getenv(launcher.condition)) continue;
    *rank = number_in(launcher.rank, -1);
    *size = number_in(launcher.size, 0);
    if (*rank >= 0) return;
  }
}

void describe_process() {
  trace::TraceHeader* header = trace::trace_header();
  int size = 0;
  find_world(&header->world_rank, &size);
  header->world_size = size;
  describe_library(header->library, sizeof header->library);
  gethostname(header->host, sizeof header->host - 1);
  trace::add_note("recorded by wrapping nccl* functions and by NCCL's profiler plugin interface, as far as each was in use");
}

void in_fork_child() {
  trace::trace_after_fork_child();
  state.store(State::off, std::memory_order_release);  // NCCL does not follow a fork
}

trace::Mode wanted() {
  if (strcmp(process_settings.profile, "full") == 0) return trace::Mode::full;
  return strcmp(process_settings.profile, "aggregate") == 0 ? trace::Mode::aggregate : trace::Mode::off;
}

bool open_now() {
  const char* offender = "";
  const Status read = read_settings(environ, &process_settings, &offender);
  if (!read.ok() && speaks()) log(Level::warning, "%s: %s: not heeded for NCCL", offender, read.what);
  trace::TraceOptions options;
  options.mode = wanted();
  if (options.mode == trace::Mode::off) return false;
  options.directory = process_settings.record_dir;
  options.suffix = ".nccl";
  options.job = process_settings.job;
  options.limit_bytes = process_settings.trace_mib << 20;
  options.iterations = process_settings.iterations;
  if (!*options.directory) {
    if (speaks()) log(Level::warning, "NCCL is not traced: STRETTO_RECORD_DIR names no folder");
    return false;
  }
  const Status status = trace::open_trace(options, trace_tables());
  if (!status.ok())
    log(Level::warning, "NCCL is not traced: no trace in %s: %s (%s)", options.directory, status.what, strerror(status.detail));
  return status.ok();
}

State open() {
  const std::lock_guard<std::mutex> lock(opening);
  if (state.load(std::memory_order_relaxed) != State::unknown) return state.load(std::memory_order_relaxed);
  const State now = open_now() ? State::on : State::off;
  if (now == State::on) {
    describe_process();
    if (told_iteration >= 0) trace::mark(3, uint32_t(told_iteration));
    if (told_off) trace::switch_recording(false);
    pthread_atfork(nullptr, nullptr, in_fork_child);
  }
  state.store(now, std::memory_order_release);
  return now;
}

// The process ends in good order: what waits for more is written, and the clocks are stamped.
__attribute__((destructor)) void end() {
  if (state.load(std::memory_order_acquire) != State::on || !trace::trace_header()) return;
  write_outstanding();
  trace::TraceHeader* header = trace::trace_header();
  header->finalize_ticks = ticks();
  trace::calibrate_trace();
  header->stage = uint32_t(trace::Stage::finalized);
}

}  // namespace

bool profiled() {
  State now = state.load(std::memory_order_acquire);
  if (now == State::unknown) now = open();
  return now == State::on;
}

const Settings& settings() {
  return process_settings;
}

int world_rank() {
  const trace::TraceHeader* header = trace::trace_header();
  return header ? header->world_rank : -1;
}

int world_size() {
  const trace::TraceHeader* header = trace::trace_header();
  return header ? header->world_size : 0;
}

void count_iterations(const Communicator* communicator, uint32_t sequence) {
  const uint64_t calls = process_settings.iteration_calls;
  if (!calls || controlled.load(std::memory_order_relaxed)) return;
  const Communicator* first = nullptr;
  if (!counted.compare_exchange_strong(first, communicator) && first != communicator) return;
  if (sequence % calls == 0) trace::mark(3, uint32_t(sequence / calls));
}

bool speaks() {
  int rank, size;
  find_world(&rank, &size);
  return rank <= 0;
}

void communicator_made() {
  if (!first_communicator.exchange(false)) return;
  trace::TraceHeader* header = trace::trace_header();
  header->init_ticks = ticks();
  header->stage = uint32_t(trace::Stage::initialised);
  trace::calibrate_trace();
}

void now_and_then() {
  static std::atomic<uint32_t> calls{0};
  if ((calls.fetch_add(1, std::memory_order_relaxed) & 1023) == 1023) trace::calibrate_trace();
}

}  // namespace stretto::nccl

using namespace stretto::nccl;

// MPI_Pcontrol and iterations, from Stretto's MPI library in the same process, which finds this by name. `what` is as in
// trace::MarkEntry: 0 off, 1 on, 2 sums become 0, 3 iteration `number` begins. It makes no trace where NCCL is not used.
extern "C" __attribute__((visibility("default"))) void stretto_nccl_control(uint32_t what, uint32_t number) {
  const std::lock_guard<std::mutex> lock(opening);
  if (what == 3 && number > 0) controlled.store(true, std::memory_order_relaxed);
  if (what <= 1) told_off = what == 0;
  if (what == 3) told_iteration = number;
  if (state.load(std::memory_order_relaxed) != State::on) return;
  if (what <= 1) stretto::trace::switch_recording(what == 1);
  if (what == 2) stretto::trace::reset_sums();
  if (what == 3) stretto::trace::mark(3, number);
}
