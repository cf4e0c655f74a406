// What the ranks send, and whether what they got is right.
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <new>

#include "bench/collectives.hpp"

namespace stretto::bench {
namespace {

// Element i of what rank `from` sends to rank `to` in call k is ring[(i + offset(from, to, k)) % period]. The period is prime, so
// that no slice of a vector can be mistaken for another.
constexpr size_t period = 251, chunk = 8 * period;

struct Ring {
  float value[chunk + period];
  Ring() {
    for (size_t i = 0; i < chunk + period; ++i) value[i] = float(i * 7 % period);
  }
};
const Ring ring;

size_t offset(int from, int to, unsigned iteration) {
  return (size_t(from) * 29 + size_t(to) * 53 + size_t(iteration) * 11) % period;
}

Buffer touched(size_t bytes) {
  const size_t whole = std::max<size_t>((bytes + 4095) / 4096 * 4096, 4096);
  auto* memory = static_cast<float*>(aligned_alloc(4096, whole));
  if (memory != nullptr) memset(memory, 0, whole);
  return Buffer(memory);
}

void write_block(float* to, size_t count, const float* pattern) {
  size_t i = 0;
  for (; i + chunk <= count; i += chunk) memcpy(to + i, pattern, chunk * sizeof *to);
  memcpy(to + i, pattern, (count - i) * sizeof *to);
}

bool receives_here(const Collective& c, const Data& data, int root) {
  if (c.result == Result::none || (c.result == Result::sum_below && data.rank == 0)) return false;
  return !c.only_root_receives || data.rank == root;
}

// Where a rank's results come from: blocks for all, or the block for each rank.
int addressee(const Collective& c, const Data& data) {
  return c.sends == Part::all ? data.rank : 0;
}

float expected(const Collective& c, const Data& data, int block, size_t i, int root, unsigned iteration) {
  const int to = addressee(c, data);
  auto sent = [&](int from) { return ring.value[(i + offset(from, to, iteration)) % period]; };
  if (c.result == Result::root) return sent(root);
  if (c.result == Result::each) return sent(block);
  const int until = c.result == Result::sum ? data.ranks : c.result == Result::sum_to_here ? data.rank + 1 : data.rank;
  float sum = 0;
  for (int from = 0; from < until; ++from) sum += sent(from);
  return sum;
}

size_t wrong_in_block(const Collective& c, const Data& data, int block, int root, unsigned iteration) {
  float repeating[period];  // the result has the inputs' period
  for (size_t i = 0; i < period; ++i) repeating[i] = expected(c, data, block, i, root, iteration);
  const float* got = data.receive.get() + size_t(block) * data.count;
  size_t wrong = 0;
  for (size_t i = 0; i < data.count; ++i) wrong += got[i] != repeating[i % period];
  return wrong;
}

size_t wrong_at_places(const Collective& c, const Data& data, int block, int root, unsigned iteration) {
  if (data.count == 0) return 0;
  const float* got = data.receive.get() + size_t(block) * data.count;
  size_t wrong = 0;
  for (size_t i : {size_t(0), data.count / 2, data.count - 1}) wrong += got[i] != expected(c, data, block, i, root, iteration);
  return wrong;
}

}  // namespace

void FreeBuffer::operator()(float* buffer) const {
  free(buffer);
}

bool open_data(const Collective& c, size_t bytes, MPI_Datatype type, Data* data) {
  const int ranks = data->ranks;
  data->count = bytes / sizeof(float);
  data->send = touched(bytes * blocks(c.sends, ranks));
  data->receive = touched(bytes * blocks(c.receives, ranks));
  data->counts.reset(new (std::nothrow) int[size_t(ranks)]);
  data->places.reset(new (std::nothrow) int[size_t(ranks)]);
  data->byte_places.reset(new (std::nothrow) int[size_t(ranks)]);
  data->types.reset(new (std::nothrow) MPI_Datatype[size_t(ranks)]);
  if (!data->send || !data->receive || !data->counts || !data->places || !data->byte_places || !data->types) return false;
  for (int r = 0; r < ranks; ++r) {
    data->counts[size_t(r)] = int(data->count);
    data->places[size_t(r)] = int(data->count) * r;
    data->byte_places[size_t(r)] = int(bytes / sizeof(float) * sizeof(float)) * r;
    data->types[size_t(r)] = type;
  }
  return true;
}

void fill(const Collective& c, const Data& data, int root, unsigned iteration) {
  const bool broadcast = c.sends == Part::none && c.result == Result::root;
  const bool only_root = c.result == Result::root;
  if (only_root && data.rank != root) return;
  float* to = broadcast ? data.receive.get() : data.send.get();
  const int count = broadcast ? 1 : int(blocks(c.sends, data.ranks));
  for (int block = 0; block < count; ++block)
    write_block(to + size_t(block) * data.count, data.count, ring.value + offset(data.rank, block, iteration));
}

void poison(const Collective& c, const Data& data) {
  const size_t count = data.count * blocks(c.receives, data.ranks);
  for (size_t i = 0; i < count; ++i) data.receive.get()[i] = -1;
}

size_t count_wrong(const Collective& c, const Data& data, int root, unsigned iteration, bool all) {
  if (!receives_here(c, data, root)) return 0;
  const int count = int(blocks(c.receives, data.ranks));
  size_t wrong = 0;
  for (int block = 0; block < count; ++block)
    wrong += all ? wrong_in_block(c, data, block, root, iteration) : wrong_at_places(c, data, block, root, iteration);
  return wrong;
}

}  // namespace stretto::bench
