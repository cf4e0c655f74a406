// One collective of any kind with random arguments: its buffers, and the calls that do, start and prepare it.
#pragma once
#include <mpi.h>

#include <cstdint>
#include <vector>

#include "check.hpp"

enum class What : uint8_t {
  barrier,
  bcast,
  reduce,
  allreduce,
  gather,
  gatherv,
  scatter,
  scatterv,
  allgather,
  allgatherv,
  alltoall,
  alltoallv,
  alltoallw,
  reduce_scatter,
  reduce_scatter_block,
  scan,
  exscan,
};
inline constexpr int whats = int(What::exscan) + 1;

// int[] as in MPI_X, or MPI_Count[] as in MPI_X_c.
template <class Count, class Place>
struct Lists {
  std::vector<Count> send_counts, receive_counts;
  std::vector<Place> send_at, receive_at;
};

// Blocks of elements in one buffer.
struct Blocks {
  std::vector<int> counts, at;  // at: elements from the beginning
  int elements() const { return counts.empty() ? 0 : at.back() + counts.back(); }
};

// int32_t elements, 12 bytes apart.
class Strided {
 public:
  Strided();
  ~Strided();
  MPI_Datatype type() const { return type_; }

 private:
  MPI_Datatype base_, type_;
};

class Collective {
 public:
  // `common` is at one point on all ranks, `own` is this rank's. plain: ranks do not differ more than most MPIs stand.
  Collective(MPI_Comm comm, Random& common, Random& own, bool plain, MPI_Datatype strided);

  int start(MPI_Comm comm, MPI_Request* request);    // MPI_Ix
  int prepare(MPI_Comm comm, MPI_Request* request);  // MPI_X_init

  // Other numbers in its buffers, as a prepared one may be started again.
  void fill(Random& own);

  // Compares with what PMPI's blocking form gives for the same arguments.
  void compare(MPI_Comm shadow, World& result, long step);

  const char* name() const;

 private:
  void draw_blocks(Random& common);
  void list();
  size_t stride(bool strided) const { return strided ? 12 : bytes_; }
  void put(std::vector<unsigned char>& buffer, bool strided, int at, const unsigned char* elements, int count) const;
  void fill_in_place();
  bool gets() const;
  int answer(MPI_Comm shadow, void* receive) const;

  What what_;
  int root_, rank_, size_, type_, count_ = 0;
  bool in_place_ = false, wide_ = false, send_strided_ = false, receive_strided_ = false;
  MPI_Op op_;
  MPI_Datatype element_, send_type_, receive_type_;
  size_t bytes_;
  Blocks sends_, receives_;
  Lists<int, int> narrow_;
  Lists<MPI_Count, MPI_Aint> large_;
  std::vector<int> send_bytes_at_, receive_bytes_at_;  // of alltoallw
  std::vector<MPI_Aint> large_send_bytes_at_, large_receive_bytes_at_;
  std::vector<MPI_Datatype> send_types_, receive_types_;
  std::vector<unsigned char> in_, out_, kept_, initial_;
};
