/* What the stand-in driver lets a test see and break, besides the functions of cuda.h that it has. */
#pragma once
#include <stddef.h>

typedef int CUresult;
typedef unsigned long long CUdeviceptr;

/* LATER_COPY_IN: all copies in after the first from then on. */
enum standin_step { STANDIN_NONE, STANDIN_COPY_OUT, STANDIN_COPY_IN, STANDIN_CONTEXT, STANDIN_WAIT, STANDIN_LATER_COPY_IN };
enum standin_call { STANDIN_ASKED, STANDIN_PUSHED, STANDIN_COPIED_IN, STANDIN_WAITED, standin_calls };

/* From now on this step fails with CUDA_ERROR_LAUNCH_FAILED (719); STANDIN_NONE: nothing does. */
void standin_fail(enum standin_step step);
/* Depth of the calling thread's stack of contexts. */
int standin_depth(void);
/* Bytes that the program itself sets and reads, whatever the context. */
void standin_set(CUdeviceptr at, const void* bytes, size_t size);
void standin_get(CUdeviceptr at, void* bytes, size_t size);
/* How many ranges of host memory have been locked with cuMemHostRegister; refuse: it locks none from now on. */
int standin_locked(void);
void standin_refuse_to_lock(void);
/* How often the driver has been called for this. */
int standin_count(enum standin_call call);
/* Copies that have been started and not waited for: their bytes are read and written by the wait. */
int standin_pending(void);
/* How many of these bytes copies in have written since standin_set. */
size_t standin_written(CUdeviceptr at, size_t size);
