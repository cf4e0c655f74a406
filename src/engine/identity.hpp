// Which job this process belongs to, and which of its node's ranks it is, from what launchers put into the environment.
#pragma once
#include <stddef.h>

namespace stretto::engine {

struct Locality {
  int rank = -1;  // among the ranks of this job on this node; -1: the launcher does not say
  int size = -1;
  int world = -1;  // ranks of the job on all nodes, where the launcher says so
};

Locality locality();

// A text equal on all ranks of this launch on this node and different for any other: from `job` (STRETTO_JOB), the launcher's
// name space, and the process that started the ranks. Empty when nothing identifies the launch.
void identify_launch(const char* job, char* text, size_t bytes);

}  // namespace stretto::engine
