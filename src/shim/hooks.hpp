// Where the generated wrappers hand over to Stretto. The wrappers call these only between a successful MPI_Init
// (attach() has returned) and MPI_Finalize, where detach() is called, and never when the program's MPI is not the one this
// library is built for. They may be called from several threads at once under MPI_THREAD_MULTIPLE.
#pragma once
#include <cstdint>

#include "base/settings.hpp"
#include "collective/request.hpp"
#include "shim/abi.hpp"
#include "shim/hooks/arrays.hpp"
#include "trace/recorder.hpp"

namespace stretto::shim {

// What a hook tells its wrapper.
struct Call {
  int code = MPI_SUCCESS;  // true was returned: what the wrapper returns to the program
  uint64_t bytes = 0;      // contributed by this rank, as far as known
  bool brief = false;      // false was returned: MPI does it in an instant, alone
  uint32_t reason = 0;     // false was returned: why, an index into the reasons of record_tables()
  uint32_t algorithm = 0;  // true was returned: what ran, an index into the algorithms of record_tables()
};

using collective::Kind;  // also their numbers in the record

// hooks/. true: done. false: the wrapper calls PMPI. It counts both.
bool barrier(MPI_Comm comm, Call& call);
bool bcast(void* buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm, Call& call);
bool reduce(const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm, Call& call);
bool allreduce(const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, Call& call);
bool scan(const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, Call& call);
bool exscan(const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, Call& call);
bool reduce_scatter(const void* send, void* receive, Numbers counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm, Call& call);
bool reduce_scatter_block(const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                          Call& call);
bool gather(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* receive, MPI_Count receive_count,
            MPI_Datatype receive_type, int root, MPI_Comm comm, Call& call);
bool scatter(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* receive, MPI_Count receive_count,
             MPI_Datatype receive_type, int root, MPI_Comm comm, Call& call);
bool allgather(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* receive, MPI_Count receive_count,
               MPI_Datatype receive_type, MPI_Comm comm, Call& call);
bool alltoall(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* receive, MPI_Count receive_count,
              MPI_Datatype receive_type, MPI_Comm comm, Call& call);
bool gatherv(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* receive, Numbers counts, Numbers displacements,
             MPI_Datatype receive_type, int root, MPI_Comm comm, Call& call);
bool scatterv(const void* send, Numbers counts, Numbers displacements, MPI_Datatype send_type, void* receive,
              MPI_Count receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm, Call& call);
bool allgatherv(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* receive, Numbers counts,
                Numbers displacements, MPI_Datatype receive_type, MPI_Comm comm, Call& call);
bool alltoallv(const void* send, Numbers send_counts, Numbers send_displacements, MPI_Datatype send_type, void* receive,
               Numbers receive_counts, Numbers receive_displacements, MPI_Datatype receive_type, MPI_Comm comm, Call& call);
bool alltoallw(const void* send, Numbers send_counts, Numbers send_displacements, Types send_types, void* receive,
               Numbers receive_counts, Numbers receive_displacements, Types receive_types, MPI_Comm comm, Call& call);

// attach.cpp. attach: right after a successful MPI_Init or MPI_Init_thread; the record is open, its header knows the
// world rank and size, and named_type and named_op work. detach: in MPI_Finalize, while MPI may still be
// called.
void attach();
void detach();

// Whether collectives are accelerated at present, and why (stretto_accelerating of the public interface).
bool accelerating(const char** why);

// The names of reasons and algorithms for the record; the shim adds its functions. Called once, before the first count.
void fill_record_tables(trace::Tables* tables);

// Provided by the shim: the settings as read from the environment at the first MPI call.
const Settings& settings();

}  // namespace stretto::shim
