// A node of the simulated machine, in which ranks share memory: what copying, adding and telling one another take there.
//
// The phases are those of Stretto's staged algorithms (collective/patterns/slice_reduce.cpp and flat.cpp), each as a whole: a
// reduce copies its input into cells, waits for all, adds its share of the vector (a slice of each rank's), and the root copies
// the result out; up to `small` bytes the root adds all. A bcast copies into cells while the others copy out, one cell behind.
// Where peers' buffers are mapped (`direct`, patterns/direct.cpp), larger vectors are read and results written where they are.
// Speeds are of one core while all ranks of the node are at work, so nothing more is said of the memory that they share.
#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <simgrid/s4u.hpp>
#include <vector>

#include "collective/hierarchy/cluster.hpp"

namespace stretto::scale {

struct Speeds {
  double copy = 10e9;    // bytes per second
  double add = 10e9;     // bytes of one operand per second
  double tell = 0.3e-6;  // seconds until another rank sees a flag
};

// Charges the caller for adding `bytes`, and for copying them.
void charge_add(size_t bytes);
void charge_copy(size_t bytes);

// Set once, before the ranks begin. check: results count, so buffers have contents and adding adds.
extern Speeds speeds;
extern bool check, direct;

class Node {
 public:
  explicit Node(int ranks) : ranks_(ranks) {}

  // One rank's call; the n-th of each rank belong together. Requests of f32 elements, Op::sum.
  Status run(const collective::Request& request, int local, size_t call);

 private:
  // A collective on its way: kept until all have left.
  struct Phase {
    std::vector<const collective::Request*> requests;
    std::vector<char> staged;  // what a bcast gives out, if it counts
    simgrid::s4u::BarrierPtr filled, added;
    simgrid::s4u::SemaphorePtr told, copied;
    int left = 0;
  };
  Phase& phase(size_t call);
  void reduce(Phase& phase, const collective::Request& request, int local) const;
  void small_reduce(Phase& phase, const collective::Request& request, int local) const;
  void bcast(Phase& phase, const collective::Request& request, int local) const;
  void give(Phase& phase, const collective::Request& request) const;
  void add_all(const Phase& phase, const collective::Request& request) const;

  const int ranks_;
  std::map<size_t, Phase> phases_;
};

}  // namespace stretto::scale
