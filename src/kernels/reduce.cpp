// Reduction of p inputs along the fixed tree. Two, four and eight inputs are one pass in registers. Others are taken block by
// block: a block's partial results stay in the first-level cache, so that each input is still read once from memory.
#include <string.h>

#include "kernels/dispatch.hpp"
#include "kernels/plan.hpp"
#include "kernels/watched.hpp"

namespace stretto::kernels {
namespace {

struct Plans {
  Plan of[op_count][type_count];
};

constexpr Plans make_plans() {
  Plans plans = {};
  for (int op = 0; op < op_count; ++op)
    for (int type = 0; type < type_count; ++type) plans.of[op][type] = plan_of(Op(op), Type(type));
  return plans;
}

constexpr Plans plans = make_plans();

constexpr size_t block_bytes = 2048;

// The largest power of two smaller than p.
constexpr int left_part(int p) {
  int left = 1;
  while (left * 2 < p) left *= 2;
  return left;
}

constexpr int widest_pass = 8;

// The kernel that reads p inputs at once, if there is one.
Function one_pass(const Kernel& kernel, int p) {
  return p == 2 ? kernel.two : p == 4 ? kernel.four : p == widest_pass ? kernel.eight : nullptr;
}

// The tree over one block: n items starting `offset` bytes into every input.
struct Block {
  const Kernel& kernel;
  size_t offset;
  size_t n;

  const void* at(const void* input) const { return static_cast<const char*>(input) + offset; }

  // `out` is written last, when all inputs of the block have been read, and so may be one of them; else it may be `left_room`. A
  // room of its own for each level: not inlined, as stacks may be small.
  [[gnu::noinline]] void combine(const void* const* inputs, int p, char* left_room, void* out) const {
    alignas(64) char right_room[block_bytes];
    const int left = left_part(p);
    const void* halves[2] = {partial(inputs, left, left_room), partial(inputs + left, p - left, right_room)};
    kernel.two(halves, out, n);
  }

  const void* partial(const void* const* inputs, int p, char* room) const {
    if (p == 1) return at(inputs[0]);
    if (const Function pass = one_pass(kernel, p))
      combine_in_registers(pass, inputs, p, room);
    else
      combine(inputs, p, room, room);
    return room;
  }

  void combine_in_registers(Function pass, const void* const* inputs, int p, void* out) const {
    const void* here[widest_pass];
    for (int i = 0; i < p; ++i) here[i] = at(inputs[i]);
    pass(here, out, n);
  }
};

void reduce_by_blocks(const Kernel& kernel, const void* const* inputs, int p, void* out, size_t bytes, size_t item) {
  alignas(64) char room[block_bytes];
  const size_t step = block_bytes / item * item;
  for (size_t offset = 0; offset < bytes; offset += step) {
    const size_t rest = bytes - offset;
    const Block block = {kernel, offset, (rest < step ? rest : step) / item};
    block.combine(inputs, p, room, static_cast<char*>(out) + offset);
  }
}

}  // namespace

void reduce(Op op, Type type, const void* const* inputs, int p, void* out, size_t n) {
  if (n == 0) return;
  if (p == 1) {
    if (out != inputs[0]) memcpy(out, inputs[0], n * item_size(type));
    return;
  }
  for (int i = 0; i < p; ++i) watch_read(inputs[i], n * item_size(type));
  watch_write(out, n * item_size(type));
  const Plan plan = plans.of[int(op)][int(type)];
  const Kernel& kernel = (*current().rows[int(plan.as)])[op];
  if (const Function pass = one_pass(kernel, p)) return pass(inputs, out, n * plan.items);
  const size_t item = item_size(plan.as);
  reduce_by_blocks(kernel, inputs, p, out, n * plan.items * item, item);
}

}  // namespace stretto::kernels
