#include <algorithm>
#include <memory>

#include "calls.hpp"
#include "reduction.hpp"

namespace differential {
namespace {

struct Arguments {
  size_t count;
  MPI_Datatype type;
  MPI_Op op;
  int root;  // -1: Allreduce
  MPI_Comm comm;
};

int reduce([[maybe_unused]] bool large, const void* send, void* receive, const Arguments& a) {
#if MPI_VERSION >= 4
  if (large && a.root < 0) return MPI_Allreduce_c(send, receive, MPI_Count(a.count), a.type, a.op, a.comm);
  if (large) return MPI_Reduce_c(send, receive, MPI_Count(a.count), a.type, a.op, a.root, a.comm);
#endif
  if (a.root < 0) return MPI_Allreduce(send, receive, int(a.count), a.type, a.op, a.comm);
  return MPI_Reduce(send, receive, int(a.count), a.type, a.op, a.root, a.comm);
}

int oracle(const void* send, void* receive, const Arguments& a) {
  if (a.root < 0) return PMPI_Allreduce(send, receive, int(a.count), a.type, a.op, a.comm);
  return PMPI_Reduce(send, receive, int(a.count), a.type, a.op, a.root, a.comm);
}

Reduction draw_reduction(Context& context, bool rooted) {
  Reduction r = draw_operands(context);
  Random& random = context.agreed;
  if (rooted) r.root = int(random.below(uint64_t(context.size())));
  r.receives = !rooted || r.root == context.rank();
  r.in_place = random.one_in(3) && r.receives;
  r.large = (rooted ? context.own : random).one_in(2);  // ranks may mix MPI_Reduce and MPI_Reduce_c
  r.repeat = random.one_in(3);
  r.compare_ranks = random.one_in(2);
  return r;
}

// The sum of magnitudes behind each element of a floating-point sum, by which its rounding error is bounded.
std::unique_ptr<Buffer> condition(Context& context, const Reduction& r, const Buffer& input) {
  if (r.op.handle != MPI_SUM || !r.base().magnitude || context.size() <= 2) return nullptr;
  Buffer magnitudes(r.layout, r.count, 0);
  magnitudes.copy_from(input);
  magnitudes.take_magnitudes();
  auto sums = std::make_unique<Buffer>(r.layout, r.count, 0);
  PMPI_Allreduce(magnitudes.data(), sums->data(), int(r.count), r.layout.type(), MPI_SUM, context.comm);
  return sums;
}

void check_ranks_agree(Context& context, const Buffer& result, const std::string& call) {
  uint64_t mine[2] = {result.hash(), ~result.hash()}, lowest[2];
  PMPI_Allreduce(mine, lowest, 2, MPI_UINT64_T, MPI_MIN, context.comm);
  if (lowest[0] != mine[0] || lowest[1] != mine[1]) report_failure(context, call + ": ranks differ in their bits");
}

class ReductionCheck {
 public:
  ReductionCheck(Context& context, const Reduction& r)
      : context_(context),
        r_(r),
        call_(describe(r.root < 0 ? "Allreduce" : "Reduce", r.layout, r.count, &r.op, r.root, r.in_place)),
        send_(r.layout, r.count, draw_misalignment(context.own, r.layout)),
        sent_(r.layout, r.count, 0),
        result_(r.layout, r.count, draw_misalignment(context.own, r.layout)),
        oracle_(r.layout, r.count, 0),
        library_(r.layout, r.op.trusted ? 0 : r.count, 0) {
    send_.draw_values(context.own, r.product());
    sent_.copy_from(send_);
    result_.draw_values(context.own, r.product());
    if (r.in_place) result_.copy_from(send_);
    oracle_.copy_from(result_);
  }

