#include "compare.hpp"

#include <time.h>

#include <algorithm>

#include "calls.hpp"

namespace differential {
namespace {

uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
}

int bcast([[maybe_unused]] bool large, void* data, size_t count, MPI_Datatype type, int root, MPI_Comm comm) {
#if MPI_VERSION >= 4
  if (large) return MPI_Bcast_c(data, MPI_Count(count), type, root, comm);
#endif
  return MPI_Bcast(data, int(count), type, root, comm);
}

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
      if (!has_record_layout(agreed, base, other, repeats)) return {Layout(base), elements};
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
    default:
      return {Layout(base), elements};
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

namespace {

// Root's values, sent side by side as bytes: Open MPI 5.0 itself loses some in long messages of irregularly spaced types.
void bcast_values(Buffer& buffer, int root, MPI_Comm comm) {
  std::vector<unsigned char> dense;
  for (size_t i = 0; i < buffer.elements(); ++i)
    dense.insert(dense.end(), buffer.element(i), buffer.element(i) + buffer.base(i).size);
  PMPI_Bcast(dense.data(), int(dense.size()), MPI_BYTE, root, comm);
  const unsigned char* from = dense.data();
  for (size_t i = 0; i < buffer.elements(); from += buffer.base(i++).size)
    std::copy_n(from, buffer.base(i).size, buffer.element(i));
}

}  // namespace

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
  both(
      context, [&] { status = bcast(large, mine.data(), m.count, m.layout.type(), root, context.comm); },
      [&] { bcast_values(oracle, root, context.comm); });
  if (status != MPI_SUCCESS) return report_failure(context, call + ": returned an error");
  for (const std::string& what :
       {mine.hash() == oracle.hash() ? "" : std::string("values are wrong"), wrong_outside(mine, "user's")})
    if (!what.empty()) report_failure(context, call + ": " + what);
}

void compare_any(Context& context) {
  switch (context.agreed.below(context.limits.all ? 16 : 8)) {
    case 0:
      return compare_barrier(context);
    case 1:
    case 2:
      return compare_bcast(context);
    case 3:
    case 4:
      return compare_reduce(context);
    case 5:
    case 6:
    case 7:
      return compare_allreduce(context);
    case 8:
    case 9:
    case 10:
      return compare_partial_reduction(context);
    default:
      return compare_blocks(context);
  }
}

}  // namespace differential
