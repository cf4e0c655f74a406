// A program's operation that takes a vector for one value (a header and what belongs to it) was called with pieces of vectors of
// 2 KiB and more, where MPI libraries give it whole ones; but by Allreduces of Open MPI, which it may cut from 4 KiB on.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { most = 32000 };
static int expected, pieces;

static void add(void* in, void* inout, int* count, MPI_Datatype* type) {
  const double* left = in;
  double* right = inout;
  if (*count != expected) ++pieces;
  for (int i = 0; i < *count; ++i) right[i] += left[i];
  (void)type;
}

// Pairs with gaps between them.
struct pair {
  int value, gap;
};
static void add_pairs(void* in, void* inout, int* count, MPI_Datatype* type) {
  const struct pair* left = in;
  struct pair* right = inout;
  for (int i = 0; i < *count; ++i) right[i].value += left[i].value;
  (void)type;
}

static int wrong_with_gaps(int rank, int ranks) {
  enum { count = 500 };
  static struct pair in[count], out[count];
  MPI_Datatype type;
  MPI_Op op;
  int wrong = 0;
  MPI_Type_create_resized(MPI_INT, 0, sizeof(struct pair), &type);
  MPI_Type_commit(&type);
  MPI_Op_create(add_pairs, 1, &op);
  for (int i = 0; i < count; ++i) {
    in[i] = (struct pair){rank + i, -1};
    out[i] = (struct pair){-7, -7};
  }
  MPI_Allreduce(in, out, count, type, op, MPI_COMM_WORLD);
  for (int i = 0; i < count; ++i) wrong += out[i].value != ranks * (ranks - 1) / 2 + ranks * i || out[i].gap != -7;
  if (wrong) printf("rank %d: wrong: %d numbers between gaps\n", rank, wrong);
  MPI_Op_free(&op);
  MPI_Type_free(&type);
  return wrong;
}

int main(int argc, char** argv) {
  static const char* const names[] = {"Allreduce", "Reduce", "Scan", "Exscan"};
  MPI_Init(&argc, &argv);
  int rank, ranks, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Op op;
  MPI_Op_create(add, 1, &op);
  double* in = malloc(most * sizeof(double));
  double* out = malloc(most * sizeof(double));
  for (expected = 1; expected <= most; expected = 3 * expected + 1)
    for (int kind = 0; kind < 4; ++kind) {
      for (int i = 0; i < expected; ++i) in[i] = rank + 1, out[i] = 0;
      pieces = 0;
      if (kind == 0) MPI_Allreduce(in, out, expected, MPI_DOUBLE, op, MPI_COMM_WORLD);
      if (kind == 1) MPI_Reduce(in, out, expected, MPI_DOUBLE, op, 0, MPI_COMM_WORLD);
      if (kind == 2) MPI_Scan(in, out, expected, MPI_DOUBLE, op, MPI_COMM_WORLD);
      if (kind == 3) MPI_Exscan(in, out, expected, MPI_DOUBLE, op, MPI_COMM_WORLD);
      const int before = kind == 3 ? rank : kind == 2 ? rank + 1 : kind == 1 && rank > 0 ? 0 : ranks;
      for (int i = 0; i < expected; ++i)
        if (before > 0 && out[i] != before * (before + 1) / 2) ++wrong, i = expected;
      if (pieces > 0 && (kind != 0 || expected * sizeof(double) < 4096)) {
        printf("rank %d: wrong: %s of %d numbers in pieces\n", rank, names[kind], expected);
        ++wrong;
      }
    }
  wrong += wrong_with_gaps(rank, ranks);
  printf("rank %d: %s\n", rank, wrong ? "wrong" : "right");
  free(in);
  free(out);
  MPI_Op_free(&op);
  MPI_Finalize();
  return wrong != 0;
}
