#include "collective/hierarchy/attendance.hpp"

#include <algorithm>

namespace stretto::collective {

// A small part of what the call takes by itself: where the missing come right then, little is lost by having waited.
uint64_t Attendance::patience() const {
  constexpr uint64_t least = 20'000, most = 20'000'000;
  return std::clamp(uint64_t(cluster_.attended.ns_per_byte * double(bytes_) / 16), least, most);
}

Status Attendance::agree(bool has_room) {
  const int own = place_.node;
  notices_[own] = has_room;
  if (own == decider()) {
    STRETTO_TRY(decide());
    STRETTO_TRY(tell_all());
  } else {
    const int peer = place_.rank_at(decider(), 0);
    pending_ += 2;
    STRETTO_TRY(links_.post_receive(peer, &told_, sizeof told_, 0, plan << 24));
    STRETTO_TRY(links_.post_send(peer, &notices_[own], sizeof notices_[own], 0, notice << 24 | uint32_t(own)));
    while (!knows_) {
      uint32_t number;
      STRETTO_TRY(links_.any_ended(0, &number));
      ended(number);
    }
    plan_ = told_;
  }
  cluster_.attended.decider = int(plan_.decider);
  return Status::good();
}

Status Attendance::decide() {
  came_ = uint64_t(1) << place_.node;
  for (int n = 0; n < place_.nodes; ++n) {
    if (n == place_.node) continue;
    ++pending_;
    STRETTO_TRY(links_.post_receive(place_.rank_at(n, 0), &notices_[n], sizeof notices_[n], 0, notice << 24 | uint32_t(n)));
  }
  STRETTO_TRY(take_those_here());
  const bool came_last = came_ == all();
  for (uint64_t newest = now_ns(); came_ != all(); newest = now_ns()) {
    const bool few_missing = __builtin_popcountll(all() & ~came_) <= most_late(place_.nodes);
    uint32_t number;
    STRETTO_TRY(links_.any_ended(few_missing ? newest + patience() : 0, &number));
    if (number == Links::none) break;
    ended(number);
  }
  plan_ = {{all() & ~came_, 1}, came_last ? (place_.node + 1) % place_.nodes : place_.node};
  for (int n = 0; n < place_.nodes; ++n)
    if (!answer().is_late(n)) plan_.answer.room &= notices_[n];
  return Status::good();
}

// An MPI does not find all at the first look.
Status Attendance::take_those_here() {
  for (int vain = 0; came_ != all() && vain < 8;) {
    constexpr uint64_t long_ago = 1;
    uint32_t number;
    STRETTO_TRY(links_.any_ended(long_ago, &number));
    if (number == Links::none) ++vain;
    if (number != Links::none) ended(number);
  }
  return Status::good();
}

Status Attendance::tell_all() {
  for (int n = 0; n < place_.nodes; ++n) {
    if (n == place_.node) continue;
    ++pending_;
    STRETTO_TRY(links_.post_send(place_.rank_at(n, 0), &plan_, sizeof plan_, 0, plan << 24));
  }
  return Status::good();
}

bool Attendance::ended(uint32_t number) {
  if (number >> 24 >= events) return false;
  --pending_;
  if (number >> 24 == notice) came_ |= uint64_t(1) << (number & 0xff);
  if (number >> 24 == plan) knows_ = true;
  return true;
}

void Attendance::took(uint64_t ns) {
  if (answer().late == 0) cluster_.attended.ns_per_byte = double(ns) / double(bytes_);
}

}  // namespace stretto::collective
