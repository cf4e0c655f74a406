#include "shared.h"

#include <stdint.h>
#include <string.h>

void* shared_open(MPI_Comm comm, size_t bytes, MPI_Win* window) {
  enum { alignment = 128 };
  MPI_Comm node;
  int ranks, rank, on_node;
  PMPI_Comm_size(comm, &ranks);
  PMPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  PMPI_Comm_size(node, &on_node);
  PMPI_Comm_rank(node, &rank);
  if (on_node != ranks) {
    PMPI_Comm_free(&node);
    return NULL;
  }
  char* base;
  MPI_Aint size;
  int unit;
  const MPI_Aint mine = rank == 0 ? (MPI_Aint)bytes + alignment : 0;
  PMPI_Win_allocate_shared(mine, 1, MPI_INFO_NULL, node, &base, window);
  PMPI_Win_shared_query(*window, 0, &size, &unit, &base);
  /* Pages are mapped at page borders in every process, so the rounded address is the same place on all ranks. */
  void* shared = (void*)(((uintptr_t)base + alignment - 1) / alignment * alignment);
  if (rank == 0) memset(shared, 0, bytes);
  PMPI_Barrier(node);
  PMPI_Comm_free(&node);
  return shared;
}
