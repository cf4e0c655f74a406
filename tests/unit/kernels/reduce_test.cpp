// Every defined (op, type) on every instruction set against the plain reference, bit for bit.
#include <thread>
#include <vector>

#include "isas.hpp"
#include "random.hpp"
#include "reference.hpp"

namespace stretto::kernels::test {
namespace {

constexpr size_t margin = 64;

// n elements at an address that has the alignment of T and, mostly, no more; surrounded by bytes that must stay.
template <class T>
class Buffer {
 public:
  Buffer(size_t n, Random& random) : n_(n), storage_(margin * 3 + n * sizeof(T), guard) {
    const uintptr_t start = (reinterpret_cast<uintptr_t>(storage_.data()) + margin + 63) / 64 * 64;
    data_ = reinterpret_cast<T*>(start + random() % (64 / alignof(T)) * alignof(T));
    for (size_t i = 0; i < n; ++i) data_[i] = random_element<T>(random);
  }
  T* data() { return data_; }
  bool guards_intact() const {
    const char* const begin = reinterpret_cast<const char*>(data_);
    const char* const end = reinterpret_cast<const char*>(data_ + n_);
    for (const char* at = storage_.data(); at != storage_.data() + storage_.size(); ++at)
      if ((at < begin || at >= end) && *at != guard) return false;
    return true;
  }

 private:
  static constexpr char guard = 0x5a;
  size_t n_;
  std::vector<char> storage_;
  T* data_;
};

template <class T>
struct Case {
  Op op;
  Type type;
  std::vector<Buffer<T>> inputs;
  size_t n;

  std::vector<const T*> pointers() {
    std::vector<const T*> result;
    for (Buffer<T>& input : inputs) result.push_back(input.data());
    return result;
  }

  // Runs the kernel with `out` apart (alias < 0) or over the input `alias`, whose content is put back afterwards.
  void check(const std::vector<T>& expected, int alias, Random& random) {
    Buffer<T> apart(n, random);
    Buffer<T>& out = alias < 0 ? apart : inputs[alias];
    const std::vector<T> kept(out.data(), out.data() + n);
    const std::vector<const T*> in = pointers();
    reduce(op, type, reinterpret_cast<const void* const*>(in.data()), int(in.size()), out.data(), n);
    for (size_t i = 0; i < n; ++i)
      ASSERT_TRUE(equal(op, out.data()[i], expected[i]))
          << name(op) << " on " << name(type) << ", p=" << in.size() << ", n=" << n << ", alias=" << alias << ", element " << i;
    ASSERT_TRUE(out.guards_intact()) << name(op) << " on " << name(type) << " wrote outside, n=" << n;
    std::copy(kept.begin(), kept.end(), out.data());
  }

