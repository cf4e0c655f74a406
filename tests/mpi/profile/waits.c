/* What a program sees of errors and statuses, printed: the same with and without a profile. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int class_of(int code) {
  int found;
  MPI_Error_class(code, &found);
  return found;
}
static void show(const char* what, int code, MPI_Status* s) {
  int count = -1, cancelled = -1;
  if (!s) {
    printf("%s: %d\n", what, class_of(code));
    return;
  }
  MPI_Get_count(s, MPI_BYTE, &count), MPI_Test_cancelled(s, &cancelled);
  printf("%s: %d source %d tag %d error %d count %d cancelled %d\n", what, class_of(code), s->MPI_SOURCE, s->MPI_TAG,
         strstr(what, "status") ? class_of(s->MPI_ERROR) : 0, count, cancelled);
}

int main(int argc, char** argv) {
  int rank, out[10] = {0}, in[4][10], i, j, index, flag, n, indices[4];
  MPI_Request requests[4];
  MPI_Status s[4];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  /* Truncated receives, with statuses and without. */
  for (j = 0; j < 4; ++j) {
    memset(s, 0, sizeof s); /* that of a pending request stays as it is */
    for (i = 0; i < 3; ++i) MPI_Irecv(in[i], i == 1 ? 1 : 10, MPI_INT, 0, i, MPI_COMM_SELF, &requests[i]);
    requests[3] = MPI_REQUEST_NULL;
    for (i = 0; i < 3; ++i) MPI_Send(out, 5, MPI_INT, 0, i, MPI_COMM_SELF);
    if (j == 0) show("waitall", MPI_Waitall(4, requests, MPI_STATUSES_IGNORE), NULL);
    if (j == 1) {
      show("waitall with", MPI_Waitall(4, requests, s), NULL);
      for (i = 0; i < 4; ++i) show("  status", 0, &s[i]);
    }
    if (j == 2) {
      const int code = MPI_Testall(4, requests, &flag, MPI_STATUSES_IGNORE);
      printf("flag %d ", flag), show("testall", code, NULL);
    }
    if (j == 3) {
      const int code = MPI_Waitsome(4, requests, &n, indices, MPI_STATUSES_IGNORE);
      printf("%d of some ", n), show("waitsome", code, NULL);
    }
    for (i = 0; i < 4; ++i) {
      printf("%s ", requests[i] == MPI_REQUEST_NULL ? "null" : "there");
      if (requests[i] != MPI_REQUEST_NULL) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    }
    printf("\n");
  }
  MPI_Irecv(in[0], 1, MPI_INT, 0, 9, MPI_COMM_SELF, &requests[0]);
  MPI_Send(out, 5, MPI_INT, 0, 9, MPI_COMM_SELF);
  show("wait", MPI_Wait(&requests[0], MPI_STATUS_IGNORE), NULL);
  /* Empty statuses. */
  memset(s, 0x55, sizeof s);
  show("null", MPI_Wait(&requests[0], &s[0]), &s[0]);
  show("test null", MPI_Test(&requests[0], &flag, &s[0]), &s[0]);
  show("any of none", MPI_Waitany(1, requests, &index, &s[0]), &s[0]);
  printf("index %d\n", index == MPI_UNDEFINED);
  show("some of none", MPI_Waitsome(1, requests, &n, indices, s), NULL);
  printf("count %d\n", n == MPI_UNDEFINED);
  show("nobody", MPI_Recv(in, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &s[0]), &s[0]);
  /* Wrong arguments. */
  show("rank", MPI_Send(out, 1, MPI_INT, 1000, 0, MPI_COMM_WORLD), NULL);
  show("type", MPI_Send(out, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD), NULL);
  show("count", MPI_Send(out, -1, MPI_INT, 0, 0, MPI_COMM_WORLD), NULL);
  show("comm", MPI_Send(out, 1, MPI_INT, 0, 0, MPI_COMM_NULL), NULL);
  show("root", MPI_Bcast(out, 1, MPI_INT, 1000, MPI_COMM_WORLD), NULL);
  show("op", MPI_Allreduce(out, in, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD), NULL);
  return MPI_Finalize();
}
