// The profile from the first MPI call to the end of the process.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.hpp"
#include "engine/identity.hpp"
#include "platform/cpus.hpp"
#include "platform/device_memory.hpp"
#include "shim/hooks.hpp"
#include "shim/process.hpp"
#include "shim/profile/clock_sync.hpp"
#include "shim/profile/datatypes.hpp"
#include "shim/profile/iterations.hpp"
#include "shim/profile/profile.hpp"
#include "shim/profile/queues.hpp"

namespace stretto::shim::profile {
namespace {

trace::Mode mode_named(const char* word) {
  if (strcmp(word, "aggregate") == 0) return trace::Mode::aggregate;
  return strcmp(word, "full") == 0 ? trace::Mode::full : trace::Mode::off;
}

// Only one rank a node speaks, so that a warning is one line.
bool speaks() {
  return engine::locality().rank <= 0;
}

// A process that ends without MPI_Finalize.
void at_exit() {
  trace::calibrate_trace();
}

trace::CallFacts facts_of(uint32_t function) {
  trace::CallFacts facts;
  facts.function = uint16_t(function);
  return facts;
}

void describe(trace::TraceHeader* header, const int32_t* nodes) {
  const trace::Header* record = trace::header();
  header->world_rank = is_spawned() ? -1 : record->world_rank;  // of another world than the job's
  header->world_size = record->world_size;
  if (record->world_rank >= 0) header->node = nodes ? nodes[record->world_rank] : 0;
  const platform::CpuSet cpus = platform::allowed_cpus();
  static_assert(sizeof cpus.word == sizeof header->cpus);
  memcpy(header->cpus, cpus.word, sizeof header->cpus);
  header->stage = uint32_t(trace::Stage::initialised);
}

}  // namespace

void open_profile(const Settings& settings, const trace::Tables& tables) {
  trace::TraceOptions options;
  options.mode = mode_named(settings.profile);
  if (options.mode == trace::Mode::off) return;
  if (settings.record_dir == nullptr || *settings.record_dir == '\0') {
    if (speaks()) log(Level::warning, "STRETTO_PROFILE=%s needs STRETTO_RECORD_DIR: no profile", settings.profile);
    return;
  }
  options.directory = settings.record_dir;
  options.job = settings.job;
  options.limit_bytes = settings.trace_mib << 20u;
  options.iterations = settings.iterations;
  const Status status = trace::open_trace(options, tables);
  if (!status.ok()) {
    const char* why = status.detail > 0 ? strerror(status.detail) : "";
    const char* hint = status.detail == ENOENT ? " (-o names one that all nodes see)" : "";
    if (speaks())
      log(Level::warning, "no profile in %s: %s%s%s%s", settings.record_dir, status.what, *why ? ": " : "", why, hint);
    return;
  }
  atexit(at_exit);
}

void profile_initialised(uint64_t begin, uint32_t function) {
  trace::TraceHeader* header = trace::trace_header();
  if (!header) return;
  const uint64_t end = ticks();
  memcpy(header->library, trace::header()->mpi_library, sizeof header->library);
  if (*header->host == '\0') gethostname(header->host, sizeof header->host - 1);
  const int32_t* nodes = find_nodes();
  describe(header, nodes);
  platform::watch_loader();
  prepare_members(nodes);
  prepare_requests();
  prepare_datatypes();
  prepare_queues();
  if (!prepare_communicators()) trace::add_note("MPI gives no attribute key: communicators are unknown");
  synchronise_clocks(0);
  prepare_iterations(settings());
  if (trace::recording != trace::Mode::off) trace::leave(facts_of(function), begin, end);
  header->init_ticks = ticks();
  trace::calibrate_trace();
  watching = true;
}

void profile_finalizing(uint64_t begin) {
  trace::TraceHeader* header = trace::trace_header();
  if (!header || !watching) return;
  watching = false;
  if (trace::recording != trace::Mode::off) trace::enter(facts_of(number::Finalize), begin);
  header->finalize_ticks = begin;
  end_queues();
  end_requests();
  synchronise_clocks(1);
  end_clocks();
  end_communicators();
  trace::calibrate_trace();
}

void profile_finalized(uint64_t begin, uint64_t end) {
  trace::TraceHeader* header = trace::trace_header();
  if (!header || header->finalize_ticks != begin) return;
  header->stage = uint32_t(trace::Stage::finalized);
  if (trace::recording != trace::Mode::off) trace::leave(facts_of(number::Finalize), begin, end);
  trace::calibrate_trace();
}

void profile_aborting() {
  if (!trace::trace_header()) return;
  if (trace::recording != trace::Mode::off) trace::enter(facts_of(number::Abort), ticks());
  trace::calibrate_trace();
}

void profile_in_fork_child() {
  watching = false;
  trace::trace_after_fork_child();
}

}  // namespace stretto::shim::profile
