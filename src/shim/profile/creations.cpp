// Calls that make and free communicators: which one came of which, by which call, so that all its members call it alike.
#include <stdlib.h>

#include <new>

#include "shim/profile/call.hpp"

namespace stretto::shim::profile {
namespace {

const char* how(Shape shape) {
  switch (shape) {
    case Shape::duplicate:
    case Shape::later_duplicate:
      return "duplicate";
    case Shape::split:
      return "split";
    case Shape::subgroup:
    case Shape::subgroup_alone:
      return "subgroup";
    case Shape::topology:
      return "topology";
    case Shape::merge:
      return "merger";
    case Shape::join_groups:
      return "intercommunicator";
    case Shape::from_group:
      return "made from a group";
    case Shape::connect:
      return "connection";
    default:
      return "";
  }
}

// The parent counts where it is the same on all members: not where two groups meet.
Origin origin_of(const Call& call) {
  const Shape shape = call.d().shape;
  const uint64_t tag = call.d().tag < 0 ? 0 : uint32_t(call.words.integer(call.d().tag));
  const bool common = shape != Shape::join_groups && shape != Shape::connect && shape != Shape::from_group;
  return origin_from(how(shape), common ? call.communicator : nullptr, mix(uint64_t(shape), tag));
}

// The handle comes when the request completes; the number is that of this call.
void remember_later(Call& call) {
  const Descriptor& d = call.d();
  if (!call.communicator) return remember_request(call, false, false);
  void* memory = calloc(1, sizeof(LaterCommunicator));
  auto* later = memory ? new (memory) LaterCommunicator : nullptr;
  if (later) {
    later->origin = origin_of(call);
    later->number = draw_number(later->origin, call.communicator->own, call.communicator->remote);
    later->variable = call.words.pointer(d.made);
    later->fortran = call.words.language == Language::fortran;
  }
  remember_request(call, false, false, later);
}

}  // namespace

void before_creation(Call& call) {
  const Descriptor& d = call.d();
  if (d.shape == Shape::release) {
    call.communicator = communicator_of(call.words.handle_at<MPI_Comm>(d.communicator));
    if (call.communicator) call.facts.communicator = call.communicator->index;
    return;
  }
  if (d.root >= 0) call.facts.peer = call.words.integer(d.root);
  if (makes_collectively(d.shape) && call.communicator) draw_sequence(call.facts, call.communicator);
}

void after_creation(Call& call) {
  const Descriptor& d = call.d();
  if (d.shape == Shape::later_duplicate) return remember_later(call);
  if (d.made >= 0) communicator_made(call.words.handle_at<MPI_Comm>(d.made), origin_of(call));
}

}  // namespace stretto::shim::profile
