// Runs of bytes into device memory, with a stand-in for the driver (tests/mpi/device/standin.c) that makes started copies when
// it is waited for. DRIVER names it: one with all functions, or older ones without some. Each is loaded into a process of its
// own.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <random>
#include <vector>

#include "mpi/device/standin.h"
#include "platform/device_memory.hpp"

namespace stretto::platform {
namespace {

using List = std::vector<Run>;
constexpr unsigned char on_device = 0x11, in_image = 0x22;

class Listed final : public Runs {
 public:
  explicit Listed(const List& runs) : runs_(runs) {}
  Run next() override { return at_ < runs_.size() ? runs_[at_++] : Run{}; }

 private:
  const List& runs_;
  size_t at_ = 0;
};

struct Driver {
  void* library = dlopen(STANDIN_DRIVER, RTLD_NOW | RTLD_LOCAL);
  template <class Signature>
  Signature* function(const char* name) const {
    return reinterpret_cast<Signature*>(dlsym(library, name));
  }
  Driver() {
    watch_loader();
    function<CUresult(unsigned)>("cuInit")(0);
  }
  decltype(&standin_fail) fail = function<decltype(standin_fail)>("standin_fail");
  decltype(&standin_set) set = function<decltype(standin_set)>("standin_set");
  decltype(&standin_get) get = function<decltype(standin_get)>("standin_get");
  decltype(&standin_depth) depth = function<decltype(standin_depth)>("standin_depth");
  decltype(&standin_count) count = function<decltype(standin_count)>("standin_count");
  decltype(&standin_pending) pending = function<decltype(standin_pending)>("standin_pending");
  decltype(&standin_written) written = function<decltype(standin_written)>("standin_written");
  const bool has_rows = dlsym(library, "cuMemcpy2DAsync_v2") != nullptr;

  CUdeviceptr allocate(size_t bytes) const {
    CUdeviceptr at = 0;
    EXPECT_EQ(function<CUresult(CUdeviceptr*, size_t)>("cuMemAlloc_v2")(&at, bytes), 0);
    return at;
  }
  void free(CUdeviceptr at) const { function<CUresult(CUdeviceptr)>("cuMemFree_v2")(at); }
};

const Driver& driver() {
  static const Driver one;
  return one;
}

// Device memory and an image of it, of which only the runs are the same afterwards.
struct Target {
  const Driver& cuda = driver();
  const List runs;
  const size_t bytes = runs.empty() ? 64 : runs.back().offset + runs.back().bytes;
  const CUdeviceptr at = cuda.allocate(bytes);
  std::vector<unsigned char> image = std::vector<unsigned char>(bytes, in_image), expected, before;

