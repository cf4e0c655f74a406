// Scan, Exscan, Reduce_scatter and Reduce_scatter_block. What is right is folded here from everybody's elements, in rank order.
#include <algorithm>
#include <memory>

#include "calls.hpp"
#include "reduction.hpp"

namespace differential {
namespace {

enum class Part { scan, exscan, scatter, scatter_block };
constexpr const char* names[] = {"Scan", "Exscan", "Reduce_scatter", "Reduce_scatter_block"};

struct Arguments {
  const void* send;
  void* receive;
  const std::vector<int>& counts;  // of the blocks; of a scan, one
  MPI_Datatype type;
  MPI_Op op;
  MPI_Comm comm;
};

int call(Part part, [[maybe_unused]] bool large, const Arguments& a) {
#if MPI_VERSION >= 4
  std::vector<MPI_Count> counts(a.counts.begin(), a.counts.end());
  if (large && part == Part::scan) return MPI_Scan_c(a.send, a.receive, counts[0], a.type, a.op, a.comm);
  if (large && part == Part::exscan) return MPI_Exscan_c(a.send, a.receive, counts[0], a.type, a.op, a.comm);
  if (large && part == Part::scatter) return MPI_Reduce_scatter_c(a.send, a.receive, counts.data(), a.type, a.op, a.comm);
  if (large) return MPI_Reduce_scatter_block_c(a.send, a.receive, counts[0], a.type, a.op, a.comm);
#endif
  if (part == Part::scan) return MPI_Scan(a.send, a.receive, a.counts[0], a.type, a.op, a.comm);
  if (part == Part::exscan) return MPI_Exscan(a.send, a.receive, a.counts[0], a.type, a.op, a.comm);
  if (part == Part::scatter) return MPI_Reduce_scatter(a.send, a.receive, a.counts.data(), a.type, a.op, a.comm);
  return MPI_Reduce_scatter_block(a.send, a.receive, a.counts[0], a.type, a.op, a.comm);
}

std::vector<int> draw_counts(Context& context, Part part, size_t total) {
  if (part == Part::scan || part == Part::exscan) return {int(total)};
  std::vector<int> counts(size_t(context.size()), int(total) / context.size());
  for (int& count : counts)
    if (part == Part::scatter) count = context.agreed.one_in(6) ? 0 : int(context.agreed.below(uint64_t(count) * 2 + 1));
  return counts;
}

class PartialCheck {
 public:
  PartialCheck(Context& context, const Reduction& r, Part part)
      : context_(context),
        r_(r),
        part_(part),
        counts_(draw_counts(context, part, r.count)),
        call_(describe(names[int(part)], r.layout, total(), &r.op, -1, r.in_place)),
        send_(r.layout, total(), draw_misalignment(context.own, r.layout)),
        sent_(r.layout, total(), 0),
        result_(r.layout, total(), draw_misalignment(context.own, r.layout)),
        before_(r.layout, total(), 0) {
    send_.draw_values(context.own, r.product());
    sent_.copy_from(send_);
    result_.draw_values(context.own, r.product());
    if (r.in_place) result_.copy_from(send_);
    before_.copy_from(result_);
  }

  void run() {
    if (context_.own.one_in(6)) usleep(useconds_t(context_.own.below(400)));
    const void* input = r_.in_place ? MPI_IN_PLACE : send_.data();
    if (call(part_, r_.large, {input, result_.data(), counts_, r_.layout.type(), r_.op.handle, context_.comm}) != MPI_SUCCESS)
      return fail("returned an error");
    if (!send_.same_bytes(sent_)) fail("changed the send buffer");
    gather_inputs(sent_, &all_);
    std::unique_ptr<Buffer> scale = r_.op.handle == MPI_SUM && r_.base().magnitude ? magnitudes() : nullptr;
    std::unique_ptr<Buffer> expected = fold(all_, before_);
    fail(wrong_value(context_, result_, *expected, scale.get()));
    fail(wrong_outside(result_, "receive"));
  }

