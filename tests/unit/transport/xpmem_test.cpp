#include "transport/xpmem/xpmem.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <barrier>
#include <cstring>
#include <thread>
#include <vector>

namespace stretto::transport {
namespace {

class XpmemTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Status status = load_xpmem(XPMEM_STANDIN, "/dev/null", &calls_);
    ASSERT_TRUE(status.ok()) << status.what;
    void* library = dlopen(XPMEM_STANDIN, RTLD_NOW | RTLD_NOLOAD);
    attached_ = static_cast<int*>(dlsym(library, "standin_attached"));
    most_ = static_cast<int*>(dlsym(library, "standin_most"));
    refuse_ = static_cast<int*>(dlsym(library, "standin_refuse"));
    calls_made_ = static_cast<int*>(dlsym(library, "standin_calls"));
    *attached_ = *most_ = *refuse_ = *calls_made_ = 0;
  }
  XpmemCalls calls_;
  int *attached_ = nullptr, *most_ = nullptr, *refuse_ = nullptr, *calls_made_ = nullptr;
};

TEST_F(XpmemTest, ReadsAndWritesAPeersBuffer) {
  int64_t segid = make_xpmem_segment(calls_);
  ASSERT_GT(segid, 0);
  int members[] = {1, 0};
  {
    XpmemPeers peers(calls_, 2);
    EXPECT_FALSE(peers.open(0, segid + 1));
    ASSERT_TRUE(peers.open(0, segid));
    auto mine = make_xpmem(peers, members, 2, 0);  // the peer is rank 1, member 0
    std::vector<char> theirs(1000, 'a');
    Window window = mine->window(theirs.data());
    EXPECT_TRUE(mine->reach().reads(window) && mine->reach().writes(window));
    const void* data = nullptr;
    ASSERT_TRUE(mine->get(1, window, {}, 100, 900, nullptr, &data).ok());
    EXPECT_EQ(data, theirs.data() + 100);
    std::memset(mine->place_at(1, earlier(window, 5000), 5000, 10), 'b', 10);
    EXPECT_EQ(theirs[9], 'b');
    EXPECT_EQ(theirs[10], 'a');
    EXPECT_EQ(mine->get(1, {}, {}, 0, 8, nullptr, &data).code, Code::refused);
    EXPECT_EQ(mine->window(nullptr).base, 0u);
  }
  EXPECT_EQ(*attached_, 0) << "all is detached in the end";
}