  explicit Target(List given) : runs(std::move(given)), expected(bytes, on_device), before(expected) {
    for (const Run& run : runs)
      for (size_t i = run.offset; i < run.offset + run.bytes; ++i) expected[i] = image[i] = (unsigned char)(0x40 + i % 100);
    cuda.set(at, before.data(), bytes);
  }
  ~Target() { cuda.free(at); }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  Status store() const {
    Listed list(runs);
    return copy_runs_to_device(reinterpret_cast<void*>(at), image.data(), list);
  }
  std::vector<unsigned char> found() const {
    std::vector<unsigned char> all(bytes);
    cuda.get(at, all.data(), bytes);
    return all;
  }
  size_t run_bytes() const {
    size_t sum = 0;
    for (const Run& run : runs) sum += run.bytes;
    return sum;
  }
};

// `most_copies`: where the driver copies rows.
void expect_stored(const List& runs, size_t most_copies) {
  const Target target(runs);
  const Driver& cuda = driver();
  int before[standin_calls];
  for (int call = 0; call < standin_calls; ++call) before[call] = cuda.count(standin_call(call));
  ASSERT_TRUE(target.store().ok());
  auto calls = [&](standin_call call) { return size_t(cuda.count(call) - before[call]); };
  EXPECT_LE(calls(STANDIN_COPIED_IN), cuda.has_rows ? most_copies : runs.size());
  EXPECT_EQ(calls(STANDIN_ASKED), 1u);
  EXPECT_EQ(calls(STANDIN_PUSHED), 1u);
  EXPECT_EQ(calls(STANDIN_WAITED), 1u);
  EXPECT_EQ(target.found(), target.expected);
  EXPECT_EQ(cuda.written(target.at, target.bytes), target.run_bytes());
  EXPECT_EQ(cuda.pending(), 0);
  EXPECT_EQ(cuda.depth(), 0);
}

List irregular(size_t count) {
  std::mt19937 random(5);
  List runs;
  for (size_t at = 3; runs.size() < count; at += runs.back().bytes + 1 + random() % 30) runs.push_back({at, 1 + random() % 20});
  return runs;
}

TEST(DRIVER, StoresNothing) {
  expect_stored({}, 0);
}

TEST(DRIVER, StoresAColumn) {
  List runs;
  for (size_t row = 0; row < 4096; ++row) runs.push_back({row * 64 + 12, 4});
  expect_stored(runs, 8);
}

TEST(DRIVER, StoresABlockOfABox) {
  List runs;
  for (size_t plane = 0; plane < 20; ++plane)
    for (size_t row = 0; row < 30; ++row) runs.push_back({plane * 40 * 64 + row * 64 + 8, 24});
  expect_stored(runs, 20 + 2);
}

TEST(DRIVER, StoresElementsOfSeveralRuns) {
  List runs;
  for (size_t element = 0; element < 1000; ++element)
    for (const auto& run : List{{1, 1}, {8, 8}, {20, 4}}) runs.push_back({element * 32 + run.offset, run.bytes});
  expect_stored(runs, 3 * 6);
}

TEST(DRIVER, StoresIrregularRuns) {
  for (size_t count : {1, 2, 511, 512, 513, 3000}) expect_stored(irregular(count), count);
}

// Drivers refuse rows that are 2 GiB apart and more.
TEST(DRIVER, StoresWhatIsTooFarApartForRows) {
  const Driver& cuda = driver();
  const size_t distance = size_t(1) << 31, bytes = distance + 64;
  void* image = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(image, MAP_FAILED);
  const CUdeviceptr at = cuda.allocate(bytes);
  const List runs{{8, 4}, {distance + 8, 4}};
  for (const auto& run : runs) *(static_cast<char*>(image) + run.offset) = 7;
  Listed list(runs);
  EXPECT_TRUE(copy_runs_to_device(reinterpret_cast<void*>(at), image, list).ok());
  for (const auto& run : runs) {
    char found = 0;
    cuda.get(at + run.offset, &found, 1);
    EXPECT_EQ(found, 7);
    EXPECT_EQ(cuda.written(at + run.offset - 8, 64), 4u);
  }
  cuda.free(at);
  munmap(image, bytes);
}

// After an error nothing is under way that would read the image, and gaps are as they were.
TEST(DRIVER, IsToldOfRefusals) {
  const Driver& cuda = driver();
  for (standin_step step : {STANDIN_COPY_IN, STANDIN_LATER_COPY_IN, STANDIN_CONTEXT, STANDIN_WAIT}) {
    Target target(irregular(600));
    cuda.fail(step);
    const Status status = target.store();
    cuda.fail(STANDIN_NONE);
    EXPECT_EQ(status.code, Code::refused);
    EXPECT_EQ(status.detail, 719);
    EXPECT_EQ(cuda.pending(), 0);
    EXPECT_EQ(cuda.depth(), 0);
    const std::vector<unsigned char> found = target.found();
    for (size_t i = 0; i < target.bytes; ++i)
      ASSERT_TRUE(target.expected[i] != on_device || found[i] == on_device) << "a gap at " << i << ", step " << step;
    EXPECT_TRUE(step != STANDIN_LATER_COPY_IN || cuda.written(target.at, target.bytes) > 0)
        << "the first copy was not waited for";
    ASSERT_TRUE(target.store().ok());
    EXPECT_EQ(target.found(), target.expected);
  }
}

}  // namespace
}  // namespace stretto::platform
