#include "compare.hpp"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

namespace differential {
namespace {

uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
}

// Which of the two goes first changes from call to call, so that neither always finds warm buffers or aligned arrivals.
template <class Mine, class Oracle>
void both(Context& context, Mine mine, Oracle oracle) {
  bool oracle_first = context.agreed.one_in(2);
  if (context.own.one_in(6)) usleep(useconds_t(context.own.below(400)));
  if (oracle_first) oracle();
  mine();
  if (!oracle_first) oracle();
}

// Mostly few elements, zero now and then, some up to 64 KiB, seldom up to the largest.
size_t draw_elements(Random& random, const BaseType& base, size_t largest) {
  switch (random.below(20)) {
    case 0: return 0;
    case 1: return 1 + random.below(std::max<size_t>(largest / base.size, 1));
    case 2: case 3: case 4: return 1 + random.below(std::min<size_t>(largest, 65536) / base.size + 1);
    case 5: case 6: case 7: case 8: return 1 + random.below(600);
    default: return 1 + random.below(16);
  }
}

// MPI libraries load 16-byte elements with aligned instructions, as they may: those keep their alignment. All others are
// also put where no element is aligned.
size_t draw_misalignment(Random& random, const Layout& layout) {
  constexpr size_t strictest = 16;
  size_t element = layout.leaves()[0].base->size;
  if (random.one_in(2)) return 0;
  if (element >= strictest || random.one_in(2)) return (1 + random.below(3)) * std::max(element, strictest) % 64;
  return random.below(64);
}

std::string describe(const char* call, const Layout& layout, size_t count, const Operation* op, int root, bool in_place) {
  std::string text = std::string(call) + " of " + std::to_string(count) + " x " + layout.name();
  if (op) text += std::string(", ") + op->name;
  if (root >= 0) text += ", root " + std::to_string(root);
  return in_place ? text + ", in place" : text;
}

// ---- the calls, with int or MPI_Count counts --------------------------------------------------------------------------

int bcast([[maybe_unused]] bool large, void* data, size_t count, MPI_Datatype type, int root, MPI_Comm comm) {
#if MPI_VERSION >= 4
  if (large) return MPI_Bcast_c(data, MPI_Count(count), type, root, comm);
#endif
  return MPI_Bcast(data, int(count), type, root, comm);
}

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

// ---- reductions -------------------------------------------------------------------------------------------------------

struct Reduction {
  Layout layout;
  size_t count;
  Operation op;
  int root;  // -1: Allreduce
  bool in_place, receives;
  bool large, repeat, compare_ranks;
  bool product() const { return op.handle == MPI_PROD; }
  const BaseType& base() const { return *layout.leaves()[0].base; }
};

bool reducible(const BaseType& type) { return type.family != Family::opaque; }

Reduction with_predefined_op(Context& context) {
  Random& random = context.agreed;
  for (;;) {
    const BaseType& base = base_types()[random.below(base_types().size())];
    std::vector<Operation> ops = reducible(base) ? operations_on(base) : std::vector<Operation>{};
    if (ops.empty()) continue;
    return {Layout(base), draw_elements(random, base, context.limits.largest), ops[random.below(ops.size())], -1, false, true, false, false, false};
  }
}

Reduction with_user_op(Context& context) {
  Random& random = context.agreed;
  const UserOperation& user = user_operations()[random.below(user_operations().size())];
  const BaseType& base = base_type("MPI_UINT32_T");
  int leaves = user.group * int(1 + random.below(6));
  bool simple = !context.limits.derived || random.one_in(3);
  Layout layout = user.group > 1 || !simple ? random_layout(random, base, leaves) : Layout(base);
  if (simple && user.group > 1) layout = contiguous(Layout(base), leaves);
  size_t elements = draw_elements(random, base, context.limits.largest / 4);
  size_t count = elements / layout.leaves().size();
  return {std::move(layout), count, user.operation, -1, false, true, false, false, false};
}

Reduction draw_reduction(Context& context, bool rooted) {
  Reduction r = context.agreed.one_in(5) ? with_user_op(context) : with_predefined_op(context);
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

// Empty, or what is wrong with the value of some element.
std::string wrong_value(const Context& context, const Buffer& result, const Buffer& oracle, const Buffer* scale) {
  if (result.same_bytes(oracle)) return "";
  double slack = context.size() <= 2 ? 0 : 2.0 * context.size();  // two ranks: one rounding, the same in any order
  for (size_t i = 0; i < result.elements(); ++i) {
    const BaseType& base = result.base(i);
    bool same = true;
    for (auto [offset, length] : base.significant) same = same && std::equal(result.element(i) + offset, result.element(i) + offset + length, oracle.element(i) + offset);
    if (!same && !base.close(result.element(i), oracle.element(i), scale ? scale->element(i) : nullptr, slack))
      return "element " + std::to_string(i) + " is wrong";
  }
  return "";
}

std::string wrong_outside(const Buffer& buffer, const char* whose) {
  MPI_Aint where = 0;
  if (buffer.surroundings_intact(&where)) return "";
  return std::string("wrote outside the elements of the ") + whose + " buffer, at byte " + std::to_string(where);
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
        oracle_(r.layout, r.count, 0) {
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
    both(context_, [&] { mine = reduce(r_.large, input(send_), result_.data(), arguments()); },
         [&] { theirs = ask_oracle(); });
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

  // Integers' order by C: from everybody's elements.
  int own_oracle() {
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
    fail(wrong_value(context_, result_, oracle_, scale));
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
  Buffer send_, sent_, result_, oracle_;
};

// ---- broadcasts -------------------------------------------------------------------------------------------------------

struct Message {
  Layout layout;
  size_t count;
};

// Layouts of this rank's own choice that all hold the same sequence of elements.
Message draw_message(Context& context) {
  Random &agreed = context.agreed, &own = context.own;
  const BaseType& base = base_types()[agreed.below(base_types().size())];
  const BaseType& other = base_types()[agreed.below(base_types().size())];
  size_t elements = draw_elements(agreed, base, context.limits.largest);
  size_t instances = 1 + agreed.below(12);
  if (!context.limits.derived) return {Layout(base), elements};
  switch (agreed.below(4)) {
    case 0: {
      int repeats = int(1 + agreed.below(4));
      return {record_layout(own, base, other, repeats), elements % 4096 / size_t(3 * repeats)};
    }
    case 1: {  // as one instance, as many, or as anything between
      size_t parts = instances, each = 1 + elements % 64;
      if (own.one_in(3)) std::swap(parts, each);
      return {random_layout(own, base, int(each)), parts};
    }
    case 2: {
      size_t columns = 1 + elements % 40;
      if (own.one_in(2)) return {column_layout(base, int(instances), int(columns)), columns};
      return {Layout(base), instances * columns};
    }
    default: return {Layout(base), elements};
  }
}

}  // namespace

// No rank may leave before every rank has entered: the ranks share one clock.
void compare_barrier(Context& context) {
  count_comparison();
  if (context.own.one_in(3)) usleep(useconds_t(context.own.below(2000)));
  uint64_t entered = now_ns(), last_entered = 0;
  int status = MPI_Barrier(context.comm);
  uint64_t left = now_ns();
  PMPI_Allreduce(&entered, &last_entered, 1, MPI_UINT64_T, MPI_MAX, context.comm);
  if (status != MPI_SUCCESS) return report_failure(context, "Barrier: returned an error");
  if (left < last_entered) report_failure(context, "Barrier: left before the last rank had entered");
}

void compare_bcast(Context& context) {
  count_comparison();
  Message m = draw_message(context);
  int root = int(context.agreed.below(uint64_t(context.size())));
  std::string call = describe("Bcast", m.layout, m.count, nullptr, root, false);
  Buffer mine(m.layout, m.count, draw_misalignment(context.own, m.layout)), oracle(m.layout, m.count, 0);
  mine.draw_values(context.own, false);
  oracle.copy_from(mine);
  bool large = context.own.one_in(2);
  int status = 0;
  both(context, [&] { status = bcast(large, mine.data(), m.count, m.layout.type(), root, context.comm); },
       [&] { PMPI_Bcast(oracle.data(), int(m.count), m.layout.type(), root, context.comm); });
  if (status != MPI_SUCCESS) return report_failure(context, call + ": returned an error");
  for (const std::string& what : {mine.hash() == oracle.hash() ? "" : std::string("values are wrong"), wrong_outside(mine, "user's")})
    if (!what.empty()) report_failure(context, call + ": " + what);
}

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

void compare_any(Context& context) {
  switch (context.agreed.below(8)) {
    case 0: return compare_barrier(context);
    case 1: case 2: return compare_bcast(context);
    case 3: case 4: return compare_reduce(context);
    default: return compare_allreduce(context);
  }
}

}  // namespace differential
