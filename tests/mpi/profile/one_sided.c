/* One-sided traffic. */
#include "truth.h"

#define W "MPI_COMM_WORLD"
static int memory[1000], out[100], in[100];

static void put(const char* function, long long bytes, int target) {
  did(function, W, bytes, 0, target, 0), traffic("put", target, bytes);
}
static void get(const char* function, long long bytes, int target) {
  did(function, W, 0, bytes, target, 0), traffic("got", target, bytes);
}
static void both(const char* function, long long put_bytes, long long got_bytes, int target) {
  did(function, W, put_bytes, got_bytes, target, 0), part(function, W, 0, got_bytes, target, 0);
  traffic("put", target, put_bytes), traffic("got", target, got_bytes);
}
static void synchronised(const char* function, int peer) {
  did(function, W, 0, 0, peer, 0);
}

int main(int argc, char** argv) {
  MPI_Win win;
  MPI_Request request;
  int to, compare = 0;
  void* base;
  MPI_Init(&argc, &argv);
  begin_truth();
  named(W, MPI_COMM_WORLD);
  to = (rank + 1) % size;
  MPI_Win_create(memory, sizeof memory, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win),
      did_collective("MPI_Win_create", W, 0, 0, NOBODY);
  MPI_Win_fence(0, win), synchronised("MPI_Win_fence", NOBODY);
  MPI_Put(out, 10 + rank, MPI_INT, to, 0, 10 + rank, MPI_INT, win), put("MPI_Put", 4 * (10 + rank), to),
      with("datatype", "MPI_INT");
  MPI_Put(out, 10, MPI_INT, MPI_PROC_NULL, 0, 10, MPI_INT, win), did("MPI_Put", W, 0, 0, NOBODY, 0);
  MPI_Win_fence(0, win), synchronised("MPI_Win_fence", NOBODY);
  MPI_Get(in, 5, MPI_INT, to, 0, 5, MPI_INT, win), get("MPI_Get", 20, to);
  MPI_Win_fence(0, win), synchronised("MPI_Win_fence", NOBODY);
  MPI_Accumulate(out, 6, MPI_INT, to, 100, 6, MPI_INT, MPI_SUM, win), put("MPI_Accumulate", 24, to), with("op", "MPI_SUM");
  MPI_Win_fence(0, win), synchronised("MPI_Win_fence", NOBODY);
  MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win), synchronised("MPI_Win_lock", to);
  MPI_Get_accumulate(out, 2, MPI_INT, in, 2, MPI_INT, to, 200, 2, MPI_INT, MPI_SUM, win), both("MPI_Get_accumulate", 8, 8, to);
  MPI_Fetch_and_op(out, in, MPI_INT, to, 300, MPI_REPLACE, win), both("MPI_Fetch_and_op", 4, 4, to);
  MPI_Compare_and_swap(out, &compare, in, MPI_INT, to, 301, win), both("MPI_Compare_and_swap", 4, 4, to);
  MPI_Win_flush(to, win), synchronised("MPI_Win_flush", to);
  MPI_Rput(out, 3, MPI_INT, to, 400, 3, MPI_INT, win, &request), put("MPI_Rput", 12, to);
  MPI_Wait(&request, MPI_STATUS_IGNORE), did("MPI_Wait", W, 0, 0, to, 0);
  MPI_Rget(in, 4, MPI_INT, to, 400, 4, MPI_INT, win, &request), get("MPI_Rget", 16, to);
  MPI_Wait(&request, MPI_STATUS_IGNORE), did("MPI_Wait", W, 0, 0, to, 0);
  MPI_Win_unlock(to, win), synchronised("MPI_Win_unlock", to);
  MPI_Win_free(&win), synchronised("MPI_Win_free", NOBODY);
  MPI_Win_allocate(400, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win), did_collective("MPI_Win_allocate", W, 0, 0, NOBODY);
  MPI_Win_lock_all(0, win), synchronised("MPI_Win_lock_all", NOBODY);
  MPI_Put(out, 1, MPI_INT, to, 0, 1, MPI_INT, win), put("MPI_Put", 4, to);
  MPI_Win_unlock_all(win), synchronised("MPI_Win_unlock_all", NOBODY);
  MPI_Win_free(&win), synchronised("MPI_Win_free", NOBODY);
  end_truth();
  return MPI_Finalize();
}
