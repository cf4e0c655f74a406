/* What a program does with the CUDA driver: buffers, and what the stand-in tells besides. With NVIDIA's driver device memory
 * takes turns among a primary context, a created one and a pool, and host memory between malloc and pinned; a context is
 * current during these calls alone, so that a library in between has to make the right one current itself. */
#pragma once
#include <stddef.h>

#include "standin.h"

enum place { HOST, DEVICE, MANAGED };

/* From now on libcuda.so.1 is in the process. Whatever fails ends it with a message. */
void load_driver(void);
/* NVIDIA's, not the stand-in. */
int driver_is_real(void);

struct memory {
  enum place place;
  void* at;
  size_t bytes;
  int owner; /* whose turn it was */
};

struct memory new_memory(enum place place, size_t bytes);
void free_memory(const struct memory* memory);
void set_memory(const struct memory* memory, const void* bytes);
void get_memory(const struct memory* memory, void* bytes);
/* One int of it, which counts as the program's own in written_by_others. */
void set_int(const struct memory* memory, size_t index, int value);

/* Bytes of device memory that were written by others since it was set; 0 where the driver does not tell. */
size_t written_by_others(const struct memory* memory);
/* How many contexts a callee has left current; with NVIDIA's driver: whether there is one. */
int contexts_left(void);
/* Calls of the stand-in for copies in, pushed contexts and waits together; 0 with NVIDIA's driver. */
int calls_of_driver(void);
/* The stand-in's next such step fails. */
void fail_from_now(enum standin_step step);
