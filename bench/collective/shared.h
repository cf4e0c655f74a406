/* Memory that all ranks of a node map. */
#ifndef BENCH_SHARED_H
#define BENCH_SHARED_H

#include <mpi.h>
#include <stddef.h>

/* Collective over `comm`. Returns zeros at the border of a page, the same on all ranks, or null when they do not share a node or
 * it has no memory for it. Not a window of MPI's: while a program has any, ranks that wait have more to see to, which would be
 * measured. */
void* shared_open(MPI_Comm comm, size_t bytes);
void shared_close(void* shared, size_t bytes);

/* Between two looks at what another rank is to store. */
static inline void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

#endif
