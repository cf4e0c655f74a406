// Point-to-point calls: bytes, partners, and the requests that they start.
#include "shim/profile/call.hpp"
#include "shim/profile/datatypes.hpp"

namespace stretto::shim::profile {
namespace {

using trace::Direction;

// The bytes of a message that a call sends or asks for; to and from nobody: none.
uint64_t message_bytes(const Call& call, int8_t count, int8_t type, int8_t partitions, uint16_t* datatype) {
  const Words& w = call.words;
  const TypeInfo info = type_info(w.handle<MPI_Datatype>(type));
  *datatype = info.index;
  const uint64_t elements = w.count(count) * (partitions < 0 ? 1 : uint64_t(w.integer(partitions)));
  return elements * info.size;
}

void before_send(Call& call) {
  const Descriptor& d = call.d();
  set_peer(call, call.words.integer(d.destination));
  call.facts.sent = message_bytes(call, d.send_count, d.send_type, d.partition, &call.facts.datatype);
  if (call.facts.peer == trace::no_peer) call.facts.sent = 0;
  if (d.partition >= 0) call.facts.partitions = uint16_t(call.words.integer(d.partition));
  if (call.facts.peer != trace::no_peer) call.facts.direction = Direction::sent;
  set_places(call, call.words.pointer(d.send_buffer), nullptr);
}

void before_receive(Call& call) {
  const Descriptor& d = call.d();
  set_peer(call, call.words.integer(d.source));
  call.facts.received = message_bytes(call, d.receive_count, d.receive_type, d.partition, &call.facts.datatype);
  if (call.words.integer(d.source) == MPI_PROC_NULL) call.facts.received = 0;
  if (d.partition >= 0) call.facts.partitions = uint16_t(call.words.integer(d.partition));
  if (call.facts.tag == MPI_ANY_TAG) call.facts.flags |= trace::any_tag;
  set_places(call, nullptr, call.words.pointer(d.receive_buffer));
}

// The receiving half: `second` holds what is asked for.
void before_sendrecv(Call& call) {
  const Words& w = call.words;
  const Descriptor& d = w.d;
  const bool replace = d.shape == Shape::sendrecv_replace;
  before_send(call);
  trace::CallFacts& second = call.second = {};
  const bool nobody = w.integer(d.source) == MPI_PROC_NULL;
  second.function = call.facts.function;
  second.communicator = call.facts.communicator;
  second.received = replace ? message_bytes(call, d.send_count, d.send_type, -1, &second.datatype)
                            : message_bytes(call, d.receive_count, d.receive_type, -1, &second.datatype);
  if (nobody) second.received = 0;
  second.tag = w.integer(d.receive_tag);
  if (second.tag == MPI_ANY_TAG) second.flags |= trace::any_tag;
  if (w.integer(d.source) == MPI_ANY_SOURCE) {
    second.flags |= trace::any_source;
    second.peer = trace::any_peer;
  } else if (!nobody) {
    second.peer = w.integer(d.source);
  }
  const uint8_t to = replace ? place_of(w.pointer(d.send_buffer)) : place_of(w.pointer(d.receive_buffer));
  second.location = uint8_t(0x0f | to << 4);
  call.facts.location = uint8_t((call.facts.location & 0x0f) | to << 4);
  call.facts.received = second.received;
  call.has_second = true;
}

void take_status(trace::CallFacts& facts, const MPI_Status& status, const Members* partners) {
  facts.tag = status.MPI_TAG;
  if (status.MPI_SOURCE < 0) return;
  facts.peer = status.MPI_SOURCE;
  facts.partner = partners ? partners->rank(status.MPI_SOURCE) : -1;
}

void after_receive(Call& call) {
  trace::CallFacts& facts = call.facts;
  if (!call.statuses || call.statuses->MPI_SOURCE == MPI_PROC_NULL) return;
  take_status(facts, *call.statuses, call.partners);
  facts.received = status_bytes(*call.statuses);
  facts.direction = Direction::received;
}

void after_sendrecv(Call& call) {
  if (!call.statuses) return;
  if (call.statuses->MPI_SOURCE == MPI_PROC_NULL) return;
  take_status(call.second, *call.statuses, call.partners);
  call.second.received = call.facts.received = status_bytes(*call.statuses);
  call.second.direction = Direction::received;
}

void after_probe(Call& call) {
  const Descriptor& d = call.d();
  if (d.flag >= 0 && !call.words.written(d.flag)) return void(call.facts.flags |= trace::incomplete);
  if (call.statuses) take_status(call.facts, *call.statuses, call.partners);
  if (d.message < 0) return;
  const MPI_Message message = call.words.handle_at<MPI_Message>(d.message);
  static const uintptr_t nobody = predefined_value("MPI_MESSAGE_NO_PROC");
  if (key_of(message) != nobody) message_matched(key_of(message), {call.partners, call.facts.communicator});
}

void before_matched_receive(Call& call) {
  const Descriptor& d = call.d();
  const Matched matched = message_taken(key_of(call.words.handle_at<MPI_Message>(d.message)));
  call.partners = matched.partners;
  call.facts.communicator = matched.index;
  call.facts.peer = trace::any_peer;
  call.facts.received = message_bytes(call, d.receive_count, d.receive_type, -1, &call.facts.datatype);
  set_places(call, nullptr, call.words.pointer(d.receive_buffer));
}

// What begins when this request is started.
trace::CallFacts facts_of(const Tracked& request) {
  trace::CallFacts facts;
  facts.function = request.function;
  facts.communicator = request.index;
  facts.request = uint32_t(request.number);
  facts.peer = request.peer;
  facts.tag = request.tag;
  facts.sent = request.sent;
  facts.received = request.received;
  facts.datatype = request.datatype;
  facts.op = request.op;
  facts.location = request.location;
  facts.flags = request.flags;
  facts.partitions = request.partitions;
  if (request.sends && request.peer >= 0) {
    facts.direction = Direction::sent;
    facts.partner = request.partners ? request.partners->rank(request.peer) : -1;
  }
  return facts;
}

bool start(const Call& call, size_t i, Tracked* request) {
  return set_number(key_of(call.words.handle_at<MPI_Request>(call.d().request, i)), draw_request_number(), request);
}

// A persistent collective begins: this part of the call is what the other ranks' are matched with.
trace::CallFacts begun(const Tracked& request) {
  trace::CallFacts part = facts_of(request);
  draw_sequence(part, request.communicator);
  part.partitions = 1;
  return part;
}

void before_start(Call& call) {
  Tracked request;
  if (!start(call, 0, &request)) return;
  const uint16_t function = call.facts.function;
  call.facts = facts_of(request);
  call.facts.function = function;
  if (!request.communicator) return;
  call.second = begun(request);
  call.has_second = true;
  call.facts.sequence = call.second.sequence;
}

// All are numbered before MPI sees them: their completion may be waited for elsewhere at once.
void before_startall(Call& call) {
  const size_t count = size_t(call.words.count(call.d().count));
  for (size_t i = 0; i < count; ++i) {
    Tracked request;
    if (!start(call, i, &request)) continue;
    call.facts.sent += request.sent;
    call.facts.received += request.received;
  }
}

void before_ready(Call& call) {
  const Words& w = call.words;
  const Descriptor& d = w.d;
  Tracked request;
  const bool list = d.kinds[d.partition] == 'p';
  const int first = !list ? w.integer(d.partition) : w.integer(0) > 0 ? static_cast<const int*>(w.pointer(d.partition))[0] : 0;
  call.facts.partitions = uint16_t(first);
  if (!look_up(key_of(w.handle<MPI_Request>(d.request)), nullptr, UINT64_MAX, &request)) return;
  call.facts.request = uint32_t(request.number);
  call.facts.communicator = request.index;
  call.facts.datatype = request.datatype;
  call.facts.peer = request.peer;
  call.facts.tag = request.tag;
}

// A prepared call moves nothing yet: its bytes are those of each MPI_Start.
void after_preparing(Call& call) {
  call.facts.sent = call.facts.received = 0;
  call.facts.direction = Direction::none;
}

void startall_parts(const Call& call) {
  const size_t count = size_t(call.words.count(call.d().count));
  for (size_t i = 0; i < count; ++i) {
    Tracked request;
    if (!look_up(key_of(call.words.handle_at<MPI_Request>(call.d().request, i)), nullptr, UINT64_MAX, &request)) continue;
    if (request.number == 0) continue;
    trace::CallFacts part = request.communicator ? begun(request) : facts_of(request);
    call.add_part(part);
  }
}

}  // namespace

void before_message(Call& call) {
  if (call.d().status >= 0) provide_statuses(call, 1);
  switch (call.d().shape) {
    case Shape::send:
      return before_send(call);
    case Shape::receive:
      return before_receive(call);
    case Shape::probe:
      return set_peer(call, call.words.integer(call.d().source));
    case Shape::sendrecv:
    case Shape::sendrecv_replace:
      return before_sendrecv(call);
    case Shape::matched_receive:
      return before_matched_receive(call);
    case Shape::start:
      return before_start(call);
    case Shape::startall:
      return before_startall(call);
    default:
      return before_ready(call);
  }
}

void after_message(Call& call) {
  const Descriptor& d = call.d();
  const bool sends = d.shape == Shape::send || d.shape == Shape::sendrecv || d.shape == Shape::sendrecv_replace;
  if (d.way != Way::does) {
    remember_request(call, sends, d.shape != Shape::send);
    if (d.way == Way::prepares) after_preparing(call);
    return;
  }
  if (d.shape == Shape::receive || d.shape == Shape::matched_receive) return after_receive(call);
  if (d.shape == Shape::probe) return after_probe(call);
  if (call.has_second) return after_sendrecv(call);
  if (d.flag >= 0 && !call.words.written(d.flag)) call.facts.flags |= trace::incomplete;
}

void message_parts(const Call& call) {
  if (call.d().shape == Shape::startall) return startall_parts(call);
  if (!call.has_second || call.d().way != Way::does) return;
  if (call.second.direction == Direction::none && !call.second.collective) return;
  call.add_part(call.second);
}

}  // namespace stretto::shim::profile