TEST_F(XpmemTest, AttachmentsAreKeptAndBounded) {
  XpmemPeers peers(calls_, 1);
  ASSERT_TRUE(peers.open(0, make_xpmem_segment(calls_)));
  uint64_t far = uint64_t(1) << 40;
  for (int i = 0; i < 100; ++i) EXPECT_NE(peers.map(0, far + uint64_t(i % 10) * 1000, 500), nullptr);
  EXPECT_EQ(*attached_, 1);
  for (uint64_t i = 0; i < 100'000; ++i)
    ASSERT_EQ(peers.map(0, far * (1 + i % 50) + 8, 8), reinterpret_cast<void*>(far * (1 + i % 50) + 8));
  EXPECT_LE(*most_, XpmemPeers::capacity);
}

// Of 100,000 buffers, each in a place of its own, no more than the capacity is attached at any time, and none in the end.
TEST_F(XpmemTest, UniqueBuffersStayBounded) {
  {
    XpmemPeers peers(calls_, 2);
    for (int member : {0, 1}) ASSERT_TRUE(peers.open(member, make_xpmem_segment(calls_)));
    uint64_t apart = uint64_t(64) << 20;
    for (uint64_t i = 1; i <= 100'000; ++i)
      for (int member : {0, 1}) ASSERT_EQ(peers.map(member, apart * i + 8, 100), reinterpret_cast<void*>(apart * i + 8));
    EXPECT_EQ(*calls_made_, 200'000);
    EXPECT_EQ(*attached_, 2 * XpmemPeers::capacity);
    EXPECT_EQ(*most_, 2 * XpmemPeers::capacity);
  }
  EXPECT_EQ(*attached_, 0);
}

// What was used least recently goes first; what is used between all others stays.
TEST_F(XpmemTest, TheOldestGoes) {
  XpmemPeers peers(calls_, 1);
  ASSERT_TRUE(peers.open(0, make_xpmem_segment(calls_)));
  uint64_t apart = uint64_t(64) << 20;
  for (uint64_t i = 1; i <= 1000; ++i) {
    ASSERT_NE(peers.map(0, apart, 100), nullptr);
    ASSERT_NE(peers.map(0, apart * (1 + i), 100), nullptr);
  }
  EXPECT_EQ(*calls_made_, 1 + 1000);
  ASSERT_NE(peers.map(0, apart * 500, 100), nullptr);
  EXPECT_EQ(*calls_made_, 1 + 1000 + 1) << "long gone, so attached again";
}

// A refusal costs at most one attachment, and what is attached stays of use.
TEST_F(XpmemTest, ARefusalLeavesTheOthers) {
  XpmemPeers peers(calls_, 1);
  ASSERT_TRUE(peers.open(0, make_xpmem_segment(calls_)));
  uint64_t apart = uint64_t(64) << 20;
  for (uint64_t i = 1; i <= XpmemPeers::capacity; ++i) ASSERT_NE(peers.map(0, apart * i, 100), nullptr);
  *refuse_ = 1;
  for (uint64_t i = 0; i < 10; ++i) EXPECT_EQ(peers.map(0, apart * (100 + i), 100), nullptr);
  EXPECT_EQ(*attached_, XpmemPeers::capacity - 1);
  EXPECT_EQ(peers.map(0, apart * XpmemPeers::capacity, 100), reinterpret_cast<void*>(apart * XpmemPeers::capacity));
  *refuse_ = 0;
  EXPECT_NE(peers.map(0, apart * 100, 100), nullptr);
  EXPECT_EQ(*attached_, XpmemPeers::capacity);
  EXPECT_EQ(peers.map(0, UINT64_MAX - 50, 100), nullptr) << "round the end of the address space";
  EXPECT_EQ(peers.map(1, apart, 100), nullptr) << "no such member";
}

// Threads run collectives side by side: what one reads is not detached by another.
TEST_F(XpmemTest, ThreadsDetachTheirOwn) {
  XpmemPeers peers(calls_, 1);
  ASSERT_TRUE(peers.open(0, make_xpmem_segment(calls_)));
  const uint64_t apart = uint64_t(64) << 20;
  ASSERT_NE(peers.map(0, apart, 100), nullptr);
  std::thread([&] {
    for (uint64_t i = 1; i <= 100; ++i) ASSERT_NE(peers.map(0, apart * i, 100), nullptr);
  }).join();
  EXPECT_EQ(*attached_, 1 + XpmemPeers::capacity);
  const int before = *calls_made_;
  ASSERT_NE(peers.map(0, apart, 100), nullptr);
  EXPECT_EQ(*calls_made_, before) << "it has stayed";
}

TEST_F(XpmemTest, ManyThreadsAreBounded) {
  XpmemPeers peers(calls_, 1);
  ASSERT_TRUE(peers.open(0, make_xpmem_segment(calls_)));
  const uint64_t apart = uint64_t(64) << 20;
  std::vector<std::thread> threads;
  std::barrier all_there(40);  // so that none has the identity of one that has ended
  for (int t = 0; t < 40; ++t)
    threads.emplace_back([&] {
      for (uint64_t i = 1; i <= XpmemPeers::capacity; ++i) peers.map(0, apart * i, 100);
      all_there.arrive_and_wait();
    });
  for (std::thread& one : threads) one.join();
  EXPECT_EQ(*attached_, XpmemPeers::most);
}

TEST_F(XpmemTest, WhatCannotBeAttachedIsRefused) {
  XpmemPeers peers(calls_, 1);
  int member = 0;
  auto transport = make_xpmem(peers, &member, 1, -1);
  const void* data = nullptr;
  char byte = 0;
  EXPECT_EQ(transport->get(0, transport->window(&byte), {}, 0, 1, nullptr, &data).code, Code::refused) << "not open";
  ASSERT_TRUE(peers.open(0, make_xpmem_segment(calls_)));
  *refuse_ = 1;
  EXPECT_EQ(transport->get(0, transport->window(&byte), {}, 0, 1, nullptr, &data).code, Code::refused);
  *refuse_ = 0;
  EXPECT_TRUE(transport->get(0, transport->window(&byte), {}, 0, 1, nullptr, &data).ok());
}

TEST(Xpmem, IsNotToBeHadWithoutDeviceOrLibrary) {
  XpmemCalls calls;
  EXPECT_EQ(load_xpmem(XPMEM_STANDIN, "/dev/no-such-device", &calls).code, Code::refused);
  EXPECT_EQ(load_xpmem("libno-such-library.so", "/dev/null", &calls).code, Code::refused);
  EXPECT_EQ(load_xpmem("libm.so.6", "/dev/null", &calls).code, Code::refused) << "a library without the calls";
}

}  // namespace
}  // namespace stretto::transport
