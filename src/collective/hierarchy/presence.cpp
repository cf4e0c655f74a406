// Allreduce over nodes, presence: what the nodes that are there can do is done before the late ones come.
//
// One rank of each node takes part between nodes. First they agree on who is late (attendance.hpp). The others, E of N, own a
// part of the vector each: every node gives each owner what it has of its part, slice by slice, the late ones when they come. A
// slice of which all N are there is combined, in node order, and sent to all; meanwhile former ones are given out in the nodes.
// So late nodes own nothing, and all that is left after the last of them has come are its own slices and their results: max(1,
// (N-1)/E) m bytes on the busiest link instead of 2 (N-1)/N m. Where nobody is late it is a reduce-scatter and an allgather
// between all. What is combined with what never depends on who came when. m bytes of room on every owner.
#include <string.h>

#include <bitset>
#include <memory>
#include <new>

#include "collective/hierarchy/across.hpp"
#include "collective/hierarchy/attendance.hpp"
#include "collective/hierarchy/rows.hpp"
#include "collective/patterns/combine.hpp"

namespace stretto::collective {
namespace {

constexpr int most_nodes = Attendance::most_nodes;
constexpr uint32_t most_slices = 256;  // of a part
constexpr uint32_t window = 1;         // slices on their way to an owner: one after the other, not all at a time
constexpr size_t given_out_together = size_t(256) << 10;  // bytes

// How the vector is cut: the same for all, once it is known who is late.
class Parts {
 public:
  void cut(const Request& request, int nodes, const Attendance::Answer& answer) {
    const int owners = nodes - answer.count();
    const size_t grain = line_grain(request.element);
    const size_t longest = (request.count + size_t(owners) - 1) / size_t(owners) + grain;
    const size_t part = longest * request.element;
    slice_ =
        part <= most_slices / 2 * Links::sent_unasked ? Links::sent_unasked : std::clamp<size_t>(part / 32, 256 << 10, 1 << 20);
    slice_ = std::max({slice_ / request.element, longest / most_slices + 1, size_t(1)});
    for (int n = 0, owner = 0; n < nodes; ++n)
      range_[n] = answer.is_late(n) ? Range{} : part_of({0, request.count}, owner++, owners, grain);
    together_ = uint32_t(std::max<size_t>(given_out_together / (slice_ * request.element), 1));
  }
  size_t elements(int owner) const { return range_[owner].size(); }
  size_t slice() const { return slice_; }
  uint32_t slices(int owner) const { return uint32_t((elements(owner) + slice_ - 1) / slice_); }
  uint32_t together() const { return together_; }  // slices given out at once
  Range range(int owner, uint32_t from, uint32_t to) const {
    const Range& part = range_[owner];
    return {std::min(part.begin + from * slice_, part.end), std::min(part.begin + to * slice_, part.end)};
  }
  Range range(int owner, uint32_t i) const { return range(owner, i, i + 1); }

 private:
  Range range_[most_nodes];  // elements; of late nodes none
  size_t slice_ = 0;         // elements
  uint32_t together_ = 1;
};

// What ends: a message of the given kind from or to a node.
enum Event : uint32_t { contribution = Attendance::events, given, result, handed };
constexpr uint32_t number_of(uint32_t event, int node, uint32_t slice) {
  return event << 24 | uint32_t(node) << 16 | slice;
}

class ByThePresent {
 public:
  ByThePresent(Cluster& cluster, const Request& request)
      : cluster_(cluster),
        place_(cluster.place),
        links_(*cluster.links),
        request_(request),
        attendance_(cluster, request.bytes()) {}

  Status run() {
    STRETTO_TRY(reduce_in_node());
    if (leads()) STRETTO_TRY(attendance_.agree(reserve()));
    Attendance::Answer answer = attendance_.answer();
    STRETTO_TRY(give_out(&answer, sizeof answer));
    if (answer.room == 0) return without_room();
    parts_.cut(request_, nodes(), answer);
    const uint64_t begin = now_ns();
    if (leads()) STRETTO_TRY(begin_exchange());
    STRETTO_TRY(give_out_results());
    STRETTO_TRY(handle_until([&] { return pending_ + attendance_.pending() == 0; }));
    attendance_.took(now_ns() - begin);
    return Status::good();
  }

 private:
  bool leads() const { return place_.leads(0); }
  int nodes() const { return place_.nodes; }
  int node() const { return place_.node; }
  int after(int k) const { return (place_.node + k) % place_.nodes; }
  size_t bytes(size_t elements) const { return elements * request_.element; }
  char* vector(const Range& range) const { return static_cast<char*>(request_.output) + bytes(range.begin); }

  Status reduce_in_node() {
    Request phase = request_;
    phase.kind = Kind::reduce;
    phase.root = 0;
    phase.output = leads() ? request_.output : nullptr;
    return cluster_.run_in_node(phase);
  }

  Status give_out(void* data, size_t bytes) {
    if (bytes == 0) return Status::good();
    Request phase;
    phase.kind = Kind::bcast;
    phase.count = bytes;
    phase.input = phase.output = data;
    return cluster_.run_in_node(phase);
  }

