// How the ranks of a node share its CPUs.
#pragma once
#include "collective/contention.hpp"

namespace stretto::engine {

// As one of them sees it.
struct Sharing {
  bool crowded = false;      // some must share: equal on all
  bool own_cpus = true;      // no other rank may run where this one may
  bool yields_reach = true;  // a yield passes a shared CPU on to any other rank: equal on all
  bool same_cpus = false;    // all may use the same CPUs, which are fewer than they are
  int first = 0;             // the first of the ranks with which this one shares its CPUs ...
  int surplus = 0;           // ... and how many more there are than CPUs

  // These ranks. Null where yields do not reach, or none must share.
  const collective::Crowd* crowd = nullptr;
};

}  // namespace stretto::engine
