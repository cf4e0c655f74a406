/* What the machine itself takes to move bytes: the floor under a collective. */
#ifndef BENCH_FLOOR_H
#define BENCH_FLOOR_H

#include "operation.h"
#include "start_line.h"

/* Collective. Microseconds in which each rank copies so many bytes, all ranks at once (STREAM copy): the best of several tries,
 * of all that were ever asked for at this size. The buffers of `data` have room for them; its results are overwritten. */
double copy_us(const Data* data, StartLine* line, size_t bytes);

#endif