  // In an order that is the same on all ranks of the node.
  Status give_out_results() {
    for (uint32_t i = 0; i < most_slices; i += parts_.together())
      for (int owner = 0; owner < nodes(); ++owner) {
        const uint32_t end = std::min(i + parts_.together(), parts_.slices(owner));
        STRETTO_TRY(handle_until([&] {
          for (uint32_t k = i; k < end; ++k)
            if (leads() && !ready_[owner][k]) return false;
          return true;
        }));
        const Range range = parts_.range(owner, i, i + parts_.together());
        STRETTO_TRY(give_out(vector(range), bytes(range.size())));
      }
    return Status::good();
  }

  // Of this node's part from every node, however many are late.
  bool reserve() {
    const size_t owners = size_t(nodes() - Attendance::most_late(nodes()));
    const size_t most = bytes(request_.count / owners + 1) + 2 * std::max(cache_line, request_.element);
    room_.reset(new (std::nothrow) char[most * size_t(nodes())]);
    return room_ != nullptr;
  }
  char* room(int from, uint32_t i) const {
    return room_.get() + bytes(size_t(from) * parts_.elements(node()) + i * parts_.slice());
  }

  Status receive(int from, uint32_t i, char* to, const Range& range, Event event) {
    ++pending_;
    const int stage = event == contribution ? 1 : 2;
    return links_.post_receive(place_.rank_at(from, 0), to, bytes(range.size()), stage, number_of(event, from, i));
  }
  Status send(int to, uint32_t i, const Range& range, Event event) {
    ++pending_;
    const int stage = event == given ? 1 : 2;
    return links_.post_send(place_.rank_at(to, 0), vector(range), bytes(range.size()), stage, number_of(event, to, i));
  }

  // Each node begins with another owner.
  Status begin_exchange() {
    for (uint32_t i = 0; i < most_slices; ++i)
      for (int k = 1; k < nodes(); ++k) {
        const int owner = after(k), from = after(nodes() - k);
        if (i < parts_.slices(node())) STRETTO_TRY(receive(from, i, room(from, i), parts_.range(node(), i), contribution));
        if (i < window) STRETTO_TRY(give_next(owner));
      }
    return Status::good();
  }

  Status give_next(int owner) {
    const uint32_t i = given_[owner]++;
    return i < parts_.slices(owner) ? send(owner, i, parts_.range(owner, i), given) : Status::good();
  }

  template <class Done>
  Status handle_until(Done done) {
    while (!done()) {
      uint32_t number;
      STRETTO_TRY(links_.any_ended(0, &number));
      STRETTO_TRY(handle(number));
    }
    return Status::good();
  }

  Status handle(uint32_t number) {
    if (attendance_.ended(number)) return Status::good();
    const int peer = int(number >> 16 & 0xff);
    const uint32_t i = number & 0xffff;
    --pending_;
    switch (number >> 24) {
      case contribution:
        return contributed(i);
      case given:
        STRETTO_TRY(give_next(peer));
        return expect_results(peer, i);
      case result:
        ready_[peer].set(i);
        return Status::good();
      default:
        return Status::good();
    }
  }

  Status contributed(uint32_t i) {
    ++contributions_[i];
    while (combined_ < parts_.slices(node()) && contributions_[combined_] == nodes() - 1) STRETTO_TRY(combine_own(combined_++));
    return Status::good();
  }

  Status combine_own(uint32_t i) {
    const Range range = parts_.range(node(), i);
    memcpy(room(node(), i), vector(range), bytes(range.size()));
    const void** inputs = cluster_.inputs();
    for (int n = 0; n < nodes(); ++n) inputs[n] = room(n, i);
    combine(request_, inputs, nodes(), vector(range), range.size());
    ready_[node()].set(i);
    for (int k = 1; k < nodes(); ++k) STRETTO_TRY(send(after(k), i, range, handed));
    return Status::good();
  }

  // A result stands where the contribution stood, which must have gone. Results come in the order of the slices.
  Status expect_results(int owner, uint32_t i) {
    gone_[owner].set(i);
    for (uint32_t& next = expected_[owner]; next < parts_.slices(owner) && gone_[owner][next]; ++next)
      STRETTO_TRY(receive(owner, next, vector(parts_.range(owner, next)), parts_.range(owner, next), result));
    return Status::good();
  }

  // A node has no memory: slice by slice in the room that each has.
  Status without_room() {
    STRETTO_TRY(handle_until([&] { return attendance_.pending() == 0; }));
    const size_t most = std::max<size_t>(slice_most(cluster_) / request_.element, 1);
    for (size_t at = 0; leads() && at < request_.count; at += most) {
      const size_t n = std::min(most, request_.count - at);
      STRETTO_TRY(allreduce_across(cluster_, request_, vector({at, at + n}), n));
    }
    return give_out(request_.output, request_.bytes());
  }

  Cluster& cluster_;
  const Placement& place_;
  Links& links_;
  const Request& request_;
  Attendance attendance_;
  Parts parts_;
  std::unique_ptr<char[]> room_;
  size_t pending_ = 0;                                             // messages
  uint8_t contributions_[most_slices] = {};                        // to each slice of this node's part
  uint32_t combined_ = 0;                                          // slices
  std::bitset<most_slices> gone_[most_nodes], ready_[most_nodes];  // by owner: slices given, and results that are here
  uint32_t given_[most_nodes] = {}, expected_[most_nodes] = {};
};

}  // namespace

Status allreduce_presence(Cluster& cluster, const Request& request) {
  if (cluster.place.nodes < 3 || cluster.place.nodes > most_nodes) return allreduce_streamed(cluster, request);
  return ByThePresent(cluster, request).run();
}

}  // namespace stretto::collective
