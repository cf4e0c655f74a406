#include "shim/lifecycle.hpp"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/settings.hpp"
#include "engine/identity.hpp"
#include "shim/handles.hpp"
#include "shim/own_comm.hpp"

namespace stretto::shim {

constinit thread_local bool in_lifecycle = false;

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

void leave() {
  if (attached_now.exchange(false)) detach();
  free_own_comm();
}

int not_copied(MPI_Comm, int, void*, void*, void*, int* copy_made) {
  *copy_made = 0;
  return MPI_SUCCESS;
}

int self_ends(MPI_Comm, int, void*, void*) {
  leave();
  return MPI_SUCCESS;
}

// MPI_Finalize begins with the delete callbacks of MPI_COMM_SELF's attributes, those that were set last first. They may
// communicate, so Stretto leaves with its own, which is the first of all. False: it must leave before. So it is where a thread of
// its own may be in MPI's functions, which MPI may keep out during a callback, and over nodes, where communicators are freed.
bool leaves_last = false;
bool leave_with_self() {
  const engine::Locality here = engine::locality();
  if (here.world > here.size || strcmp(settings().progress, "thread") == 0) return false;
  int key;
  return mpi().Comm_create_keyval(not_copied, self_ends, &key, nullptr) == MPI_SUCCESS &&
         mpi().Comm_set_attr(comm_self(), key, nullptr) == MPI_SUCCESS;
}

}  // namespace

void initialised(uint64_t begin, uint32_t index) {
  trace::Header* header = trace::header();
  gethostname(header->host, sizeof header->host - 1);
  header->init_ns = now_ns();
  trace::calibrate();
  if (settings().turns != 0)
    trace::time_every_call();
  else
    trace::prepare_coarse({header->start_ticks, header->start_ns, 0});
  describe_library(header);
  header->stage = uint32_t(trace::Stage::initialised);
  if (library().flavor != own_flavor()) return describe_mismatch(header);
  describe_world(header);
  leaves_last = leave_with_self();
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
  if (!leaves_last) leave();
  trace::header()->finalize_ns = now_ns();
  trace::calibrate();
  trace::header()->stage = uint32_t(trace::Stage::finalized);
}

bool aborting() {
  static std::atomic<bool> begun{false};
  if (begun.exchange(true)) return false;
  library();
  trace::count_call(number::Abort, 0, 0);
  trace::calibrate();
  profile::profile_aborting();
  return true;
}

}  // namespace stretto::shim

using namespace stretto::shim;

namespace {

// By which function a call goes on.
using Next = AnyFunction (*)(uint32_t index);

Word init(Next next, Word argc, Word argv) {
  return init_with(number::Init, [&] {
    int provided;
    const AnyFunction plain = next(number::Init), of_mpi = function_address(number::Init);
    if (!wants_any_thread() || plain != of_mpi) return forward(plain, argc, argv);  // a tool comes here again by PMPI_Init
    return forward(next(number::Init_thread), argc, argv, Word(MPI_THREAD_MULTIPLE), reinterpret_cast<Word>(&provided));
  });
}

Word init_thread(Next next, Word argc, Word argv, Word required, Word provided) {
  return init_with(number::Init_thread, [&] {
    const Word level = wants_any_thread() ? Word(MPI_THREAD_MULTIPLE) : required;
    return forward(next(number::Init_thread), argc, argv, level, provided);
  });
}

Word finalize(Next next) {
  return finalize_with([&] { return forward(next(number::Finalize)); });
}

Word abort_job(Next next, Word comm, Word code) {
  return abort_with([&] { return forward(next(number::Abort), comm, code); });
}

AnyFunction tool_or_mpi(uint32_t index) {
  const AnyFunction tool = tool_behind(index);
  return tool ? tool : function_address(index);
}

AnyFunction mpi_alone(uint32_t index) {
  return function_address(index);
}

}  // namespace

// By both names, as another tool's MPI_Init goes on by PMPI_Init: before Stretto's, or within.
extern "C" {

STRETTO_WRAPPER Word MPI_Init(Word argc, Word argv) {
  return init(tool_or_mpi, argc, argv);
}
STRETTO_WRAPPER Word PMPI_Init(Word argc, Word argv) {
  return init(mpi_alone, argc, argv);
}
STRETTO_WRAPPER Word MPI_Init_thread(Word argc, Word argv, Word required, Word provided) {
  return init_thread(tool_or_mpi, argc, argv, required, provided);
}
STRETTO_WRAPPER Word PMPI_Init_thread(Word argc, Word argv, Word required, Word provided) {
  return init_thread(mpi_alone, argc, argv, required, provided);
}
STRETTO_WRAPPER Word MPI_Finalize() {
  return finalize(tool_or_mpi);
}
STRETTO_WRAPPER Word PMPI_Finalize() {
  return finalize(mpi_alone);
}
STRETTO_WRAPPER Word MPI_Abort(Word comm, Word code) {
  return abort_job(tool_or_mpi, comm, code);
}
STRETTO_WRAPPER Word PMPI_Abort(Word comm, Word code) {
  return abort_job(mpi_alone, comm, code);
}

}  // extern "C"