  void run() {
    Buffer untouched(r_.layout, r_.count, 0);
    untouched.copy_from(result_);
    int mine = 0, theirs = 0;
    both(context_, [&] { mine = reduce(r_.large, input(send_), result_.data(), arguments()); }, [&] { theirs = ask_oracle(); });
    if (mine != MPI_SUCCESS || theirs != MPI_SUCCESS) return report_failure(context_, call_ + ": returned an error");
    std::unique_ptr<Buffer> scale = condition(context_, r_, sent_);
    if (!send_.same_bytes(sent_)) fail("changed the send buffer");
    if (!r_.receives && !result_.same_bytes(untouched)) fail("changed a receive buffer that is not the root's");
    if (r_.receives) check_result(scale.get());
    if (r_.repeat) run_again();
    if (r_.compare_ranks && r_.root < 0) check_ranks_agree(context_, result_, call_);
  }

 private:
  const void* input(Buffer& buffer) { return r_.in_place ? MPI_IN_PLACE : buffer.data(); }
  Arguments arguments() const { return {r_.count, r_.layout.type(), r_.op.handle, r_.root, context_.comm}; }
  void fail(const std::string& what) {
    if (!what.empty()) report_failure(context_, call_ + ": " + what);
  }

  int ask_oracle() {
    if (!r_.op.trusted) return own_oracle();
    return r_.layout.plain() ? oracle(input(sent_), oracle_.data(), arguments()) : packed_oracle();
  }

  // Integers' order by C: from everybody's elements. A call that is left to the library may have the library's answer too.
  int own_oracle() {
    library_.copy_from(oracle_);
    oracle(input(sent_), library_.data(), arguments());
    size_t bytes = r_.count * r_.base().size;
    std::vector<unsigned char> all(bytes * size_t(context_.size()));
    int status = PMPI_Allgather(sent_.data(), int(bytes), MPI_BYTE, all.data(), int(bytes), MPI_BYTE, context_.comm);
    if (!r_.receives) return status;
    oracle_.copy_values_from(sent_);
    for (size_t i = 0; i < oracle_.elements(); ++i)
      for (size_t from = i * r_.base().size; from < all.size(); from += bytes)
        r_.base().choose(r_.op.handle == MPI_MAX, &all[from], oracle_.element(i));
    return status;
  }

  // Derived types: the same elements side by side, because Open MPI 5.0's ring allreduce overruns its own buffers for
  // types with gaps.
  int packed_oracle() {
    Layout element(r_.base());
    Layout packed = contiguous(element, int(r_.layout.leaves().size()));
    Registered registered(packed);
    Buffer send(packed, r_.count, 0), receive(packed, r_.count, 0);
    send.copy_values_from(sent_);
    receive.copy_values_from(oracle_);
    Arguments a = arguments();
    a.type = packed.type();
    int status = oracle(input(send), receive.data(), a);
    oracle_.copy_values_from(receive);
    return status;
  }

  void check_result(const Buffer* scale) {
    std::string wrong = wrong_value(context_, result_, oracle_, scale);
    if (!wrong.empty() && !r_.op.trusted && result_.hash() == library_.hash()) wrong.clear();
    fail(wrong);
    fail(wrong_outside(result_, "receive"));
  }

  // The same call on the same input at another address: the same bits.
  void run_again() {
    Buffer again(r_.layout, r_.count, draw_misalignment(context_.own, r_.layout));
    again.copy_from(sent_);
    reduce(r_.large, input(send_), again.data(), arguments());
    if (r_.receives && again.hash() != result_.hash()) fail("the same call gave other bits");
  }

  Context& context_;
  const Reduction& r_;
  std::string call_;
  Buffer send_, sent_, result_, oracle_, library_;
};

}  // namespace

void compare_reduce(Context& context) {
  count_comparison();
  Reduction r = draw_reduction(context, true);
  Registered registered(r.layout);
  ReductionCheck(context, r).run();
}

void compare_allreduce(Context& context) {
  count_comparison();
  Reduction r = draw_reduction(context, false);
  Registered registered(r.layout);
  ReductionCheck(context, r).run();
}

}  // namespace differential
