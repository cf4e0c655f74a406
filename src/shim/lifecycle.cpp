#include "shim/lifecycle.hpp"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/settings.hpp"
#include "engine/identity.hpp"
#include "shim/handles.hpp"
#include "shim/own_comm.hpp"

namespace stretto::shim {

namespace {

// The first line, with single spaces.
void describe_library(trace::Header* header) {
  static char text[8192];  // as much as any MPI writes
  int length = 0;
  if (mpi().Get_library_version.present()) mpi().Get_library_version(text, &length);
  size_t end = 0;
  for (const char* c = text; *c && *c != '\n' && end + 1 < sizeof header->mpi_library; ++c) {
    const char next = *c == '\t' ? ' ' : *c;
    if (next != ' ' || (end > 0 && header->mpi_library[end - 1] != ' ')) header->mpi_library[end++] = next;
  }
  header->mpi_library[end] = '\0';
}

void describe_world(trace::Header* header) {
  if (!comm_world()) return;
  int rank = -1;
  int size = 0;
  mpi().Comm_rank(comm_world(), &rank);
  mpi().Comm_size(comm_world(), &size);
  header->world_rank = rank;
  header->world_size = size;
}

void describe_mismatch(trace::Header* header) {
  snprintf(header->verdict, sizeof header->verdict, "the preload is for %s but the program uses %s", name(own_flavor()),
           name(library().flavor));
}

}  // namespace

void initialised(uint64_t begin, uint32_t index) {
  trace::Header* header = trace::header();
  gethostname(header->host, sizeof header->host - 1);
  header->init_ns = now_ns();
  trace::calibrate();
  trace::prepare_coarse({header->start_ticks, header->start_ns, 0});
  describe_library(header);
  header->stage = uint32_t(trace::Stage::initialised);
  if (library().flavor != own_flavor()) return describe_mismatch(header);
  describe_world(header);
  prepare_handles();
  attach();
  attached_now.store(true, std::memory_order_release);
  profile::profile_initialised(begin, index);
}

bool wants_any_thread() {
  const Settings& s = settings();
  if (!s.accelerate || strcmp(s.progress, "thread") != 0 || strcmp(s.nodes, "off") == 0) return false;
  const engine::Locality here = engine::locality();
  return here.world > here.size && library().flavor == own_flavor();
}

void finalizing(uint64_t begin) {
  library();
  profile::profile_finalizing(begin);
  if (attached_now.exchange(false)) detach();
  free_own_comm();
  trace::header()->finalize_ns = now_ns();
  trace::calibrate();
  trace::header()->stage = uint32_t(trace::Stage::finalized);
}

void aborting() {
  library();
  trace::count_call(number::Abort, 0, 0);
  trace::calibrate();
  profile::profile_aborting();
}

}  // namespace stretto::shim

using namespace stretto::shim;

extern "C" {

STRETTO_WRAPPER Word MPI_Init(Word argc, Word argv) {
  return init_with(number::Init, [&] {
    int provided;
    if (!wants_any_thread()) return forward(function_address(number::Init), argc, argv);
    return forward(function_address(number::Init_thread), argc, argv, Word(MPI_THREAD_MULTIPLE),
                   reinterpret_cast<Word>(&provided));
  });
}

STRETTO_WRAPPER Word MPI_Init_thread(Word argc, Word argv, Word required, Word provided) {
  return init_with(number::Init_thread, [&] {
    const Word level = wants_any_thread() ? Word(MPI_THREAD_MULTIPLE) : required;
    return forward(function_address(number::Init_thread), argc, argv, level, provided);
  });
}

STRETTO_WRAPPER Word MPI_Finalize() {
  return finalize_with([] { return forward(function_address(number::Finalize)); });
}

STRETTO_WRAPPER Word MPI_Abort(Word comm, Word code) {
  return abort_with([&] { return forward(function_address(number::Abort), comm, code); });
}

}  // extern "C"
