// One-sided calls: bytes by target. Windows stand for the communicator that they were made on.
#include "shim/profile/call.hpp"
#include "shim/profile/datatypes.hpp"

namespace stretto::shim::profile {
namespace {

using trace::Direction;

// Count times size; a call without a count (MPI_Fetch_and_op) is about one element.
uint64_t bytes_of(const Call& call, int8_t count, int8_t type) {
  return call.words.count(count) * type_info(call.words.handle<MPI_Datatype>(type)).size;
}

void find_window(Call& call) {
  const Window window = window_of(call.words.handle<MPI_Win>(call.d().window));
  call.facts.communicator = window.index;
  call.partners = window.members;
}

void before_put(Call& call) {
  const Descriptor& d = call.d();
  call.facts.sent = bytes_of(call, d.send_count, d.send_type);
  call.facts.direction = Direction::put;
  set_places(call, call.words.pointer(d.send_buffer), nullptr);
}

void before_get(Call& call) {
  const Descriptor& d = call.d();
  call.facts.received = bytes_of(call, d.send_count, d.send_type);
  call.facts.direction = Direction::got;
  set_places(call, nullptr, call.words.pointer(d.send_buffer));
}

// Ignores what the origin gives.
bool only_gets(const Call& call) {
  static const uintptr_t no_op = predefined_value("MPI_NO_OP");
  const Descriptor& d = call.d();
  return d.op >= 0 && d.receive_type >= 0 && key_of(call.words.handle<MPI_Op>(d.op)) == no_op;
}

// Puts and gets at once. The origin's datatype may be that of the result (MPI_Fetch_and_op, MPI_Compare_and_swap).
void before_get_accumulate(Call& call) {
  const Descriptor& d = call.d();
  const bool one_type = d.send_type < 0;
  if (!only_gets(call)) call.facts.sent = bytes_of(call, d.send_count, one_type ? d.receive_type : d.send_type);
  call.facts.received = bytes_of(call, d.receive_count, d.receive_type);
  call.facts.direction = Direction::put;
  set_places(call, only_gets(call) ? nullptr : call.words.pointer(d.send_buffer), call.words.pointer(d.receive_buffer));
  call.has_second = true;
}

}  // namespace

void before_one_sided(Call& call) {
  const Descriptor& d = call.d();
  if (d.shape == Shape::make_window) {
    if (call.communicator) draw_sequence(call.facts, call.communicator);
    return;
  }
  if (d.shape == Shape::win_free) {
    const MPI_Win win = call.words.handle_at<MPI_Win>(d.window);
    call.handle = key_of(win);
    call.facts.communicator = window_of(win).index;
    return;
  }
  find_window(call);
  if (d.destination >= 0) set_peer(call, call.words.integer(d.destination));
  if (d.shape == Shape::other) return;
  const int8_t type = d.send_type < 0 || only_gets(call) ? d.receive_type : d.send_type;
  call.facts.datatype = type_info(call.words.handle<MPI_Datatype>(type)).index;
  if (d.op >= 0) call.facts.op = operation_index(call.words.handle<MPI_Op>(d.op));
  if (call.facts.peer == trace::no_peer) return;
  if (d.shape == Shape::put) return before_put(call);
  if (d.shape == Shape::get) return before_get(call);
  before_get_accumulate(call);
}

void after_one_sided(Call& call) {
  const Descriptor& d = call.d();
  if (d.shape == Shape::make_window) {
    Window window;
    if (call.communicator) window = {call.communicator->own, call.communicator->index};
    return window_made(call.words.handle_at<MPI_Win>(d.window), window);
  }
  if (d.shape == Shape::win_free) return window_freed(call.handle);
  if (d.shape == Shape::other && d.flag >= 0 && !call.words.written(d.flag)) call.facts.flags |= trace::incomplete;
  if (d.request >= 0) remember_request(call, false, false);
}

// What a call that puts and gets has got.
void one_sided_parts(const Call& call) {
  if (!call.has_second) return;
  trace::CallFacts part = call.facts;
  part.sent = 0;
  part.direction = Direction::got;
  call.add_part(part);
}

}  // namespace stretto::shim::profile