 private:
  bool is_prefix() const { return part_ == Part::scan || part_ == Part::exscan; }
  size_t total() const { return sum(counts_.size()); }
  size_t sum(size_t blocks) const {
    size_t n = 0;
    for (size_t i = 0; i < blocks; ++i) n += size_t(counts_[i]);
    return n;
  }
  size_t leaves() const { return r_.layout.leaves().size(); }
  void fail(const std::string& what) {
    if (!what.empty()) report_failure(context_, call_ + ": " + what);
  }

  // Everybody's elements side by side: all[rank][element].
  void gather_inputs(const Buffer& mine, std::vector<unsigned char>* all) {
    std::vector<unsigned char> dense(mine.elements() * r_.base().size);
    for (size_t i = 0; i < mine.elements(); ++i) std::copy_n(mine.element(i), r_.base().size, &dense[i * r_.base().size]);
    all->resize(dense.size() * size_t(context_.size()));
    PMPI_Allgather(dense.data(), int(dense.size()), MPI_BYTE, all->data(), int(dense.size()), MPI_BYTE, context_.comm);
  }
  void set(Buffer& buffer, const std::vector<unsigned char>& all, int rank) {
    const unsigned char* from = all.data() + size_t(rank) * buffer.elements() * r_.base().size;
    for (size_t i = 0; i < buffer.elements(); ++i) std::copy_n(from + i * r_.base().size, r_.base().size, buffer.element(i));
  }

  void accumulate(Buffer& left, Buffer& right) {
    if (r_.op.trusted) {
      PMPI_Reduce_local(left.data(), right.data(), int(total()), r_.layout.type(), r_.op.handle);
      return;
    }
    for (size_t i = 0; i < right.elements(); ++i) r_.base().choose(r_.op.handle == MPI_MAX, left.element(i), right.element(i));
  }

  // What this rank's receive buffer must hold, which was `before`.
  std::unique_ptr<Buffer> fold(const std::vector<unsigned char>& all, const Buffer& before) {
    auto expected = std::make_unique<Buffer>(r_.layout, total(), 0);
    expected->copy_from(before);
    int inputs = part_ == Part::scan ? context_.rank() + 1 : part_ == Part::exscan ? context_.rank() : context_.size();
    if (inputs == 0) return expected;
    Buffer left(r_.layout, total(), 0), right(r_.layout, total(), 0);
    set(left, all, 0);
    for (int r = 1; r < inputs; ++r) {
      set(right, all, r);
      accumulate(left, right);
      left.copy_from(right);
    }
    size_t first = is_prefix() ? 0 : sum(size_t(context_.rank())),
           n = is_prefix() ? total() : size_t(counts_[size_t(context_.rank())]);
    for (size_t i = 0; i < n * leaves(); ++i)
      std::copy_n(left.element(first * leaves() + i), r_.base().size, expected->element(i));
    return expected;
  }

  std::unique_ptr<Buffer> magnitudes() {
    Buffer mine(r_.layout, total(), 0), none(r_.layout, total(), 0);
    mine.copy_from(sent_);
    mine.take_magnitudes();
    none.copy_from(mine);
    std::vector<unsigned char> all;
    gather_inputs(mine, &all);
    return fold(all, none);
  }

  Context& context_;
  const Reduction& r_;
  const Part part_;
  const std::vector<int> counts_;
  std::string call_;
  Buffer send_, sent_, result_, before_;
  std::vector<unsigned char> all_;
};

}  // namespace

void compare_partial_reduction(Context& context) {
  count_comparison();
  size_t largest = context.limits.largest;
  context.limits.largest = largest / 8;
  Reduction r = draw_operands(context);
  context.limits.largest = largest;
  r.in_place = context.agreed.one_in(3);
  r.large = context.own.one_in(2);
  Part part = Part(context.agreed.below(4));
  Registered registered(r.layout);
  PartialCheck(context, r, part).run();
}

}  // namespace differential
