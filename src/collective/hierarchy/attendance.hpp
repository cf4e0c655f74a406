// Which nodes are late: what the first ranks of the nodes agree on without those that have not come.
//
// One of them decides (Cluster::Attended::decider). All tell it that they have come; when few are missing it waits for these a
// moment longer, each time that one comes anew, and then tells everybody who was missing. So there is one decision, whatever
// comes when; a late decider holds up what could have been done, never the result. One that came last names another for the next
// call: who is late once is often late again.
#pragma once
#include "base/clock.hpp"
#include "collective/hierarchy/cluster.hpp"

namespace stretto::collective {

class Attendance {
 public:
  static constexpr int most_nodes = 64;
  static constexpr uint32_t events = 2;  // numbers of messages below events << 24 are this object's

  // Of an allreduce of so many bytes.
  Attendance(Cluster& cluster, size_t bytes) : cluster_(cluster), place_(cluster.place), links_(*cluster.links), bytes_(bytes) {}
  Attendance(const Attendance&) = delete;
  Attendance& operator=(const Attendance&) = delete;

  // How many may be called late: with more, the others have as much to do as they save.
  static int most_late(int nodes) { return std::max(nodes / 4, 1); }

  // All first ranks come here when their nodes have. has_room: whether this one could own a part.
  Status agree(bool has_room);

  struct Answer {
    uint64_t late = 0;  // a bit for each node
    uint64_t room = 1;  // all that are there have it
    bool is_late(int node) const { return (late >> node & 1) != 0; }
    int count() const { return __builtin_popcountll(late); }
  };
  const Answer& answer() const { return plan_.answer; }

  // Messages that are still under way, and the end of one; false: it was another's.
  size_t pending() const { return pending_; }
  bool ended(uint32_t number);

  // What was to be done after agree() has taken so long.
  void took(uint64_t ns);

 private:
  enum Event : uint32_t { notice, plan };
  struct Plan {
    Answer answer;
    int64_t decider = 0;  // in the next call
  };

  uint64_t all() const { return ~uint64_t(0) >> (most_nodes - place_.nodes); }
  int decider() const { return cluster_.attended.decider; }
  uint64_t patience() const;
  Status decide();
  Status take_those_here();
  Status tell_all();

  Cluster& cluster_;
  const Placement& place_;
  Links& links_;
  const size_t bytes_;
  size_t pending_ = 0;
  uint64_t came_ = 0;  // a bit for each node
  uint64_t notices_[most_nodes] = {};
  Plan plan_, told_;
  bool knows_ = false;
};

}  // namespace stretto::collective
