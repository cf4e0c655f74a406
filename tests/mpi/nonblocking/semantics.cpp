// What MPI allows to do with nonblocking collectives, one by one.
#include <unistd.h>

#include <cstring>

#include "check.hpp"

namespace {

// Rank 0 starts, then sends; rank 1 receives first. A start that waited for the others would hang.
void start_is_local(MPI_Comm comm, const char* what) {
  if (world.size < 2) return;
  for (int count : {1, 100'000}) {
    std::vector<int> data(size_t(count), world.rank == 0 ? count : -1);
    int word = 0;
    MPI_Request request;
    if (world.rank == 1) MPI_Recv(&word, 1, MPI_INT, 0, 7, comm, MPI_STATUS_IGNORE);
    MPI_Ibcast(data.data(), count, MPI_INT, 0, comm, &request);
    if (world.rank == 0) MPI_Send(&word, 1, MPI_INT, 1, 7, comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    world.check(request == MPI_REQUEST_NULL && data[0] == count && data[size_t(count) - 1] == count, what);
  }
}

void starts_are_local() {
  start_is_local(MPI_COMM_WORLD, "Ibcast, Send against Recv, Ibcast on MPI_COMM_WORLD");
  MPI_Comm fresh;
  MPI_Comm_dup(MPI_COMM_WORLD, &fresh);
  start_is_local(fresh, "the same on a duplicate");
  MPI_Comm_free(&fresh);
  const int dims[1] = {world.size}, periods[1] = {0};
  MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &fresh);
  start_is_local(fresh, "the same on a communicator without any collective before");
  MPI_Barrier(fresh);
  start_is_local(fresh, "the same after a blocking one");
  MPI_Comm_free(&fresh);
}

// An operation whose request was freed is done when a later one on its communicator is.
void freed_requests() {
  std::vector<double> big(50'000, 1.0), sum(50'000, 0.0);
  for (int round = 0; round < 20; ++round) {
    MPI_Request request, barrier;
    MPI_Iallreduce(big.data(), sum.data(), int(big.size()), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
    world.check(request == MPI_REQUEST_NULL, "Request_free gives the null request");
    MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
    MPI_Wait(&barrier, MPI_STATUS_IGNORE);
    world.check(sum[0] == world.size && sum.back() == world.size, "an operation whose request was freed", round);
    sum.assign(sum.size(), 0.0);
  }
}

void freed_communicator() {
  for (int round = 0; round < 20; ++round) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (world.plain_blocks || round % 2) MPI_Barrier(comm);  // between nodes Open MPI crashes in its own, which it would be else
    std::vector<int> in(30'000, world.rank + 1), out(30'000, 0);
    MPI_Request request;
    MPI_Iallreduce(in.data(), out.data(), int(in.size()), MPI_INT, MPI_SUM, comm, &request);
    MPI_Comm_free(&comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    const int expected = world.size * (world.size + 1) / 2;
    world.check(out[0] == expected && out.back() == expected, "a communicator freed before its operation ended", round);
  }
}

void freed_type() {
  MPI_Datatype every_other;
  MPI_Type_vector(5000, 1, 2, MPI_INT, &every_other);
  MPI_Type_commit(&every_other);
  std::vector<int> data(10'000, world.rank == 0 ? 5 : -1);
  MPI_Request request;
  MPI_Ibcast(data.data(), 1, every_other, 0, MPI_COMM_WORLD, &request);
  MPI_Type_free(&every_other);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  const int gap = world.rank == 0 ? 5 : -1;
  world.check(data[0] == 5 && data[1] == gap && data[9998] == 5, "a datatype freed before its operation ended");
}

// The same of datatypes that results are laid out with, block by block.
void freed_block_types() {
  const size_t n = size_t(world.size);
  MPI_Datatype every_other;
  MPI_Type_vector(5000, 1, 2, MPI_INT, &every_other);
  MPI_Type_commit(&every_other);
  std::vector<int> own(5000, world.rank), all(10'000 * n, -1), parts(5000 * n), got(10'000 * n, -1);
  for (size_t i = 0; i < parts.size(); ++i) parts[i] = world.rank * world.size + int(i / 5000);
  std::vector<int> counts(n, 5000), ones(n, 1), at(n), to(n);
  std::vector<MPI_Datatype> ints(n, MPI_INT), types(n, every_other);
  for (size_t r = 0; r < n; ++r) {
    at[r] = int(20'000 * r);
    to[r] = int(40'000 * r);
  }
  MPI_Request requests[2];
  MPI_Iallgather(own.data(), 5000, MPI_INT, all.data(), 1, every_other, MPI_COMM_WORLD, &requests[0]);
  MPI_Ialltoallw(parts.data(), counts.data(), at.data(), ints.data(), got.data(), ones.data(), to.data(), types.data(),
                 MPI_COMM_WORLD, &requests[1]);
  MPI_Type_free(&every_other);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  for (size_t r = 0; r < n; ++r) {
    // A vector ends with its last block: the next element follows at once.
    const int* block = &all[9'999 * r];
    world.check(block[0] == int(r) && block[1] == -1 && block[9998] == int(r), "an allgather whose datatype was freed", long(r));
    block = &got[10'000 * r];
    const int expected = int(r) * world.size + world.rank;
    world.check(block[0] == expected && block[1] == -1 && block[9998] == expected, "an alltoallw whose datatypes were freed");
  }
}

// Many at once, waited for in the reverse order.
void many_outstanding() {
  constexpr int count = 600;
  MPI_Comm comms[3];
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (MPI_Comm comm : {comms[0], comms[2]}) MPI_Barrier(comm);
  std::vector<MPI_Request> requests(count);
  std::vector<std::vector<int64_t>> in(count), out(count);
  for (int i = 0; i < count; ++i) {
    in[size_t(i)].assign(size_t(1 + i * 7 % 1000), i + world.rank);
    out[size_t(i)].assign(in[size_t(i)].size(), -1);
    MPI_Iallreduce(in[size_t(i)].data(), out[size_t(i)].data(), int(in[size_t(i)].size()), MPI_INT64_T, MPI_SUM, comms[i % 3],
                   &requests[size_t(i)]);
  }
  for (int i = count - 1; i >= 0; --i) {
    MPI_Status status;
    MPI_Wait(&requests[size_t(i)], &status);
    const int64_t expected = int64_t(world.size) * i + world.size * (world.size - 1) / 2;
    world.check(out[size_t(i)].back() == expected, "many outstanding operations", i);
  }
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}

void add(void* in, void* inout, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i) static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
}

// Left to MPI: the program's function, between others that are not.
void user_operation() {
  MPI_Op op;
  MPI_Op_create(add, 1, &op);
  int in = world.rank, sums[4] = {-1, -1, -1, -1};
  MPI_Request requests[4];
  MPI_Iallreduce(&in, &sums[0], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
  MPI_Iallreduce(&in, &sums[1], 1, MPI_INT, op, MPI_COMM_WORLD, &requests[1]);
  MPI_Iallreduce(&in, &sums[2], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[2]);
  MPI_Iscan(&in, &sums[3], 1, MPI_INT, op, MPI_COMM_WORLD, &requests[3]);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  const int expected = world.size * (world.size - 1) / 2;
  world.check(sums[3] == world.rank * (world.rank + 1) / 2, "a program's operation in a scan");
  world.check(sums[0] == expected && sums[1] == expected && sums[2] == expected, "a program's operation among others");
  MPI_Op_free(&op);
}

void statuses() {
  MPI_Status status;
  std::memset(&status, 0x55, sizeof status);
  MPI_Request request;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  MPI_Wait(&request, &status);
  int count = -1, cancelled = 1;
  MPI_Get_count(&status, MPI_INT, &count);
  MPI_Test_cancelled(&status, &cancelled);
  world.check(count == 0 && cancelled == 0, "the status of a nonblocking collective");
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (int flag = 0; !flag;) MPI_Request_get_status(request, &flag, &status);
  world.check(request != MPI_REQUEST_NULL, "Request_get_status leaves the request");
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

// A program may ask for nothing but the state of its requests.
void asked_about() {
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
  MPI_Request requests[2];
  int in = 1, sums[2] = {0, 0}, flag = 0, index, count = 0, indices[2];
  for (int how = 0; how < 3; ++how) {
    if (world.rank > 0) usleep(20'000);  // so that it is under way for a while
    for (int i = 0; i < 2; ++i) MPI_Iallreduce(&in, &sums[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[i]);
    for (flag = count = 0; how == 0 && !flag;) MPI_Request_get_status_all(2, requests, &flag, MPI_STATUSES_IGNORE);
    for (; how == 1 && !flag;) MPI_Request_get_status_any(2, requests, &index, &flag, MPI_STATUS_IGNORE);
    for (; how == 2 && count < 1;) MPI_Request_get_status_some(2, requests, &count, indices, MPI_STATUSES_IGNORE);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    world.check(sums[0] == world.size && sums[1] == world.size, "asked about until they are done");
  }
#endif
}

// MPI_Testall of MPICH 5.0 does not stand an active persistent collective of MPICH's own; MPI_Waitall does.
void beside_persistent_of_mpi() {
#if MPI_VERSION >= 4
  const int all = world.size, around = 1;
  MPI_Comm ring;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &all, &around, 0, &ring);
  int in = world.rank, from[2] = {-1, -1}, sum = 0, one = 1;
  MPI_Request requests[2];
  MPI_Neighbor_allgather_init(&in, 1, MPI_INT, from, 1, MPI_INT, ring, MPI_INFO_NULL, &requests[0]);
  for (int i = 0; i < 3; ++i) {
    MPI_Start(&requests[0]);
    if (world.rank == 1) usleep(20'000);
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
    const bool good = MPI_Waitall(2, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS;
    const int left = (world.rank + all - 1) % all, right = (world.rank + 1) % all;
    world.check(good && sum == all && from[0] == left && from[1] == right, "beside a persistent collective of MPI's own");
    sum = 0;
  }
  MPI_Request_free(&requests[0]);
  MPI_Comm_free(&ring);
#endif
}

// What is invalid is MPI's to report.
void errors() {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Request request = MPI_REQUEST_NULL;
  int word = 0, kind = MPI_SUCCESS;
  const int code = MPI_Ibcast(&word, 1, MPI_INT, world.size + 3, comm, &request);
  if (code != MPI_SUCCESS) MPI_Error_class(code, &kind);
  world.check(kind == MPI_ERR_ROOT, "an invalid root");
  MPI_Comm_free(&comm);
}

// A message that is too long is told to the rank that has no room for it, by the call that completes its request.
void truncation() {
  if (world.plain_blocks) return;  // left to MPI, and MPICH does not tell
  if (world.size < 2) return;
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  const bool long_one = world.rank == world.size - 1, is_root = world.rank == 0;
  std::vector<char> give(8, char(world.rank)), get(4 * size_t(world.size));
  MPI_Request request;
  MPI_Igather(give.data(), long_one ? 8 : 4, MPI_CHAR, get.data(), 4, MPI_CHAR, 0, comm, &request);
  const int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  int kind = MPI_SUCCESS;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &kind);
  world.check(kind == (is_root ? MPI_ERR_TRUNCATE : MPI_SUCCESS), "a message that is too long for a gather");
  MPI_Igather(give.data(), long_one ? 8 : 4, MPI_CHAR, get.data(), 4, MPI_CHAR, 0, comm, &request);
  const int of_all = MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
  world.check(of_all == (is_root ? MPI_ERR_IN_STATUS : MPI_SUCCESS), "the same in Waitall, without statuses");
  MPI_Iallgather(give.data(), 4, MPI_CHAR, get.data(), 4, MPI_CHAR, comm, &request);
  world.check(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS && get.back() == char(world.size - 1), "the next collective");
  MPI_Comm_free(&comm);
}

}  // namespace

// MPI knows no collectives that are cancelled: it says so, and they go on. (Open MPI lets a single rank cancel its own.)
void cancelled() {
  if (world.size == 1) return;
  for (MPI_Comm comm : {MPI_COMM_WORLD, MPI_COMM_SELF}) MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  for (const bool complete : {false, true}) {
    int in = 1, out = 0, flag = 0;
    MPI_Request request;
    MPI_Status status;
    MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    while (complete && !flag) MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
    world.check(MPI_Cancel(&request) != MPI_SUCCESS && request != MPI_REQUEST_NULL, "a collective is not cancelled", complete);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    world.check(!flag && out == world.size, "it goes on", complete);
  }
  for (MPI_Comm comm : {MPI_COMM_WORLD, MPI_COMM_SELF}) MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
}

void semantics() {
  starts_are_local();
  freed_requests();
  freed_communicator();
  freed_type();
  freed_block_types();
  many_outstanding();
  user_operation();
  statuses();
  asked_about();
  beside_persistent_of_mpi();
  errors();
  truncation();
  cancelled();
}
