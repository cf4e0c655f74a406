#include "bench/collectives.hpp"

#include <string.h>

namespace stretto::bench {
namespace {

struct Arguments {
  const Mpi& mpi;
  const Calls& side;
  MPI_Comm comm;
  const Data& data;
  int root;
  const float* in() const { return data.send.get(); }
  float* out() const { return data.receive.get(); }
  int count() const { return int(data.count); }
  const int* counts() const { return data.counts.get(); }
  const int* places() const { return data.places.get(); }
  const int* byte_places() const { return data.byte_places.get(); }
  const MPI_Datatype* types() const { return data.types.get(); }
  MPI_Datatype type() const { return mpi.float32; }
  MPI_Op sum() const { return mpi.sum; }
};

void barrier(const Arguments& a) {
  a.side.Barrier(a.comm);
}
void bcast(const Arguments& a) {
  a.side.Bcast(a.out(), a.count(), a.type(), a.root, a.comm);
}
void reduce(const Arguments& a) {
  a.side.Reduce(a.in(), a.out(), a.count(), a.type(), a.sum(), a.root, a.comm);
}
void allreduce(const Arguments& a) {
  a.side.Allreduce(a.in(), a.out(), a.count(), a.type(), a.sum(), a.comm);
}
void gather(const Arguments& a) {
  a.side.Gather(a.in(), a.count(), a.type(), a.out(), a.count(), a.type(), a.root, a.comm);
}
void scatter(const Arguments& a) {
  a.side.Scatter(a.in(), a.count(), a.type(), a.out(), a.count(), a.type(), a.root, a.comm);
}
void allgather(const Arguments& a) {
  a.side.Allgather(a.in(), a.count(), a.type(), a.out(), a.count(), a.type(), a.comm);
}
void alltoall(const Arguments& a) {
  a.side.Alltoall(a.in(), a.count(), a.type(), a.out(), a.count(), a.type(), a.comm);
}
void gatherv(const Arguments& a) {
  a.side.Gatherv(a.in(), a.count(), a.type(), a.out(), a.counts(), a.places(), a.type(), a.root, a.comm);
}
void scatterv(const Arguments& a) {
  a.side.Scatterv(a.in(), a.counts(), a.places(), a.type(), a.out(), a.count(), a.type(), a.root, a.comm);
}
void allgatherv(const Arguments& a) {
  a.side.Allgatherv(a.in(), a.count(), a.type(), a.out(), a.counts(), a.places(), a.type(), a.comm);
}
void alltoallv(const Arguments& a) {
  a.side.Alltoallv(a.in(), a.counts(), a.places(), a.type(), a.out(), a.counts(), a.places(), a.type(), a.comm);
}
void alltoallw(const Arguments& a) {
  a.side.Alltoallw(a.in(), a.counts(), a.byte_places(), a.types(), a.out(), a.counts(), a.byte_places(), a.types(), a.comm);
}
void reduce_scatter(const Arguments& a) {
  a.side.Reduce_scatter(a.in(), a.out(), a.counts(), a.type(), a.sum(), a.comm);
}
void reduce_scatter_block(const Arguments& a) {
  a.side.Reduce_scatter_block(a.in(), a.out(), a.count(), a.type(), a.sum(), a.comm);
}
void scan(const Arguments& a) {
  a.side.Scan(a.in(), a.out(), a.count(), a.type(), a.sum(), a.comm);
}
void exscan(const Arguments& a) {
  a.side.Exscan(a.in(), a.out(), a.count(), a.type(), a.sum(), a.comm);
}

template <void (*function)(const Arguments&)>
void with(const Mpi& mpi, const Calls& side, MPI_Comm comm, const Data& data, int root) {
  function({mpi, side, comm, data, root});
}

}  // namespace

const Collective collectives[] = {
    // name, rooted, only the root receives, sends, receives, result, moved, call
    {"barrier", false, false, Part::none, Part::none, Result::none, Part::none, with<barrier>},
    {"bcast", true, false, Part::none, Part::one, Result::root, Part::one, with<bcast>},
    {"reduce", true, true, Part::one, Part::one, Result::sum, Part::one, with<reduce>},
    {"allreduce", false, false, Part::one, Part::one, Result::sum, Part::one, with<allreduce>},
    {"gather", true, true, Part::one, Part::all, Result::each, Part::one, with<gather>},
    {"scatter", true, false, Part::all, Part::one, Result::root, Part::one, with<scatter>},
    {"allgather", false, false, Part::one, Part::all, Result::each, Part::all, with<allgather>},
    {"alltoall", false, false, Part::all, Part::all, Result::each, Part::all, with<alltoall>},
    {"gatherv", true, true, Part::one, Part::all, Result::each, Part::one, with<gatherv>},
    {"scatterv", true, false, Part::all, Part::one, Result::root, Part::one, with<scatterv>},
    {"allgatherv", false, false, Part::one, Part::all, Result::each, Part::all, with<allgatherv>},
    {"alltoallv", false, false, Part::all, Part::all, Result::each, Part::all, with<alltoallv>},
    {"alltoallw", false, false, Part::all, Part::all, Result::each, Part::all, with<alltoallw>},
    {"reduce_scatter", false, false, Part::all, Part::one, Result::sum, Part::all, with<reduce_scatter>},
    {"reduce_scatter_block", false, false, Part::all, Part::one, Result::sum, Part::all, with<reduce_scatter_block>},
    {"scan", false, false, Part::one, Part::one, Result::sum_to_here, Part::one, with<scan>},
    {"exscan", false, false, Part::one, Part::one, Result::sum_below, Part::one, with<exscan>},
};
const int collective_count = int(sizeof collectives / sizeof collectives[0]);

const Collective* collective_named(const char* name, size_t length) {
  for (const Collective& c : collectives)
    if (strlen(c.name) == length && strncmp(c.name, name, length) == 0) return &c;
  return nullptr;
}

}  // namespace stretto::bench
