// Random calls of scan, exscan, reduce_scatter and reduce_scatter_block, and what ranks must find after them.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "collective/algorithms.hpp"
#include "reference.hpp"

namespace stretto::collective {

inline bool is_prefix(Kind kind) {
  return kind == Kind::scan || kind == Kind::exscan;
}

struct PartialCase {
  kernels::Op op;
  kernels::Type type;
  size_t element;
  std::vector<size_t> counts;  // of blocks; one for prefixes
  size_t total() const {
    size_t sum = 0;
    for (size_t n : counts) sum += n;
    return sum;
  }
};

// One rank's buffers; in place, the result stands where the input begins.
struct PartialBuffers {
  Bytes input, output;
  bool in_place;
  std::vector<Piece> blocks;

  PartialBuffers(const PartialCase& c, const Bytes& contribution, bool place)
      : input(contribution), output(contribution.size() + 64, 0x5a), in_place(place) {
    char* next = reinterpret_cast<char*>(input.data());
    for (size_t n : c.counts) {
      blocks.push_back({next, n * c.element});
      next += n * c.element;
    }
  }
  unsigned char* result() { return in_place ? input.data() : output.data(); }
};

// Random calls of one kind, for ranks that are threads.
class PartialReductions {
 public:
  // max_bytes: of a vector.
  PartialReductions(const char* row, Kind kind, size_t max_bytes) : row_(row), kind_(kind), max_bytes_(max_bytes) {}

  PartialCase random_case(int ranks) {
    static const std::pair<kernels::Op, kernels::Type> choices[] = {{kernels::Op::sum, kernels::Type::f32},
                                                                    {kernels::Op::prod, kernels::Type::f64},
                                                                    {kernels::Op::max, kernels::Type::i8},
                                                                    {kernels::Op::bxor, kernels::Type::u16},
                                                                    {kernels::Op::land, kernels::Type::i32},
                                                                    {kernels::Op::minloc, kernels::Type::f64_i32},
                                                                    {kernels::Op::sum, kernels::Type::c64},
                                                                    {kernels::Op::min, kernels::Type::i64},
                                                                    signed_zeros};
    auto [op, type] = choices[random_() % std::size(choices)];
    return with_counts({op, type, kernels::size_of(type), {}}, ranks);
  }

  PartialCase with_counts(PartialCase c, int ranks) {
    size_t blocks = is_prefix(kind_) ? 1 : size_t(ranks);
    size_t limit = max_bytes_ / c.element / blocks;
    size_t equal = 1 + random_() % std::max<size_t>(limit, 1);
    for (size_t i = 0; i < blocks; ++i)
      c.counts.push_back(kind_ == Kind::reduce_scatter ? random_() % (limit + 1) : std::min(equal, limit));
    if (c.total() == 0) c.counts[0] = 1;
    return c;
  }

  Request request_of(const PartialCase& c, PartialBuffers& buffers) {
    Request request;
    request.kind = kind_;
    request.op = c.op;
    request.type = c.type;
    request.count = c.total();
    request.element = c.element;
    request.input = buffers.input.data();
    request.output = buffers.result();
    if (!is_prefix(kind_)) request.gives = buffers.blocks.data();
    if (c.op == kernels::Op::user) request.user = {compose, nullptr};
    return request;
  }

  Bytes reduced(const PartialCase& c, const std::vector<Bytes>& inputs) {
    if (c.op != kernels::Op::user) return reference(c.op, c.type, inputs, c.total());
    Bytes result = inputs.back();
    for (size_t r = inputs.size() - 1; r-- > 0;) compose(nullptr, inputs[r].data(), result.data(), c.total());
    return result;
  }

  // What rank r must find; empty: nothing.
  Bytes expected(const PartialCase& c, const std::vector<Bytes>& inputs, size_t r) {
    if (is_prefix(kind_)) {
      size_t n = kind_ == Kind::scan ? r + 1 : r;
      return n ? reduced(c, {inputs.begin(), inputs.begin() + ptrdiff_t(n)}) : Bytes{};
    }
    Bytes all = reduced(c, inputs);
    size_t begin = 0;
    for (size_t i = 0; i < r; ++i) begin += c.counts[i] * c.element;
    return Bytes(all.begin() + ptrdiff_t(begin), all.begin() + ptrdiff_t(begin + c.counts[r] * c.element));
  }

  // run(rank's request of it): a function that runs all ranks.
  template <class Run>
  void run_case(int ranks, const PartialCase& c, Run run) {
    std::vector<Bytes> inputs;
    std::vector<PartialBuffers> buffers;
    for (int r = 0; r < ranks; ++r) {
      inputs.push_back(c.op == kernels::Op::user ? random_elements(kernels::Type::i32_i32, c.total(), random_)
                                                 : random_inputs(c.op, c.type, c.total(), random_));
      buffers.emplace_back(c, inputs.back(), some_in_place && random_() % 2);
    }
    run([&](int rank) { return request_of(c, buffers[size_t(rank)]); });
    for (size_t r = 0; r < inputs.size(); ++r) check(c, inputs, buffers[r], r);
  }

  void check(const PartialCase& c, const std::vector<Bytes>& inputs, PartialBuffers& mine, size_t r) {
    Bytes wanted = expected(c, inputs, r), found(mine.result(), mine.result() + wanted.size());
    if (wanted != found)
      ADD_FAILURE() << row_ << " rank " << r << " of " << inputs.size() << ": op " << name(c.op) << ", " << c.total() << " x "
                    << c.element << (mine.in_place ? ", in place" : "");
    if (mine.in_place) return;
    EXPECT_EQ(mine.input, inputs[r]);
    for (size_t i = wanted.size(); i < mine.output.size(); ++i)
      if (mine.output[i] != 0x5a) FAIL() << "rank " << r << " wrote behind its result";
  }

  std::mt19937& random() { return random_; }

  bool some_in_place = true;

 private:
  const char* const row_;
  const Kind kind_;
  const size_t max_bytes_;
  std::mt19937 random_{20261122};
};

}  // namespace stretto::collective
