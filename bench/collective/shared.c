#define _GNU_SOURCE
#include "shared.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { name_bytes = 64 };

static int all_share_a_node(MPI_Comm comm) {
  MPI_Comm node;
  int ranks, on_node;
  PMPI_Comm_size(comm, &ranks);
  PMPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  PMPI_Comm_size(node, &on_node);
  PMPI_Comm_free(&node);
  return on_node == ranks;
}

/* Rank 0 makes it. Returns MAP_FAILED where it cannot be had. */
static void* map_named(const char* name, size_t bytes, int rank) {
  const int file = shm_open(name, rank == 0 ? O_CREAT | O_EXCL | O_RDWR : O_RDWR, 0600);
  if (file < 0) return MAP_FAILED;
  void* shared = rank == 0 && posix_fallocate(file, 0, (off_t)bytes)
                     ? MAP_FAILED
                     : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return shared;
}

void* shared_open(MPI_Comm comm, size_t bytes) {
  if (!all_share_a_node(comm)) return NULL;
  char name[name_bytes];
  int rank;
  void* shared = MAP_FAILED;
  PMPI_Comm_rank(comm, &rank);
  if (rank == 0) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(name, sizeof name, "/collective_bench-%ld-%ld.%09ld", (long)getpid(), (long)now.tv_sec, now.tv_nsec);
    shared = map_named(name, bytes, rank);
  }
  PMPI_Bcast(name, sizeof name, MPI_CHAR, 0, comm);
  if (rank != 0) shared = map_named(name, bytes, rank);
  int failed = shared == MAP_FAILED;
  PMPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, comm);
  if (rank == 0) shm_unlink(name);
  if (!failed) return shared;
  shared_close(shared, bytes);
  return NULL;
}

void shared_close(void* shared, size_t bytes) {
  if (shared && shared != MAP_FAILED) munmap(shared, bytes);
}
