// Communicators made by every constructor of MPI.
#pragma once
#include <mpi.h>

#include <string>
#include <vector>

#include "random.hpp"

namespace differential {

struct Named {
  std::string name;
  MPI_Comm comm;  // MPI_COMM_NULL where this rank is no member
};

// Drawn alike on all ranks of world. The caller frees them with free_all.
std::vector<Named> make_communicators(Random& agreed);
void free_all(std::vector<Named>& communicators);

}  // namespace differential
