// Calls that complete requests. A call that completes a single request names it; each completed receive, and each request that a
// call completes among several, is a part of the call, as MPI completed it: whom it came from, with which tag, how many bytes.
#include <stdlib.h>

#include "shim/profile/call.hpp"

namespace stretto::shim::profile {
namespace {

using trace::Direction;

size_t request_count(const Call& call) {
  return call.d().count < 0 ? 1 : size_t(call.words.count(call.d().count));
}

uintptr_t null_request() {
  static const uintptr_t null = predefined_value("MPI_REQUEST_NULL");
  return null;
}

uintptr_t handle_now(const Call& call, size_t i) {
  return key_of(call.words.handle_at<MPI_Request>(call.d().request, i));
}

// The handles, as MPI is going to replace them.
void keep_handles(Call& call) {
  const size_t count = request_count(call);
  call.handles = handle_memory(count);
  for (size_t i = 0; call.handles && i < count; ++i) call.handles[i] = handle_now(call, i);
}

void describe_part(trace::CallFacts& part, const Tracked& request, const MPI_Status* status) {
  part.function = request.function;
  part.communicator = request.index;
  part.request = uint32_t(request.number);
  part.peer = request.peer;
  part.tag = request.tag;
  part.datatype = request.datatype;
  part.op = request.op;
  part.location = request.location;
  part.flags = request.flags;
  part.partitions = request.partitions;
  if (status && status_cancelled(*status)) {
    part.flags |= trace::cancelled;
    return;
  }
  if (!request.receives || request.peer == trace::no_peer) return;
  part.received = request.received;
  part.direction = Direction::received;
  if (request.silent || !status) {
    part.partner = request.partners ? request.partners->rank(request.peer) : -1;
    return;
  }
  part.received = status_bytes(*status);
  part.tag = status->MPI_TAG;
  if (status->MPI_SOURCE < 0) return;
  part.peer = status->MPI_SOURCE;
  part.partner = request.partners ? request.partners->rank(status->MPI_SOURCE) : -1;
}

// A MPI_Comm_idup is complete: its communicator is there now.
void finish_later(const Tracked& request) {
  if (!request.later) return;
  Word variable[1] = {reinterpret_cast<Word>(request.later->variable)};
  const Words one{descriptors[request.function], variable, request.later->fortran ? Language::fortran : Language::c};
  communicator_made(one.handle_at<MPI_Comm>(0), request.later->origin, &request.later->number);
  free(request.later);
}

// Request i is complete. False: nothing is known of it.
bool completed(Call& call, size_t i, uintptr_t handle, const MPI_Status* status, trace::CallFacts* part) {
  Tracked request;
  if (handle == null_request() || handle == 0) return false;
  if (!complete(handle, call.words.address_at(call.d().request, i), call.newest, &request)) return false;
  *part = {};
  describe_part(*part, request, status);
  finish_later(request);
  return true;
}

// The call itself tells of the only request that it completed.
void name_request(trace::CallFacts& facts, const trace::CallFacts& part) {
  facts.request = part.request;
  facts.communicator = part.communicator;
  facts.peer = part.peer;
  facts.tag = part.tag;
  facts.datatype = part.datatype;
  facts.flags |= part.flags & (trace::cancelled | trace::any_source | trace::any_tag);
}

void after_one(Call& call, size_t i, uintptr_t handle) {
  if (!completed(call, i, handle, call.statuses, &call.second)) return;
  name_request(call.facts, call.second);
  call.has_second = call.second.direction != Direction::none;
}

bool found_nothing(Call& call) {
  const bool nothing = call.d().flag >= 0 && !call.words.written(call.d().flag);
  if (nothing) call.facts.flags |= trace::incomplete;
  return nothing;
}

void parts_of_all(Call& call, int code) {
  if (call.facts.flags & trace::incomplete) return;
  const size_t count = request_count(call);
  for (size_t i = 0; i < count; ++i) {
    trace::CallFacts part;
    if (code != MPI_SUCCESS && handle_now(call, i) != null_request())
      continue;  // some have failed: this one has not been completed
    if (completed(call, i, call.handles[i], call.statuses ? &call.statuses[i] : nullptr, &part)) call.add_part(part);
  }
}

void parts_of_some(Call& call) {
  const int count = call.words.written(call.d().out_count);
  for (int k = 0; count != MPI_UNDEFINED && k < count; ++k) {
    const int i = call.words.index_at(call.d().indices, size_t(k));
    trace::CallFacts part;
    if (i < 0 || size_t(i) >= request_count(call)) continue;
    if (completed(call, size_t(i), call.handles[i], call.statuses ? &call.statuses[k] : nullptr, &part)) call.add_part(part);
  }
}

void look_at(Call& call) {
  Tracked request;
  if (!look_up(call.handle, nullptr, UINT64_MAX, &request)) return;
  call.facts.request = uint32_t(request.number);
  call.facts.communicator = request.index;
  call.facts.peer = request.peer;
  call.facts.tag = request.tag;
  call.facts.datatype = request.datatype;
}

}  // namespace

void before_completion(Call& call) {
  const Descriptor& d = call.d();
  switch (d.shape) {
    case Shape::wait:
      call.handle = handle_now(call, 0);
      if (call.handle != null_request()) provide_statuses(call, 1);
      break;
    case Shape::wait_any:
      keep_handles(call);
      provide_statuses(call, 1);
      break;
    case Shape::wait_all:
    case Shape::wait_some:
      keep_handles(call);
      provide_statuses(call, request_count(call));
      break;
    case Shape::request_get_status:
      call.handle = key_of(call.words.handle<MPI_Request>(d.request));
      look_at(call);
      break;
    default:
      call.handle = handle_now(call, 0);
      look_at(call);
  }
  call.newest = newest_number();
}

namespace {
// Whether request i was there before the call and is no more.
bool vanished(const Call& call, int i) {
  return i >= 0 && call.handles[i] != null_request() && handle_now(call, size_t(i)) == null_request();
}
}  // namespace

void after_completion(Call& call) {
  const Descriptor& d = call.d();
  if (d.shape == Shape::request_free) {
    Tracked request;
    forget(call.handle, call.words.address_at(d.request, 0), &request);
    return;
  }
  if (d.shape == Shape::cancel || found_nothing(call)) return;
  if (d.shape == Shape::wait && call.handle != null_request()) return after_one(call, 0, call.handle);
  if (d.shape != Shape::wait_any || !call.handles) return;
  const size_t count = request_count(call);
  int i = call.words.index_at(d.index);
  // MPICH 4.0's mpi_f08 gives the index that C has.
  if (call.words.language == Language::fortran && i >= -1 && i + 1 < int(count) && !vanished(call, i) && vanished(call, i + 1))
    ++i;
  if (i >= 0 && size_t(i) < count) after_one(call, size_t(i), call.handles[i]);
}

void completion_parts(Call& call, int code) {
  const Shape shape = call.d().shape;
  if (shape == Shape::wait_all && call.handles) return parts_of_all(call, code);
  if (shape == Shape::wait_some && call.handles && code == MPI_SUCCESS) return parts_of_some(call);
  if (call.has_second) call.add_part(call.second);
}

}  // namespace stretto::shim::profile
