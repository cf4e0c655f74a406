// What a status says beyond its public fields.
#pragma once
#include "shim/mpi.hpp"

namespace stretto::shim::profile {

// Bytes received.
inline uint64_t status_bytes(const MPI_Status& status) {
#if defined(STRETTO_MPI_OMPI)
  return status.byte_count;
#elif defined(STRETTO_MPI_MPICH)
  return uint64_t(uint32_t(status.count_lo)) | uint64_t(uint32_t(status.count_hi_and_cancelled) >> 1u) << 32u;
#else
  MPI_Datatype byte;
  MPI_Count count = 0;
  if (!predefined("MPI_BYTE", &byte) || mpi().Get_elements_x(&status, byte, &count) != MPI_SUCCESS || count < 0) return 0;
  return uint64_t(count);
#endif
}

inline bool status_cancelled(const MPI_Status& status) {
#if defined(STRETTO_MPI_OMPI)
  return status.cancelled != 0;
#elif defined(STRETTO_MPI_MPICH)
  return (status.count_hi_and_cancelled & 1) != 0;
#else
  int flag = 0;
  return mpi().Test_cancelled(&status, &flag) == MPI_SUCCESS && flag != 0;
#endif
}

}  // namespace stretto::shim::profile
