/* What a loaded library costs where it takes nothing over: calls that pass through or decline, MPI_X against PMPI_X. */
#ifndef BENCH_DECLINE_H
#define BENCH_DECLINE_H

#include <mpi.h>
#include <stdio.h>

/* Collective over `comm`; rank 0 prints a table and, where json is not null, a JSON line per call. Calls over the whole
 * communicator are timed only where nothing is accelerated, that is with STRETTO_ACCELERATE=off or no Stretto. */
void measure_declining(MPI_Comm comm, double budget_ms, int accelerating, FILE* json);

#endif
