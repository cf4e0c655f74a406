// Deep rounds: where a rank puts them, and how far ahead it goes.
#include "collective/patterns/rounds.hpp"

#include <set>

#include "team_of_threads.hpp"

namespace stretto::collective {
namespace {

constexpr size_t round_bytes = 1024;  // four to a cell, sixteen to a rank

// The first of two ranks gives rounds, the second reads them; both by turns in this thread.
class DeepRounds : public testing::Test {
 protected:
  void begin(size_t rounds) {
    bytes_.assign(rounds * round_bytes, 0);
    for (size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = char(i / round_bytes * 7 + i);
    request_.count = bytes_.size();
    giver_.emplace(threads_.team(0), request_, round_bytes, round_bytes);
    reader_.emplace(threads_.team(1), request_, round_bytes, round_bytes);
    giver_->drained_all();
  }
  void give(uint32_t i) {
    ASSERT_LT(giver_->kept_by(i), 0) << i;
    ASSERT_TRUE(giver_->stage(i, bytes_.data()).ok());
    const auto place = giver_->place_of(0, i);
    used_.insert({place.cell.round, place.at});
  }
  void read(uint32_t i) {
    const void* data;
    ASSERT_TRUE(reader_->is_filled(0, i));
    ASSERT_TRUE(reader_->get(0, i, reader_->range(i), &data).ok());
    EXPECT_EQ(std::memcmp(data, &bytes_[i * round_bytes], round_bytes), 0) << i;
    reader_->drained(i);
  }

  TeamOfThreads threads_{2};
  Request request_;
  std::vector<char> bytes_;
  std::optional<Rounds> giver_, reader_;
  std::set<std::pair<uint32_t, size_t>> used_;  // places
};

TEST_F(DeepRounds, StayInAsManyPlacesAsThereAreCellsWhilePeersKeepUp) {
  for (int call = 0; call < 3; ++call) {
    begin(30);
    for (uint32_t i = 0; i < 30; ++i) {
      give(i);
      if (i >= 3) read(i - 3);
    }
    for (uint32_t i = 27; i < 30; ++i) read(i);
  }
  EXPECT_EQ(used_.size(), 4u);
}

TEST_F(DeepRounds, TakeAllPlacesWhenAPeerIsBehindAndComeBack) {
  begin(40);
  for (uint32_t i = 0; i < 16; ++i) {
    giver_->linger(i);  // for a moment, in vain
    give(i);
  }
  EXPECT_EQ(used_.size(), 16u);
  EXPECT_EQ(giver_->kept_by(16), 1);
  for (uint32_t i = 0; i < 16; ++i) read(i);
  used_.clear();
  for (uint32_t i = 16; i < 40; ++i) {
    give(i);
    read(i);
  }
  EXPECT_EQ(used_.size(), 4u);
}

// What lies otherwise is drained first.
TEST_F(DeepRounds, BeginAnewAfterRoundsThatLayOtherwise) {
  begin(20);
  for (uint32_t i = 0; i < 20; ++i) {
    give(i);
    if (i < 19) read(i);
  }
  Rounds flat(threads_.team(0), request_), other(threads_.team(1), request_);
  EXPECT_EQ(flat.kept_by(0), 1);
  read(19);
  EXPECT_LT(flat.kept_by(0), 0);
  flat.drained_all();
  other.drained_all();
  begin(20);
  used_.clear();
  for (uint32_t i = 0; i < 16; ++i) give(i);
  EXPECT_EQ(used_.size(), 16u);
  for (uint32_t i = 0; i < 16; ++i) read(i);
}

}  // namespace
}  // namespace stretto::collective
