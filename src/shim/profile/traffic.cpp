// Bytes of collectives: what this rank contributes and gets, as the arguments say (docs/wrapped_functions.md).
#include "shim/profile/call.hpp"
#include "shim/profile/datatypes.hpp"

namespace stretto::shim::profile {
namespace {

// One side of a collective: its buffer, counts and types. A type is looked at only where it counts: elsewhere it may be anything.
struct Side {
  const Words* words;
  int8_t buffer, one_count, counts, type, types;

  const void* address() const { return words->pointer(buffer); }
  TypeInfo info_at(size_t i) const {
    if (types >= 0) return type_info(words->handle_at<MPI_Datatype>(types, i));
    return type < 0 ? TypeInfo{} : type_info(words->handle<MPI_Datatype>(type));
  }
  // Of block i; without a list of counts all are alike.
  uint64_t block(size_t i) const {
    const uint64_t count = counts < 0 ? words->count(one_count) : words->count_at(counts, i);
    return count == 0 ? 0 : count * info_at(i).size;
  }
  uint64_t blocks(size_t number, const bool* absent = nullptr) const {
    if (counts < 0 && !absent) return number * block(0);
    uint64_t sum = 0;
    for (size_t i = 0; i < number; ++i)
      if (!absent || !absent[i]) sum += block(i);
    return sum;
  }
};

Side send_side(const Words& w) {
  const Descriptor& d = w.d;
  return {&w, d.send_buffer, d.send_count, d.send_counts, d.send_type, d.send_types};
}
Side receive_side(const Words& w) {
  const Descriptor& d = w.d;
  return {&w, d.receive_buffer, d.receive_count, d.receive_counts, d.receive_type, d.receive_types};
}

// Who takes which part in a collective with a root.
struct Roles {
  bool sends = true, receives = true;  // its send, its receive arguments count
  bool none() const { return !sends && !receives; }
};

Roles roles_to_root(const Communicator& c, int root) {
  if (c.inter()) return {root != MPI_ROOT && root != MPI_PROC_NULL, root == MPI_ROOT};
  return {true, root == c.rank};
}
Roles roles_from_root(const Communicator& c, int root) {
  if (c.inter()) return {root == MPI_ROOT, root != MPI_ROOT && root != MPI_PROC_NULL};
  return {root == c.rank, true};
}

void set_type(trace::CallFacts& facts, const Side& first, const Side& second, bool use_first) {
  const Side& side = use_first ? first : second;
  facts.datatype = side.types < 0 ? side.info_at(0).index : trace::none16;
}

struct Collective {
  Call& call;
  Communicator& c;
  Side send, receive;
  size_t others;  // ranks whose blocks are exchanged
  bool in_place;
  const void *from = nullptr, *to = nullptr;  // buffers in use

  trace::CallFacts& facts() const { return call.facts; }
  void contributes(uint64_t bytes) {
    facts().sent = bytes;
    from = in_place ? receive.address() : send.address();
  }
  void gets(uint64_t bytes) {
    facts().received = bytes;
    to = receive.address();
  }

  void bcast(int root) {
    const Roles roles = roles_from_root(c, root);
    if (roles.none()) return;
    const uint64_t bytes = send.block(0);
    set_type(facts(), send, send, true);
    if (roles.sends) {
      contributes(bytes);
    } else if (roles.receives) {
      facts().received = bytes;
      to = send.address();
    }
  }

  // The result has the datatype and the count of the contribution.
  void reduction(bool sends, bool receives) {
    if (!sends && !receives) return;
    const uint64_t bytes = send.block(0);
    set_type(facts(), send, send, true);
    if (sends) contributes(bytes);
    if (receives) gets(bytes);
  }

  void gather(int root) {
    const Roles roles = roles_to_root(c, root);
    if (roles.none()) return;
    set_type(facts(), send, receive, roles.sends && !in_place);
    if (roles.sends) contributes(in_place ? receive.block(size_t(c.rank)) : send.block(0));
    if (roles.receives) gets(receive.blocks(others));
  }

  void scatter(int root) {
    const Roles roles = roles_from_root(c, root);
    if (roles.none()) return;
    const bool into_place = receive.address() == MPI_IN_PLACE;
    facts().flags |= into_place ? trace::in_place : 0;
    set_type(facts(), send, receive, roles.sends);
    if (roles.sends) contributes(send.blocks(others));
    if (!roles.receives) return;
    gets(into_place ? send.block(size_t(c.rank)) : receive.block(0));
    if (into_place) to = nullptr;
  }

  void allgather() {
    set_type(facts(), send, receive, !in_place);
    contributes(in_place ? receive.block(size_t(c.rank)) : send.block(0));
    gets(receive.blocks(others));
  }

  void alltoall() {
    const Side& sending = in_place ? receive : send;
    set_type(facts(), send, receive, !in_place);
    contributes(sending.blocks(others));
    gets(receive.blocks(others));
  }

  void reduce_scatter() {
    set_type(facts(), receive, receive, true);
    contributes(receive.blocks(size_t(c.size)));
    gets(receive.block(size_t(c.rank)));
  }

  void among_neighbours(bool all_to_all) {
    const Neighbours& n = *neighbours_of(&c);
    set_type(facts(), send, receive, true);
    contributes(all_to_all ? send.blocks(size_t(n.destinations), n.absent_destinations) : send.block(0));
    gets(receive.blocks(size_t(n.sources), n.absent_sources));
  }

  void measure(Shape shape, int root) {
    switch (shape) {
      case Shape::bcast:
        return bcast(root);
      case Shape::reduce:
        return reduction(roles_to_root(c, root).sends, roles_to_root(c, root).receives);
      case Shape::allreduce:
      case Shape::scan:
        return reduction(true, true);
      case Shape::exscan:
        return reduction(true, c.rank > 0);
      case Shape::gather:
        return gather(root);
      case Shape::scatter:
        return scatter(root);
      case Shape::allgather:
        return call.d().neighbours ? among_neighbours(false) : allgather();
      case Shape::alltoall:
        return call.d().neighbours ? among_neighbours(true) : alltoall();
      case Shape::reduce_scatter:
      case Shape::reduce_scatter_block:
        return reduce_scatter();
      default:
        return;
    }
  }
};

}  // namespace

void before_collective(Call& call) {
  const Words& w = call.words;
  const Descriptor& d = w.d;
  Communicator* c = call.communicator;
  if (!c) return;
  if (d.way != Way::prepares) draw_sequence(call.facts, c);
  if (d.shape == Shape::barrier) return;
  const bool in_place = d.send_buffer >= 0 && w.pointer(d.send_buffer) == MPI_IN_PLACE;
  if (in_place) call.facts.flags |= trace::in_place;
  if (d.op >= 0) call.facts.op = operation_index(w.handle<MPI_Op>(d.op));
  const int root = w.integer(d.root);
  if (d.root >= 0 && root >= 0) call.facts.peer = root;
  Collective collective{call, *c, send_side(w), receive_side(w), size_t(c->partners()->count), in_place};
  collective.measure(d.shape, root);
  set_places(call, collective.from, collective.to);
}

}  // namespace stretto::shim::profile
