/* A stand-in for NCCL, for tests on machines without a GPU: the same functions, types and profiler interface, with host buffers,
 * and threads in place of kernels. What NCCL does in which order, and in which thread, is imitated where the wrappers or the
 * plugin depend on it.
 *
 * Environment: STANDIN_FOLDER (where ranks meet: mapped files), STANDIN_PROFILER (newest version of the profiler interface that
 * is spoken: 4, 5, 6; 7: one that no plugin has), STANDIN_VERSION (what ncclGetVersion tells), STANDIN_LOG (file: when the
 * "kernels" really ran). */
#ifndef STANDIN_H
#define STANDIN_H
#include <limits.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ncclComm* ncclComm_t;
typedef void* cudaStream_t;
typedef struct {
  char internal[128];
} ncclUniqueId;
typedef enum { ncclSuccess = 0, ncclInvalidArgument = 4, ncclInvalidUsage = 5, ncclInProgress = 7 } ncclResult_t;
typedef enum { ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg } ncclRedOp_t;
typedef enum {
  ncclInt8,
  ncclUint8,
  ncclInt32,
  ncclUint32,
  ncclInt64,
  ncclUint64,
  ncclFloat16,
  ncclFloat32,
  ncclFloat64,
  ncclBfloat16,
  ncclFloat8e4m3,
  ncclFloat8e5m2,
  ncclNumTypes
} ncclDataType_t;

typedef struct {
  size_t size;
  unsigned magic, version;
  int blocking, cgaClusterSize, minCTAs, maxCTAs;
  const char* netName;
  int splitShare, trafficClass;
  const char* commName;
  int later[16];
} ncclConfig_t;

#ifdef __cplusplus
extern "C" {
#endif
#define STANDIN __attribute__((visibility("default")))

STANDIN ncclResult_t ncclGetVersion(int* version);
STANDIN ncclResult_t ncclGetUniqueId(ncclUniqueId* id);
STANDIN ncclResult_t ncclCommInitRank(ncclComm_t* comm, int size, ncclUniqueId id, int rank);
STANDIN ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank, ncclConfig_t* config);
STANDIN ncclResult_t ncclCommInitRankScalable(ncclComm_t* comm, int size, int rank, int count, ncclUniqueId* ids,
                                              ncclConfig_t* config);
STANDIN ncclResult_t ncclCommInitAll(ncclComm_t* comms, int count, const int* devices);
STANDIN ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* made, ncclConfig_t* config);
STANDIN ncclResult_t ncclCommFinalize(ncclComm_t comm);
STANDIN ncclResult_t ncclCommDestroy(ncclComm_t comm);
STANDIN ncclResult_t ncclCommAbort(ncclComm_t comm);
STANDIN ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state);
STANDIN ncclResult_t ncclCommCount(ncclComm_t comm, int* count);
STANDIN ncclResult_t ncclCommUserRank(ncclComm_t comm, int* rank);
STANDIN ncclResult_t ncclCommCuDevice(ncclComm_t comm, int* device);
STANDIN ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t type, int residence, ncclComm_t comm);

STANDIN ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                                   ncclComm_t comm, cudaStream_t stream);
STANDIN ncclResult_t ncclReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                                ncclComm_t comm, cudaStream_t stream);
STANDIN ncclResult_t ncclBroadcast(const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                                   cudaStream_t stream);
STANDIN ncclResult_t ncclBcast(void* buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream);
STANDIN ncclResult_t ncclAllGather(const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                                   cudaStream_t stream);
STANDIN ncclResult_t ncclReduceScatter(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                                       ncclComm_t comm, cudaStream_t stream);
STANDIN ncclResult_t ncclAlltoAll(const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                                  cudaStream_t stream);
STANDIN ncclResult_t ncclGather(const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                                cudaStream_t stream);
STANDIN ncclResult_t ncclScatter(const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                                 cudaStream_t stream);
STANDIN ncclResult_t ncclSend(const void* send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                              cudaStream_t stream);
STANDIN ncclResult_t ncclRecv(void* receive, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream);
STANDIN ncclResult_t ncclAllReduceConfig(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                                         ncclComm_t comm, cudaStream_t stream, const void* config);
STANDIN ncclResult_t ncclGroupStart(void);
STANDIN ncclResult_t ncclGroupEnd(void);
STANDIN ncclResult_t ncclGroupSimulateEnd(void* info);

/* In place of cudaStreamSynchronize: all work of the communicator is done, and its profiler events are told. */
STANDIN void standinSynchronize(ncclComm_t comm);
#ifdef __cplusplus
}
#endif
#endif
