// Gather, Scatter, Allgather, Alltoall and their forms with varying sizes. Every message is drawn from the numbers of its sender
// and receiver, so that each rank knows what it must receive; layouts, places and widths of arguments are each rank's own.
#include <algorithm>
#include <memory>
#include <numeric>

#include "calls.hpp"

namespace differential {
namespace {

enum class Kind { gather, scatter, allgather, alltoall, gatherv, scatterv, allgatherv, alltoallv, alltoallw };
constexpr const char* names[] = {"Gather",   "Scatter",    "Allgather", "Alltoall", "Gatherv",
                                 "Scatterv", "Allgatherv", "Alltoallv", "Alltoallw"};

bool to_root(Kind kind) {
  return kind == Kind::gather || kind == Kind::gatherv;
}
bool from_root(Kind kind) {
  return kind == Kind::scatter || kind == Kind::scatterv;
}
bool to_each(Kind kind) {
  return from_root(kind) || kind == Kind::alltoall || kind >= Kind::alltoallv;
}
bool varying(Kind kind) {
  return kind >= Kind::gatherv;
}

// One call as all ranks agree on it.
struct Plan {
  Kind kind;
  const BaseType& base;
  size_t unit;  // elements in one instance of a derived type
  int ranks, root;
  bool in_place;
  uint64_t seed;
  std::vector<size_t> units;  // [from * ranks + to]

  size_t of(int from, int to) const { return units[size_t(from * ranks + to)]; }
  bool gives(int r) const { return !from_root(kind) || r == root; }
  bool gets(int r) const { return !to_root(kind) || r == root; }
};

Plan draw_plan(Context& context) {
  Random& random = context.agreed;
  Kind kind = Kind(random.below(9));
  const BaseType& base = base_types()[random.below(base_types().size())];
  const int ranks = context.size();
  const size_t n = size_t(ranks), largest = context.limits.largest / (varying(kind) ? 8 * n : n);
  Plan plan{kind, base, 1 + random.below(8), ranks, int(random.below(n)), random.one_in(3), random.bits(), {}};
  size_t block = draw_elements(random, base, largest) / plan.unit;
  for (size_t from = 0; from < n; ++from) {
    size_t same = draw_elements(random, base, largest) / plan.unit;
    for (size_t to = 0; to < n; ++to)
      plan.units.push_back(!varying(kind) ? block : to_each(kind) ? draw_elements(random, base, largest) / plan.unit : same);
  }
  for (size_t from = 0; plan.in_place && kind >= Kind::alltoallv && from < n; ++from)
    for (size_t to = 0; to < from; ++to) plan.units[from * n + to] = plan.units[to * n + from];
  return plan;
}

// One side of a call: blocks of instances of one layout, between which others may lie.
class Side {
 public:
  Side(Context& context, const Plan& plan, const std::vector<size_t>& units)
      : plan_(plan), layout_(draw_layout(context, plan)), scale_(layout_.plain() ? plan.unit : 1) {
    for (size_t n : units) counts.push_back(int(n * scale_));
    size_t total = varying(plan.kind) && units.size() > 1 ? scattered(context.own) : stacked();
    buffer_ = std::make_unique<Buffer>(layout_, total, draw_misalignment(context.own, layout_));
    buffer_->draw_values(context.own, false);
    for (size_t i = 0; i < counts.size(); ++i) {
      bytes.push_back(int(displacements[i] * layout_.extent()));
      types.push_back(layout_.type());
    }
    remember();
  }

  // Draws the message into a block.
  static void put(Buffer& buffer, const Side& side, size_t block, int from, int to) {
    Random random(mix(side.plan_.seed, uint64_t(from * 1000 + to)));
    size_t leaves = side.layout_.leaves().size();
    size_t first = size_t(side.displacements[block]) * leaves, n = size_t(side.counts[block]) * leaves;
    for (size_t i = 0; i < n; ++i) side.plan_.base.draw(random, false, buffer.element(first + i));
  }
  void put(size_t block, int from, int to) { put(*buffer_, *this, block, from, to); }
  void expect(size_t block, int from, int to) { put(*before_, *this, block, from, to); }
  // What is there now must not change, but for what is expected.
  void remember() {
    before_ = std::make_unique<Buffer>(layout_, instances_, 0);
    before_->copy_from(*buffer_);
  }

  // Some blocks as one instance of a type that contains all of theirs.
  void vary_types(Random& own) {
    contiguous_.reserve(counts.size());
    for (size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] == 0 || !own.one_in(3)) continue;
      contiguous_.push_back(contiguous(layout_, counts[i]));
      types[i] = contiguous_.back().type();
      passed_[i] = 1;
    }
  }

