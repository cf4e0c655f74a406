// Bcast, comers: along a chain of nodes in the order in which they come, and into each by whichever of its ranks is there.
//
// The rank that carries the message into its node (Cluster::carrier_from) tells the root that it has come. The root names the end
// of the chain to it and it to the end of the chain, of which it is the new end. Slices travel as along a chain in the nodes'
// order (bcast_chain.cpp); a carrier gives its node what it has passed on once all its ranks are there, or all when nothing is
// left to do for other nodes. When the first node of a chain has all, it tells the root, and the chain ends where it is: with
// nodes that come later the root begins another. So of other nodes none waits for a late one, nor for a late rank. After the last
// arrival the message passes one link, or none where the node has it already; if it is the root that was late, the whole chain.
// If none is late m bytes leave each node but the last, and a small message each way goes before them.
#include "collective/hierarchy/chain.hpp"
#include "collective/hierarchy/pieces.hpp"
#include "collective/hierarchy/rows.hpp"

namespace stretto::collective {
namespace {

constexpr uint32_t window = Chain::window;

// How long a node waits for the rank that carried the last message: that has its connections.
constexpr uint64_t patience_ns(size_t bytes) {
  return 20'000 + std::min<size_t>(bytes, 8 << 20) / 64;
}

class BcastByComers {
 public:
  BcastByComers(Cluster& cluster, const Request& request)
      : cluster_(cluster),
        place_(cluster.place),
        links_(*cluster.links),
        request_(request),
        data_(static_cast<char*>(is_root() ? const_cast<void*>(request.input) : request.output)),
        slice_(chain_slice(request.bytes(), place_.nodes)),
        count_(uint32_t((request.bytes() + slice_ - 1) / slice_)),
        before_(*cluster.numbers(0, 1)),
        next_(*cluster.numbers(0, 2)),
        end_(&place_.rank) {
    before_ = next_ = nobody;
  }

  Status run() {
    cluster_.come();
    const int carrier = cluster_.carrier_from(request_.root, patience_ns(request_.bytes()));
    const bool carries = carrier == place_.local;
    if (carries) STRETTO_TRY(is_root() ? begin_chain() : join_chain());
    for (uint32_t given = 0; given < count_;) {
      if (carries) STRETTO_TRY(carry_beyond(given));
      STRETTO_TRY(give_pieces(cluster_, carrier, {data_, request_.bytes(), slice_}, may_give(given), &given));
    }
    for (bool ended; pending_ > 0;) STRETTO_TRY(handle_one(0, &ended));
    return cluster_.leave_message();
  }

 private:
  // What ends: a carrier has come; it is known who is before this one, who is next; a slice has arrived; the first of a chain has
  // all; something has gone.
  enum Event : uint32_t { comer, before, next, slice, complete, slice_gone, gone };
  static constexpr int nobody = -1;

  // The stages of messages. Carriers may be ahead of the root, but by far fewer messages than there are numbers here.
  enum : int { stage_of_slices = 3, stage_of_names, stage_of_complete, first_stage_of_comers };
  static constexpr int stages_of_comers = 16 << 10;
  static_assert(first_stage_of_comers + stages_of_comers <= Links::stages);
  int stage_of_comers() const { return first_stage_of_comers + int(cluster_.messages() % stages_of_comers); }

  bool is_root() const { return place_.rank == request_.root; }
  char* data(uint32_t i) const { return data_ + i * slice_; }
  size_t bytes(uint32_t i) const { return std::min(slice_, request_.bytes() - i * slice_); }
  int* comers() { return cluster_.numbers(0, 0); }  // on the root
  // Whether the first of a chain tells the root that it has all: where nodes may come later.
  bool tells_root() const { return before_ == request_.root && place_.nodes > 2; }
  // This rank has all, and so has whoever gets it from here, but for its own node.
  bool is_served() const { return pending_ == 0; }
  // The pieces that its node may have once piece `given` has arrived: other nodes come first.
  uint32_t may_give(uint32_t given) const { return is_served() ? arrived_ : std::clamp(passed_, given + 1, arrived_); }

  Status begin_chain() {
    arrived_ = count_;
    knows_next_ = place_.nodes == 1;
    for (int i = 0; i < place_.nodes - 1; ++i)
      STRETTO_TRY(receive(Links::anybody, &comers()[i], sizeof(int), stage_of_comers(), comer, uint32_t(i)));
    return Status::good();
  }

  Status join_chain() {
    STRETTO_TRY(receive(request_.root, &before_, sizeof before_, stage_of_names, before, 0));
    STRETTO_TRY(receive(request_.root, &next_, sizeof next_, stage_of_names, next, 0));
    return send(request_.root, &place_.rank, sizeof place_.rank, stage_of_comers(), gone);
  }

