// Where a buffer is, in a process without a CUDA driver and after one has been loaded late: tests/mpi/device/standin.c, whose
// memory no CPU may touch.
#include "platform/device_memory.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "platform/kept_memory.hpp"

namespace stretto::platform {
namespace {

using DevicePointer = unsigned long long;

template <class Signature>
Signature* function(void* library, const char* name) {
  auto* found = reinterpret_cast<Signature*>(dlsym(library, name));
  EXPECT_NE(found, nullptr) << name;
  return found;
}

// The order matters: a driver, once there, stays. So this is one test.
TEST(DeviceMemory, IsFoundWhenTheDriverComesLate) {
  int here = 0;
  EXPECT_EQ(memory_place(&here), on_host);  // before the loader is watched
  watch_loader();
  EXPECT_EQ(memory_place(&here), on_host);
  EXPECT_TRUE(no_device_memory()) << "the loader's count was not found: every call asks the loader";

  void* other = dlopen("libutil.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (other != nullptr) {
    EXPECT_FALSE(no_device_memory()) << "a library was loaded";
    EXPECT_EQ(memory_place(&here), on_host);
    EXPECT_TRUE(no_device_memory()) << "and it was no driver";
    dlclose(other);
  }

  void* cuda = dlopen(STANDIN_DRIVER, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(cuda, nullptr) << dlerror();
  EXPECT_FALSE(no_device_memory());
  EXPECT_EQ(memory_place(&here), on_host);  // not initialised yet
  function<int(unsigned)>(cuda, "cuInit")(0);
  auto* allocate = function<int(DevicePointer*, size_t)>(cuda, "cuMemAlloc_v2");
  auto* fail = function<void(int)>(cuda, "standin_fail");
  auto* depth = function<int()>(cuda, "standin_depth");

  for (int i = 0; i < 4; ++i) {  // of contexts and of pools, on three devices
    DevicePointer at = 0;
    ASSERT_EQ(allocate(&at, 8192), 0);
    void* device = reinterpret_cast<void*>(at);
    EXPECT_EQ(memory_place(device), i % 3 + 1);
    EXPECT_FALSE(reachable(&here, device));
    EXPECT_FALSE(reachable(device, &here));
    std::vector<char> out(8192, char(i + 1)), in(8192);
    ASSERT_TRUE(copy_to_device(device, out.data(), out.size()).ok());
    std::thread([&] { EXPECT_TRUE(copy_from_device(in.data(), device, in.size()).ok()); }).join();
    EXPECT_EQ(in, out);
    EXPECT_EQ(depth(), 0) << "the current context is not what it was";
    for (int step = 1; step <= 3; ++step) {
      fail(step);
      EXPECT_EQ(copy_from_device(in.data(), device, 1).ok(), step == 2);
      EXPECT_EQ(copy_to_device(device, in.data(), 1).ok(), step == 1);
      EXPECT_EQ(depth(), 0);
    }
    fail(0);
  }

  // What is kept is locked once, at its first copy; where the driver refuses, it copies all the same.
  auto* locked = function<int()>(cuda, "standin_locked");
  DevicePointer source = 0;
  ASSERT_EQ(allocate(&source, least_kept), 0);
  EXPECT_EQ(locked(), 0);
  char* kept[2] = {take_kept(least_kept), take_kept(least_kept)};
  ASSERT_TRUE(kept[0] != nullptr && kept[1] != nullptr);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(copy_from_device(kept[0] + 8 * i, reinterpret_cast<void*>(source), 64).ok());
  EXPECT_EQ(locked(), 1);
  function<void()>(cuda, "standin_refuse_to_lock")();
  EXPECT_TRUE(copy_to_device(reinterpret_cast<void*>(source), kept[1], least_kept).ok());
  EXPECT_EQ(locked(), 1);
  EXPECT_EQ(depth(), 0);

  DevicePointer at = 0;
  ASSERT_EQ(function<int(DevicePointer*, size_t, unsigned)>(cuda, "cuMemAllocManaged")(&at, 64, 1), 0);
  EXPECT_EQ(memory_place(reinterpret_cast<void*>(at)), managed);
  EXPECT_TRUE(reachable(&here, reinterpret_cast<void*>(at)));
  EXPECT_EQ(memory_place(nullptr), on_host);
  EXPECT_TRUE(reachable(&here, nullptr));
}

}  // namespace
}  // namespace stretto::platform
