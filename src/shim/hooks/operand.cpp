#include "shim/hooks/operand.hpp"

namespace stretto::shim {

using collective::Piece;

namespace {

int give_input(const Job& job, size_t elements, Room& room, size_t bytes, Communicator& communicator) {
  if (!room.reserve(bytes, communicator)) return MPI_ERR_NO_MEM;
  if (job.user && !job.user->prepare(elements)) return MPI_ERR_NO_MEM;
  return job.in.layout ? load(job.in, room.data()) : MPI_SUCCESS;
}

// What the result is stored with afterwards.
int keep_result(Job& job, Layout& layout, ResultTypes& types) {
  if (job.out.layout == nullptr) return MPI_SUCCESS;
  layout = *job.out.layout;
  job.out.layout = &layout;
  return types.keep(layout);
}

void give_back(const Job& job, const Piece& result, Call& call) {
  int code = job.user ? job.user->error() : MPI_SUCCESS;
  if (code == MPI_SUCCESS && job.out.layout) code = store(job.out, result.data, result.bytes);
  if (code != MPI_SUCCESS) call.code = raise(job.comm, code);
}

}  // namespace

[[gnu::noinline, gnu::cold]] bool run_staged(const Entry& entry, Job job, Request& request, Call& call) {
  if (!entry.prepare(request, job.comm, call)) return false;
  if (call.code != MPI_SUCCESS) return true;
  Room room;
  Layout result;
  ResultTypes types(1);
  int code = give_input(job, request.count, room, request.bytes(), *entry.communicator);
  if (code == MPI_SUCCESS) code = keep_result(job, result, types);
  if (code != MPI_SUCCESS) {
    entry.give_up(code, job.comm, call);
    return true;
  }
  Piece got{room.data(), request.bytes()};
  request.input = room.data();
  request.output = job.out.layout ? room.data() : nullptr;
  if (request.kind == collective::Kind::bcast) request.output = room.data(), request.gets = &got;
  entry.finish(request, job.comm, call);
  if (call.code == MPI_SUCCESS) give_back(job, got, call);
  return true;
}

[[gnu::noinline, gnu::cold]] bool run_staged_blocks(const Entry& entry, Job job, Request& request, Piece* blocks, Call& call) {
  if (!entry.prepare(request, job.comm, call)) return false;
  if (call.code != MPI_SUCCESS) return true;
  Room room;
  Layout result;
  ResultTypes types(1);
  size_t own = blocks[entry.rank()].bytes;
  int code = give_input(job, request.count, room, request.bytes() + own, *entry.communicator);
  if (code == MPI_SUCCESS) code = keep_result(job, result, types);
  if (code != MPI_SUCCESS) {
    entry.give_up(code, job.comm, call);
    return true;
  }
  char* next = room.data();
  for (int r = 0; r < entry.size(); next += blocks[r++].bytes) blocks[r].data = next;
  request.input = room.data();
  request.output = next;
  entry.finish(request, job.comm, call);
  if (call.code == MPI_SUCCESS) give_back(job, {next, own}, call);
  return true;
}

}  // namespace stretto::shim
