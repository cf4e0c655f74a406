// A rank with a communicator, without MPI.
#pragma once
#include "engine/communicator.hpp"
#include "unit/engine/processes.hpp"

namespace stretto::engine {

inline Policy policy_of(const select::Rules* rules, select::Travel travel = select::Travel::by_rules) {
  Policy policy;
  policy.rules = rules;
  policy.travel = travel;
  policy.host.broadcast = stand_broadcast;
  policy.host.all = stand_all;
  return policy;
}

// A rank that has joined `name`'s job and made a communicator of all its ranks; null where that failed. Never freed.
struct Joined {
  Job* job = new Job;
  select::Rules* rules;
  Policy* policy = nullptr;
  Communicator* communicator = nullptr;
  uint64_t taken = 0;  // of rank 0: an extent of `before` bytes, from before the communicator was made

  Joined(int rank, int size, const std::string& name, const Settings& settings = quick(),
         select::Travel travel = select::Travel::by_rules, uint64_t before = 0, const char* text = select::default_rules())
      : rules(new select::Rules(rules_of(text))) {
    stand_rank = rank;
    if (!job->join(place_of(rank, size, name), settings, *rules).ok()) return;
    if (rank == 0 && before > 0) taken = job->pool().allocate(before);
    policy = new Policy(policy_of(rules, travel));
    std::vector<int> members;
    for (int r = 0; r < size; ++r) members.push_back(r);
    communicator = Communicator::create(*job, *policy, members.data(), size, rank, nullptr);
  }

  // Leaves the communicator; when all have, the pool must be as it was.
  bool everything_is_given_back(int size) {
    communicator->let_go();
    stand->read.fetch_add(1);
    while (stand->read.load() < uint32_t(size)) usleep(100);
    return job->pool().in_use() == 0;
  }
};

}  // namespace stretto::engine