  Status expect(uint32_t i) {
    return i < count_ ? receive(before_, data(i), bytes(i), stage_of_slices, slice, i) : Status::good();
  }

  // Until there is something beyond piece `given` to give, and it can be given without keeping the other nodes waiting.
  Status carry_beyond(uint32_t given) {
    constexpr uint64_t long_ago = 1, look_ns = 50'000;
    for (bool waits = false;; waits = true) {
      const bool has_more = arrived_ > given;
      bool ended;
      STRETTO_TRY(handle_one(!waits ? long_ago : has_more ? now_ns() + look_ns : 0, &ended));
      while (ended) STRETTO_TRY(handle_one(long_ago, &ended));
      STRETTO_TRY(pass_on());
      if (arrived_ > given && (is_served() || cluster_.node_is_here())) return Status::good();
    }
  }

  Status pass_on() {
    while (knows_next_ && next_ != nobody && passed_ < arrived_ && going_ < window) {
      STRETTO_TRY(send(next_, data(passed_), bytes(passed_), stage_of_slices, slice_gone));
      ++passed_, ++going_;
    }
    return Status::good();
  }

  // The end of a message, if any ends before the deadline; 0: one does.
  Status handle_one(uint64_t deadline, bool* ended) {
    *ended = false;
    if (pending_ == 0) return Status::good();
    uint32_t number;
    STRETTO_TRY(links_.any_ended(deadline, &number));
    if (number == Links::none) return Status::good();
    *ended = true;
    --pending_;
    const uint32_t i = number & 0xfffffff;
    switch (Event(number >> 28)) {
      case comer:
        return append(comers()[i]);
      case before:
        for (uint32_t k = 0; k < window; ++k) STRETTO_TRY(expect(k));
        return Status::good();
      case next:
        knows_next_ = true;
        return pass_on();
      case slice:
        return arrived(i);
      case complete:
        return end_chain();
      case slice_gone:
        --going_;
        return pass_on();
      default:
        return Status::good();
    }
  }

  // Slices end in any order, and are passed on in their own.
  Status arrived(uint32_t i) {
    has_arrived_[i % window] = true;
    for (; arrived_ < count_ && has_arrived_[arrived_ % window]; ++arrived_) {
      has_arrived_[arrived_ % window] = false;
      STRETTO_TRY(expect(arrived_ + window));
    }
    if (arrived_ == count_ && tells_root()) STRETTO_TRY(send(request_.root, nullptr, 0, stage_of_complete, gone));
    return pass_on();
  }

  // On the root: the chain has a new end.
  Status append(const int& rank) {
    STRETTO_TRY(send(rank, end_, sizeof *end_, stage_of_names, gone));
    if (end_ == &place_.rank && place_.nodes > 2) STRETTO_TRY(receive(rank, nullptr, 0, stage_of_complete, complete, 0));
    STRETTO_TRY(name_next(*end_, rank));
    end_ = &rank;
    return ++joined_ < place_.nodes - 1 ? Status::good() : name_next(rank, nobody);
  }
  Status end_chain() {
    if (joined_ == place_.nodes - 1) return Status::good();
    STRETTO_TRY(name_next(*end_, nobody));
    end_ = &place_.rank;
    knows_next_ = false;
    passed_ = 0;
    return Status::good();
  }
  Status name_next(int to, const int& rank) {
    if (to != place_.rank) return send(to, &rank, sizeof rank, stage_of_names, gone);
    next_ = rank;
    knows_next_ = true;
    return pass_on();
  }

  Status receive(int from, void* to, size_t bytes, int stage, Event event, uint32_t i) {
    ++pending_;
    return links_.post_receive(from, to, bytes, stage, uint32_t(event) << 28 | i);
  }
  Status send(int to, const void* data, size_t bytes, int stage, Event event) {
    ++pending_;
    return links_.post_send(to, data, bytes, stage, uint32_t(event) << 28);
  }

  Cluster& cluster_;
  const Placement& place_;
  Links& links_;
  const Request& request_;
  char* const data_;
  const size_t slice_;    // bytes
  const uint32_t count_;  // at least one: an empty message goes no further than the call

  // Of a carrier.
  uint32_t arrived_ = 0, passed_ = 0, going_ = 0;  // slices
  bool has_arrived_[window] = {};                  // of those on their way
  int &before_, &next_;                            // in memory that outlives a call that failed: what is posted may still end
  bool knows_next_ = false;
  size_t pending_ = 0;  // messages
  // Of the root.
  int joined_ = 0;  // nodes
  const int* end_;  // of the chain: where its rank stands
};

}  // namespace

Status bcast_comers(Cluster& cluster, const Request& request) {
  return BcastByComers(cluster, request).run();
}

}  // namespace stretto::collective
