/* Communicators made in every way. Those without a name of their own are named by how they came to be. */
#include "truth.h"

#define W "MPI_COMM_WORLD"

static void made(const char* function, const char* parent, MPI_Comm comm, const char* name) {
  did_collective(function, parent, 0, 0, NOBODY);
  if (comm == MPI_COMM_NULL) return;
  MPI_Comm_set_name(comm, name);
  named(name, comm);
}
static void freed(MPI_Comm* comm, const char* name) {
  if (*comm == MPI_COMM_NULL) return;
  MPI_Comm_free(comm), did("MPI_Comm_free", name, 0, 0, NOBODY, 0);
}
static void used(MPI_Comm comm, const char* name) {
  if (comm == MPI_COMM_NULL) return;
  MPI_Barrier(comm), did_collective("MPI_Barrier", name, 0, 0, NOBODY);
}

int main(int argc, char** argv) {
  MPI_Comm dup, again, split, typed, sub, alone, cart, row, graph, inter, merged, later, same;
  MPI_Group world, odd;
  MPI_Request request;
  int dims[2] = {1, 0}, periods[2] = {1, 1}, remain[2] = {0, 1}, i, members[64], n = 0, zero = 0, degree = 1, to;
  MPI_Init(&argc, &argv);
  begin_truth();
  named(W, MPI_COMM_WORLD);
  MPI_Comm_group(MPI_COMM_WORLD, &world);

  MPI_Comm_dup(MPI_COMM_WORLD, &dup), made("MPI_Comm_dup", W, dup, "first");
  MPI_Comm_dup(MPI_COMM_WORLD, &again), made("MPI_Comm_dup", W, again, "second");
  MPI_Comm_split(dup, rank % 2, -rank, &split), made("MPI_Comm_split", "first", split, "parity");
  used(split, "parity");
  MPI_Comm_split(dup, rank == 0 ? MPI_UNDEFINED : 1, 0, &same), made("MPI_Comm_split", "first", same, "but_the_first");
  used(same, "but_the_first");
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &typed);
  made("MPI_Comm_split_type", W, typed, "node");

  for (i = 0; i < size; ++i)
    if (i % 2 == 0) members[n++] = i;
  MPI_Group_incl(world, n, members, &odd);
  MPI_Comm_create(MPI_COMM_WORLD, odd, &sub), made("MPI_Comm_create", W, sub, "even");
  /* Only its members call this one: the numbers of later communicators must agree all the same. */
  if (rank % 2 == 0) {
    MPI_Comm_create_group(MPI_COMM_WORLD, odd, 77, &alone), did("MPI_Comm_create_group", W, 0, 0, NOBODY, 77);
    MPI_Comm_set_name(alone, "alone"), named("alone", alone);
    used(alone, "alone"), freed(&alone, "alone");
  }
  MPI_Dims_create(size, 2, dims);
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &cart), made("MPI_Cart_create", W, cart, "grid");
  MPI_Cart_sub(cart, remain, &row), made("MPI_Cart_sub", "grid", row, "row");
  to = (rank + 1) % size;
  MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &degree, &to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
  made("MPI_Dist_graph_create", W, graph, "graph");
  {
    int in[1] = {zero}, out[2] = {zero, zero}; /* each rank has one neighbour in the graph */
    MPI_Neighbor_allgather(&rank, 1, MPI_INT, in, 1, MPI_INT, graph);
    did_collective("MPI_Neighbor_allgather", "graph", 4, 4, NOBODY);
    (void)out;
  }
  /* Completed after another one was made. */
  MPI_Comm_idup(MPI_COMM_WORLD, &later, &request), did_collective("MPI_Comm_idup", W, 0, 0, NOBODY);
  MPI_Wait(&request, MPI_STATUS_IGNORE), did("MPI_Wait", W, 0, 0, NOBODY, 0);
  MPI_Comm_set_name(later, "later"), named("later", later), used(later, "later");

  if (size > 1) {
    const int half = rank < size / 2;
    MPI_Comm side;
    MPI_Comm_split(MPI_COMM_WORLD, half, 0, &side), made("MPI_Comm_split", W, side, half ? "low" : "high");
    MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, half ? size / 2 : 0, 8, &inter);
    did_collective("MPI_Intercomm_create", half ? "low" : "high", 0, 0, NOBODY), with("tag", "8");
    MPI_Comm_set_name(inter, "between");
    used(inter, "between");
    MPI_Intercomm_merge(inter, half, &merged), made("MPI_Intercomm_merge", "between", merged, "merged");
    used(merged, "merged");
    freed(&merged, "merged"), freed(&inter, "between"), freed(&side, half ? "low" : "high");
  }
  /* Handles are used again: no confusion with those that were. */
  for (i = 0; i < 20; ++i) {
    char name[20];
    sprintf(name, "round_%d", i);
    MPI_Comm_dup(i % 2 ? again : dup, &same), made("MPI_Comm_dup", i % 2 ? "second" : "first", same, name);
    used(same, name), used(same, name);
    freed(&same, name);
  }
  freed(&row, "row"), freed(&cart, "grid"), freed(&graph, "graph"), freed(&later, "later"), freed(&sub, "even");
  freed(&typed, "node"), freed(&split, "parity"), freed(&again, "second");
  /* Never freed, and named late. */
  MPI_Comm_dup(dup, &again), did_collective("MPI_Comm_dup", "first", 0, 0, NOBODY);
  used(again, "named_late");
  MPI_Comm_set_name(again, "named_late"), named("named_late", again);
  MPI_Group_free(&odd), MPI_Group_free(&world);
  end_truth();
  return MPI_Finalize();
}
