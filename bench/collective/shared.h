/* Memory that all ranks of a node map. */
#ifndef BENCH_SHARED_H
#define BENCH_SHARED_H

#include <mpi.h>
#include <stddef.h>

/* Collective over `comm`. Returns zeros at a multiple of 128 bytes, the same on all ranks, or null when they do not share a node.
 * To be freed as the window. */
void* shared_open(MPI_Comm comm, size_t bytes, MPI_Win* window);

/* Between two looks at what another rank is to store. */
static inline void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

#endif