  void check_all_aliases(Random& random) {
    const std::vector<const T*> in = pointers();
    std::vector<T> expected(n);
    for (size_t i = 0; i < n; ++i) expected[i] = reduce_element(op, in.data(), int(in.size()), i);
    for (int alias = -1; alias < int(in.size()); ++alias) {
      check(expected, alias, random);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
};

template <class T>
void check_pair(Op op, Type type, Random& random) {
  ASSERT_EQ(sizeof(T), size_of(type)) << name(type);
  const size_t several_blocks = 4500 / sizeof(T) + 3;
  for (int p : {1, 2, 3, 4, 5, 6, 7, 8, 9, 17}) {
    for (size_t n : {size_t(0), size_t(1), size_t(2), size_t(7), size_t(37), size_t(129), several_blocks}) {
      Case<T> test = {op, type, {}, n};
      for (int rank = 0; rank < p; ++rank) test.inputs.emplace_back(n, random);
      test.check_all_aliases(random);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

class Reduce : public EveryIsa {};
STRETTO_FOR_EVERY_ISA(Reduce);

TEST_P(Reduce, EqualsTheReferenceBitForBit) {
  Random random(2026);
  for (int type = 0; type < type_count; ++type) {
    for (int op = 0; op < op_count; ++op) {
      if (!defined(Op(op), Type(type))) continue;
      with_element(Type(type), [&](auto element) { check_pair<decltype(element)>(Op(op), Type(type), random); });
      if (HasFatalFailure()) return;
    }
  }
}

// x + (-0) and x * 1 leave every half-precision number as it is: all 65536 of them through both conversions.
template <class H>
void check_all_halves(Type type, uint16_t one) {
  std::vector<uint16_t> x(65536), neutral(65536), out(65536);
  for (size_t i = 0; i < x.size(); ++i) x[i] = uint16_t(i);
  const void* inputs[] = {x.data(), neutral.data()};
  for (Op op : {Op::sum, Op::prod}) {
    neutral.assign(neutral.size(), op == Op::sum ? 0x8000 : one);
    reduce(op, type, inputs, 2, out.data(), out.size());
    for (size_t i = 0; i < x.size(); ++i) ASSERT_TRUE(equal(op, H{out[i]}, H{x[i]})) << name(type) << " " << i << " " << out[i];
  }
}

TEST_P(Reduce, ConvertsEveryHalf) {
  check_all_halves<F16>(Type::f16, 0x3c00);
  check_all_halves<Bf16>(Type::bf16, 0x3f80);
}

TEST_P(Reduce, WrapsNarrowIntegers) {
  const std::vector<int8_t> a(100, 100), b(100, 100);
  const std::vector<uint16_t> c(100, 65535), d(100, 65535);
  std::vector<int8_t> sum(100);
  std::vector<uint16_t> product(100);
  const void* bytes[] = {a.data(), b.data()};
  const void* shorts[] = {c.data(), d.data()};
  reduce(Op::sum, Type::i8, bytes, 2, sum.data(), 100);
  reduce(Op::prod, Type::u16, shorts, 2, product.data(), 100);
  EXPECT_EQ(sum, std::vector<int8_t>(100, -56));
  EXPECT_EQ(product, std::vector<uint16_t>(100, 1));
}

TEST_P(Reduce, KeepsTheLeftOperandWhenUnordered) {
  const float left[] = {NAN, 1, 0.0f, -0.0f}, right[] = {1, NAN, -0.0f, 0.0f};
  const void* inputs[] = {left, right};
  float out[4];
  for (Op op : {Op::min, Op::max}) {
    reduce(op, Type::f32, inputs, 2, out, 4);
    EXPECT_EQ(memcmp(out, left, sizeof out), 0) << name(op);
  }
}

// The tree is ((0+1)+(2+3))+4, on numbers where any other order gives another sum.
TEST_P(Reduce, AssociatesAsDocumented) {
  const double v[] = {1e16, 1, -1e16, 1, 1};
  const void* inputs[] = {&v[0], &v[1], &v[2], &v[3], &v[4]};
  double out = 0;
  reduce(Op::sum, Type::f64, inputs, 5, &out, 1);
  EXPECT_EQ(out, ((v[0] + v[1]) + (v[2] + v[3])) + v[4]);
  EXPECT_NE(out, (((v[0] + v[1]) + v[2]) + v[3]) + v[4]);
}

// Many inputs: the tree stays correct however deep.
TEST_P(Reduce, TakesManyInputs) {
  constexpr size_t n = 700;
  for (int p : {33, 100, 128, 255, 1000}) {
    std::vector<std::vector<int32_t>> values(p, std::vector<int32_t>(n));
    std::vector<const void*> inputs(p);
    for (int rank = 0; rank < p; ++rank) {
      for (size_t i = 0; i < n; ++i) values[rank][i] = rank + int(i);
      inputs[rank] = values[rank].data();
    }
    std::vector<int32_t> out(n), expected(n);
    for (size_t i = 0; i < n; ++i) expected[i] = p * (p - 1) / 2 + p * int(i);
    reduce(Op::sum, Type::i32, inputs.data(), p, out.data(), n);
    EXPECT_EQ(out, expected) << p;
  }
}

// Ranks are threads here, and any of them may be the first to ask.
TEST(ReduceThreads, ShareTheKernels) {
  std::vector<std::thread> threads;
  std::vector<float> results(4);
  for (int rank = 0; rank < 4; ++rank)
    threads.emplace_back([rank, &results] {
      const float a = float(rank), b = 10;
      const void* inputs[] = {&a, &b};
      for (int i = 0; i < 1000; ++i) reduce(Op::sum, Type::f32, inputs, 2, &results[rank], 1);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(results, (std::vector<float>{10, 11, 12, 13}));
}

}  // namespace
}  // namespace stretto::kernels::test