  bool unchanged() const { return buffer_->same_bytes(*before_); }
  bool values_right() const { return buffer_->hash() == before_->hash(); }
  std::string outside() const { return wrong_outside(*buffer_, "receive"); }
  void* data() { return buffer_->data(); }
  MPI_Datatype type() const { return layout_.type(); }
  std::string name() const { return layout_.name(); }
  int count(size_t i) const { return passed_[i] ? 1 : counts[i]; }

  std::vector<int> counts, displacements, bytes;
  std::vector<MPI_Datatype> types;

 private:
  static Layout draw_layout(Context& context, const Plan& plan) {
    // Open MPI 5.0 fails for complex numbers with gaps, for some only in long messages.
    // It also hangs between nodes in an Allgatherv whose ranks have different types, and gets such an Allgather wrong.
    const bool plain = (plan.kind == Kind::allgather || plan.kind == Kind::allgatherv) && !context.limits.mixed;
    if (!context.limits.derived || plain || plan.base.family == Family::complex || context.own.one_in(2))
      return Layout(plan.base);
    return random_layout(context.own, plan.base, int(plan.unit));
  }

  size_t stacked() {
    size_t at = 0;
    for (int n : counts) displacements.push_back(int(at)), at += size_t(n);
    return finish(at);
  }
  // In any order, with gaps.
  size_t scattered(Random& own) {
    std::vector<size_t> order(counts.size());
    std::iota(order.begin(), order.end(), 0);
    if (own.one_in(2)) own.shuffle(order);
    displacements.assign(counts.size(), 0);
    size_t at = 0;
    for (size_t i : order) {
      at += own.one_in(2) ? own.below(4) : 0;
      displacements[i] = int(at);
      at += size_t(counts[i]);
    }
    return finish(at + own.below(3));
  }
  size_t finish(size_t total) {
    passed_.assign(counts.size(), 0);
    return instances_ = total;
  }

  const Plan& plan_;
  Layout layout_;
  size_t scale_, instances_ = 0;
  std::vector<char> passed_;
  std::vector<Layout> contiguous_;
  std::unique_ptr<Buffer> buffer_, before_;
};

struct Arrays {
  std::vector<int> counts, displacements;
  std::vector<MPI_Count> large_counts;
  std::vector<MPI_Aint> large_displacements;

  Arrays(const Side& side, bool in_bytes) : displacements(in_bytes ? side.bytes : side.displacements) {
    for (size_t i = 0; i < side.counts.size(); ++i) counts.push_back(in_bytes ? side.count(i) : side.counts[i]);
    large_counts.assign(counts.begin(), counts.end());
    large_displacements.assign(displacements.begin(), displacements.end());
  }
};

class BlocksCheck {
 public:
  explicit BlocksCheck(Context& context)
      : context_(context),
        plan_(draw_plan(context)),
        send_(context, plan_, sizes(true)),
        receive_(context, plan_, sizes(false)),
        large_(context.own.one_in(2)) {
    if (plan_.kind == Kind::alltoallw) send_.vary_types(context.own), receive_.vary_types(context.own);
    fill();
  }

  void run() {
    count_comparison();
    if (context_.own.one_in(6)) usleep(useconds_t(context_.own.below(400)));
    int status = call();
    if (status != MPI_SUCCESS) return fail("returned an error");
    if (!send_.unchanged()) fail("changed the send buffer");
    if (!receive_.values_right()) fail("values are wrong");
    fail(receive_.outside());
  }

 private:
  int rank() const { return context_.rank(); }
  bool in_place() const { return plan_.in_place && ((!to_root(plan_.kind) && !from_root(plan_.kind)) || rank() == plan_.root); }

  std::vector<size_t> sizes(bool sent) const {
    std::vector<size_t> result;
    bool one = sent ? !to_each(plan_.kind) : from_root(plan_.kind);
    if (one) return {sent ? plan_.of(rank(), plan_.root) : plan_.of(plan_.root, rank())};
    for (int r = 0; r < plan_.ranks; ++r) result.push_back(sent ? plan_.of(rank(), r) : plan_.of(r, rank()));
    return result;
  }

  // A message to all is the one to rank 0.
  int addressee(int to) const { return to_each(plan_.kind) ? to : 0; }

  void fill() {
    for (size_t i = 0; i < send_.counts.size(); ++i) send_.put(i, rank(), addressee(int(i)));
    send_.remember();
    bool gets_own = !(in_place() && from_root(plan_.kind));
    if (in_place() && !from_root(plan_.kind))
      for (size_t i = 0; i < receive_.counts.size(); ++i)
        if (to_each(plan_.kind) || int(i) == rank()) receive_.put(i, rank(), addressee(int(i)));
    receive_.remember();
    if (!plan_.gets(rank()) || !gets_own) return;
    bool one = from_root(plan_.kind);
    for (size_t i = 0; i < receive_.counts.size(); ++i) {
      int from = one ? plan_.root : int(i);
      receive_.expect(i, from, addressee(rank()));
    }
  }

  int call() {
    bool w = plan_.kind == Kind::alltoallw;
    const void* s = in_place() && !from_root(plan_.kind) ? MPI_IN_PLACE : send_.data();
    void* r = in_place() && from_root(plan_.kind) ? MPI_IN_PLACE : receive_.data();
    Arrays from(send_, w), to(receive_, w);
#if MPI_VERSION >= 4
    if (large_) return call_large(s, r, from, to);
#endif
    int sc = from.counts[0], rc = to.counts[0];
    const int *scs = from.counts.data(), *sds = from.displacements.data(), *rcs = to.counts.data(),
              *rds = to.displacements.data();
    MPI_Datatype st = send_.type(), rt = receive_.type();
    MPI_Comm comm = context_.comm;
    switch (plan_.kind) {
      case Kind::gather:
        return MPI_Gather(s, sc, st, r, rc, rt, plan_.root, comm);
      case Kind::scatter:
        return MPI_Scatter(s, sc, st, r, rc, rt, plan_.root, comm);
      case Kind::allgather:
        return MPI_Allgather(s, sc, st, r, rc, rt, comm);
      case Kind::alltoall:
        return MPI_Alltoall(s, sc, st, r, rc, rt, comm);
      case Kind::gatherv:
        return MPI_Gatherv(s, sc, st, r, rcs, rds, rt, plan_.root, comm);
      case Kind::scatterv:
        return MPI_Scatterv(s, scs, sds, st, r, rc, rt, plan_.root, comm);
      case Kind::allgatherv:
        return MPI_Allgatherv(s, sc, st, r, rcs, rds, rt, comm);
      case Kind::alltoallv:
        return MPI_Alltoallv(s, scs, sds, st, r, rcs, rds, rt, comm);
      default:
        return MPI_Alltoallw(s, scs, sds, send_.types.data(), r, rcs, rds, receive_.types.data(), comm);
    }
  }

#if MPI_VERSION >= 4
  int call_large(const void* s, void* r, const Arrays& from, const Arrays& to) {
    MPI_Count sc = from.large_counts[0], rc = to.large_counts[0];
    const MPI_Count *scs = from.large_counts.data(), *rcs = to.large_counts.data();
    const MPI_Aint *sds = from.large_displacements.data(), *rds = to.large_displacements.data();
    MPI_Datatype st = send_.type(), rt = receive_.type();
    MPI_Comm comm = context_.comm;
    switch (plan_.kind) {
      case Kind::gather:
        return MPI_Gather_c(s, sc, st, r, rc, rt, plan_.root, comm);
      case Kind::scatter:
        return MPI_Scatter_c(s, sc, st, r, rc, rt, plan_.root, comm);
      case Kind::allgather:
        return MPI_Allgather_c(s, sc, st, r, rc, rt, comm);
      case Kind::alltoall:
        return MPI_Alltoall_c(s, sc, st, r, rc, rt, comm);
      case Kind::gatherv:
        return MPI_Gatherv_c(s, sc, st, r, rcs, rds, rt, plan_.root, comm);
      case Kind::scatterv:
        return MPI_Scatterv_c(s, scs, sds, st, r, rc, rt, plan_.root, comm);
      case Kind::allgatherv:
        return MPI_Allgatherv_c(s, sc, st, r, rcs, rds, rt, comm);
      case Kind::alltoallv:
        return MPI_Alltoallv_c(s, scs, sds, st, r, rcs, rds, rt, comm);
      default:
        return MPI_Alltoallw_c(s, scs, sds, send_.types.data(), r, rcs, rds, receive_.types.data(), comm);
    }
  }
#endif

  void fail(const std::string& what) {
    if (what.empty()) return;
    std::string text = std::string(names[int(plan_.kind)]) + " of units of " + std::to_string(plan_.unit) + " " +
                       plan_.base.name + ", sent as " + send_.name() + ", received as " + receive_.name() + ", root " +
                       std::to_string(plan_.root);
    report_failure(context_, text + (plan_.in_place ? ", in place: " : ": ") + what);
  }

  Context& context_;
  const Plan plan_;
  Side send_, receive_;
  bool large_;
};

}  // namespace

void compare_blocks(Context& context) {
  BlocksCheck(context).run();
}

}  // namespace differential
