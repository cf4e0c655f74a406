/* Point-to-point traffic of every kind around a ring. */
#include "truth.h"

#define W "MPI_COMM_WORLD"
static int left, right;
static double out[4096], in[4096];

static void blocking(void) {
  MPI_Status status;
  int bytes = 8 * (100 + rank), from_left = 8 * (100 + left);
  if (rank % 2 == 0) {
    MPI_Send(out, 100 + rank, MPI_DOUBLE, right, 7, MPI_COMM_WORLD), did("MPI_Send", W, bytes, 0, right, 7);
    with("datatype", "MPI_DOUBLE");
    MPI_Recv(in, 4096, MPI_DOUBLE, left, 7, MPI_COMM_WORLD, &status), did("MPI_Recv", W, 0, from_left, left, 7);
  } else {
    MPI_Recv(in, 4096, MPI_DOUBLE, left, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE), did("MPI_Recv", W, 0, from_left, left, 7);
    MPI_Send(out, 100 + rank, MPI_DOUBLE, right, 7, MPI_COMM_WORLD), did("MPI_Send", W, bytes, 0, right, 7);
  }
  traffic("sent", right, bytes), traffic("received", left, from_left);

  /* To and from nobody: nothing. */
  MPI_Send(out, 5, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD), did("MPI_Send", W, 0, 0, NOBODY, 1);
  MPI_Recv(in, 5, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &status), did("MPI_Recv", W, 0, 0, NOBODY, 1);

  MPI_Sendrecv(out, 3 + rank, MPI_INT, right, 11, in, 4000, MPI_INT, left, 11, MPI_COMM_WORLD, &status);
  did("MPI_Sendrecv", W, 4 * (3 + rank), 4 * (3 + left), right, 11), part("MPI_Sendrecv", W, 0, 4 * (3 + left), left, 11);
  traffic("sent", right, 4 * (3 + rank)), traffic("received", left, 4 * (3 + left));
  MPI_Sendrecv_replace(out, 9, MPI_CHAR, right, 12, left, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  did("MPI_Sendrecv_replace", W, 9, 9, right, 12), part("MPI_Sendrecv_replace", W, 0, 9, left, 12), with("flag", "any_tag");
  traffic("sent", right, 9), traffic("received", left, 9);
  MPI_Sendrecv(out, 2, MPI_INT, right, 13, in, 2, MPI_INT, MPI_PROC_NULL, 13, MPI_COMM_WORLD, &status);
  did("MPI_Sendrecv", W, 8, 0, right, 13), traffic("sent", right, 8);
  MPI_Recv(in, 4096, MPI_BYTE, MPI_ANY_SOURCE, 13, MPI_COMM_WORLD, MPI_STATUS_IGNORE), did("MPI_Recv", W, 0, 8, left, 13);
  with("flag", "any_source"), traffic("received", left, 8);
}

static void probed(void) {
  MPI_Status status;
  MPI_Message message;
  MPI_Request request;
  int flag = 0, given;
  MPI_Isend(out, 21, MPI_SHORT, right, 20, MPI_COMM_WORLD, &request), did("MPI_Isend", W, 42, 0, right, 20);
  traffic("sent", right, 42);
  MPI_Probe(MPI_ANY_SOURCE, 20, MPI_COMM_WORLD, &status), did("MPI_Probe", W, 0, 0, left, 20), with("flag", "any_source");
  MPI_Iprobe(left, 20, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE), did("MPI_Iprobe", W, 0, 0, left, 20);
  MPI_Iprobe(left, 999, MPI_COMM_WORLD, &given, &status), did("MPI_Iprobe", W, 0, 0, left, 999), came_to_nothing();
  MPI_Recv(in, 4096, MPI_SHORT, status.MPI_SOURCE < 0 ? left : left, 20, MPI_COMM_WORLD, &status);
  did("MPI_Recv", W, 0, 42, left, 20), traffic("received", left, 42);
  MPI_Wait(&request, MPI_STATUS_IGNORE), did("MPI_Wait", W, 0, 0, right, 20);
  if (!flag) MPI_Abort(MPI_COMM_WORLD, 5);

  MPI_Isend(out, 4, MPI_INT, right, 21, MPI_COMM_WORLD, &request), did("MPI_Isend", W, 16, 0, right, 21);
  MPI_Mprobe(left, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status), did("MPI_Mprobe", W, 0, 0, left, 21);
  MPI_Mrecv(in, 100, MPI_INT, &message, MPI_STATUS_IGNORE), did("MPI_Mrecv", W, 0, 16, left, 21);
  MPI_Wait(&request, &status), did("MPI_Wait", W, 0, 0, right, 21);
  traffic("sent", right, 16), traffic("received", left, 16);

  MPI_Isend(out, 5, MPI_INT, right, 22, MPI_COMM_WORLD, &request), did("MPI_Isend", W, 20, 0, right, 22);
  MPI_Mprobe(MPI_ANY_SOURCE, 22, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE), did("MPI_Mprobe", W, 0, 0, left, 22);
  MPI_Wait(&request, &status), did("MPI_Wait", W, 0, 0, right, 22);
  MPI_Imrecv(in, 100, MPI_INT, &message, &request), did("MPI_Imrecv", W, 0, 400, ANYBODY, 0);
  MPI_Wait(&request, MPI_STATUS_IGNORE), did("MPI_Wait", W, 0, 0, left, 22), part("MPI_Imrecv", W, 0, 20, left, 22);
  traffic("sent", right, 20), traffic("received", left, 20);
}

#define PAIRS 6
/* Sends to the right and receives from the left, with tags 30 + i and i + 1 ints. */
static void begin_pairs(MPI_Request* requests, int wild) {
  int i;
  for (i = 0; i < PAIRS; ++i) {
    MPI_Irecv(in + 100 * i, 100, MPI_INT, wild ? MPI_ANY_SOURCE : left, 30 + i, MPI_COMM_WORLD, &requests[i]);
    did("MPI_Irecv", W, 0, 400, wild ? ANYBODY : left, 30 + i);
    if (wild) with("flag", "any_source");
  }
  for (i = 0; i < PAIRS; ++i) {
    MPI_Isend(out, i + 1, MPI_INT, right, 30 + i, MPI_COMM_WORLD, &requests[PAIRS + i]);
    did("MPI_Isend", W, 4 * (i + 1), 0, right, 30 + i), traffic("sent", right, 4 * (i + 1));
  }
}
static void pair_part(int i) {
  if (i < PAIRS)
    part("MPI_Irecv", W, 0, 4 * (i + 1), left, 30 + i), traffic("received", left, 4 * (i + 1));
  else
    part("MPI_Isend", W, 0, 0, right, 30 + i - PAIRS);
}
/* A single completion: the call names the request, and a receive is a part. */
static void pair_one(const char* function, int i) {
  did(function, W, 0, 0, i < PAIRS ? left : right, 30 + i % PAIRS);
  if (i < PAIRS) pair_part(i);
}

static void nonblocking(void) {
  MPI_Request requests[2 * PAIRS];
  MPI_Status statuses[2 * PAIRS];
  int i, index, flag, count, indices[2 * PAIRS], done;
  begin_pairs(requests, 0);
  MPI_Waitall(2 * PAIRS, requests, MPI_STATUSES_IGNORE), did("MPI_Waitall", "-", 0, 0, NOBODY, 0);
  for (i = 0; i < 2 * PAIRS; ++i) pair_part(i);
  begin_pairs(requests, 1);
  MPI_Waitall(2 * PAIRS, requests, statuses), did("MPI_Waitall", "-", 0, 0, NOBODY, 0);
  for (i = 0; i < 2 * PAIRS; ++i) pair_part(i);
  for (i = 0; i < PAIRS; ++i)
    if (statuses[i].MPI_SOURCE != left || statuses[i].MPI_TAG != 30 + i) MPI_Abort(MPI_COMM_WORLD, 6);
  begin_pairs(requests, 0);
  for (i = 0; i < 2 * PAIRS; ++i) MPI_Waitany(2 * PAIRS, requests, &index, MPI_STATUS_IGNORE), pair_one("MPI_Waitany", index);
  MPI_Waitany(2 * PAIRS, requests, &index, MPI_STATUS_IGNORE), did("MPI_Waitany", "-", 0, 0, NOBODY, 0);
  begin_pairs(requests, 1);
  for (done = 0; done < 2 * PAIRS; done += count) {
    MPI_Waitsome(2 * PAIRS, requests, &count, indices, MPI_STATUSES_IGNORE), did("MPI_Waitsome", "-", 0, 0, NOBODY, 0);
    for (i = 0; i < count; ++i) pair_part(indices[i]);
  }
  begin_pairs(requests, 0);
  for (i = 0; i < 2 * PAIRS; ++i) {
    do {
      MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE);
      if (flag)
        pair_one("MPI_Test", i);
      else
        did("MPI_Test", "-", 0, 0, NOBODY, 0), came_to_nothing();
    } while (!flag);
  }
  begin_pairs(requests, 0);
  do {
    MPI_Testall(2 * PAIRS, requests, &flag, MPI_STATUSES_IGNORE), did("MPI_Testall", "-", 0, 0, NOBODY, 0);
    if (!flag) came_to_nothing();
  } while (!flag);
  for (i = 0; i < 2 * PAIRS; ++i) pair_part(i);
  begin_pairs(requests, 0);
  for (done = 0; done < 2 * PAIRS; done += flag) {
    MPI_Testany(2 * PAIRS, requests, &index, &flag, &statuses[0]);
    if (flag)
      pair_one("MPI_Testany", index);
    else
      did("MPI_Testany", "-", 0, 0, NOBODY, 0), came_to_nothing();
  }
  begin_pairs(requests, 0);
  for (done = 0; done < 2 * PAIRS; done += count) {
    MPI_Testsome(2 * PAIRS, requests, &count, indices, statuses), did("MPI_Testsome", "-", 0, 0, NOBODY, 0);
    for (i = 0; i < count; ++i) pair_part(indices[i]);
  }
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE), did("MPI_Wait", "-", 0, 0, NOBODY, 0);
}

static void kinds(void) {
  static char memory[10000];
  MPI_Request request;
  MPI_Status status;
  char* detached;
  int bytes, flag;
  MPI_Buffer_attach(memory, sizeof memory), did("MPI_Buffer_attach", "-", 0, 0, NOBODY, 0);
  MPI_Bsend(out, 10, MPI_INT, right, 40, MPI_COMM_WORLD), did("MPI_Bsend", W, 40, 0, right, 40), traffic("sent", right, 40);
  MPI_Recv(in, 10, MPI_INT, left, 40, MPI_COMM_WORLD, &status), did("MPI_Recv", W, 0, 40, left, 40),
      traffic("received", left, 40);
  MPI_Ibsend(out, 1, MPI_INT, right, 41, MPI_COMM_WORLD, &request), did("MPI_Ibsend", W, 4, 0, right, 41),
      traffic("sent", right, 4);
  MPI_Wait(&request, &status), did("MPI_Wait", W, 0, 0, right, 41);
  MPI_Recv(in, 10, MPI_INT, left, 41, MPI_COMM_WORLD, &status), did("MPI_Recv", W, 0, 4, left, 41), traffic("received", left, 4);
  MPI_Buffer_detach(&detached, &bytes), did("MPI_Buffer_detach", "-", 0, 0, NOBODY, 0);
  MPI_Irecv(in, 10, MPI_INT, left, 42, MPI_COMM_WORLD, &request), did("MPI_Irecv", W, 0, 40, left, 42);
  MPI_Ssend(out, 2, MPI_INT, right, 42, MPI_COMM_WORLD), did("MPI_Ssend", W, 8, 0, right, 42), traffic("sent", right, 8);
  do {
    MPI_Request_get_status(request, &flag, &status), did("MPI_Request_get_status", W, 0, 0, left, 42);
    if (!flag) came_to_nothing();
  } while (!flag);
  MPI_Wait(&request, &status), did("MPI_Wait", W, 0, 0, left, 42), part("MPI_Irecv", W, 0, 8, left, 42),
      traffic("received", left, 8);

  /* Cancelled: a receive that nobody answers. */
  MPI_Irecv(in, 10, MPI_INT, left, 43, MPI_COMM_WORLD, &request), did("MPI_Irecv", W, 0, 40, left, 43);
  MPI_Cancel(&request), did("MPI_Cancel", W, 0, 0, left, 43);
  MPI_Wait(&request, MPI_STATUS_IGNORE), did("MPI_Wait", W, 0, 0, left, 43), with("flag", "cancelled");
  MPI_Irecv(in, 10, MPI_INT, MPI_ANY_SOURCE, 45, MPI_COMM_WORLD, &request), did("MPI_Irecv", W, 0, 40, ANYBODY, 45);
  with("flag", "any_source");
  MPI_Cancel(&request), did("MPI_Cancel", W, 0, 0, ANYBODY, 45);
  MPI_Wait(&request, MPI_STATUS_IGNORE), did("MPI_Wait", W, 0, 0, ANYBODY, 45), with("flag", "cancelled");
  /* From nobody. */
  MPI_Irecv(in, 10, MPI_INT, MPI_PROC_NULL, 46, MPI_COMM_WORLD, &request), did("MPI_Irecv", W, 0, 0, NOBODY, 46);
  MPI_Wait(&request, MPI_STATUS_IGNORE), did("MPI_Wait", W, 0, 0, NOBODY, 46);
  /* Freed: a send that completes unseen. */
  MPI_Isend(out, 1, MPI_INT, right, 44, MPI_COMM_WORLD, &request), did("MPI_Isend", W, 4, 0, right, 44),
      traffic("sent", right, 4);
  MPI_Request_free(&request), did("MPI_Request_free", W, 0, 0, right, 44);
  MPI_Recv(in, 10, MPI_INT, left, 44, MPI_COMM_WORLD, &status), did("MPI_Recv", W, 0, 4, left, 44), traffic("received", left, 4);
}

static void persistent(void) {
  MPI_Request requests[3];
  MPI_Status status;
  int round, i;
  MPI_Recv_init(in, 50, MPI_INT, left, 50, MPI_COMM_WORLD, &requests[0]), did("MPI_Recv_init", W, 0, 0, left, 50);
  MPI_Send_init(out, 5, MPI_INT, right, 50, MPI_COMM_WORLD, &requests[1]), did("MPI_Send_init", W, 0, 0, right, 50);
  MPI_Ssend_init(out, 5, MPI_INT, MPI_PROC_NULL, 50, MPI_COMM_WORLD, &requests[2]), did("MPI_Ssend_init", W, 0, 0, NOBODY, 50);
  for (round = 0; round < 3; ++round) {
    MPI_Start(&requests[0]), did("MPI_Start", W, 0, 200, left, 50);
    MPI_Start(&requests[1]), did("MPI_Start", W, 20, 0, right, 50), traffic("sent", right, 20);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE), did("MPI_Wait", W, 0, 0, left, 50), part("MPI_Recv_init", W, 0, 20, left, 50);
    traffic("received", left, 20);
    MPI_Wait(&requests[1], &status), did("MPI_Wait", W, 0, 0, right, 50);
    MPI_Wait(&requests[1], &status), did("MPI_Wait", "-", 0, 0, NOBODY, 0); /* inactive */
  }
  for (round = 0; round < 2; ++round) {
    MPI_Startall(3, requests), did("MPI_Startall", "-", 20, 200, NOBODY, 0);
    part("MPI_Recv_init", W, 0, 200, left, 50), part("MPI_Send_init", W, 20, 0, right, 50);
    part("MPI_Ssend_init", W, 0, 0, NOBODY, 50), traffic("sent", right, 20);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE), did("MPI_Waitall", "-", 0, 0, NOBODY, 0);
    part("MPI_Recv_init", W, 0, 20, left, 50), part("MPI_Send_init", W, 0, 0, right, 50);
    part("MPI_Ssend_init", W, 0, 0, NOBODY, 50), traffic("received", left, 20);
  }
  for (i = 0; i < 3; ++i) {
    MPI_Request_free(&requests[i]);
    did("MPI_Request_free", W, 0, 0, i == 0 ? left : i == 1 ? right : NOBODY, 50);
  }
}

#if MPI_VERSION >= 4
static void partitioned(void) {
  MPI_Request requests[2];
  int i, flag, round;
  MPI_Psend_init(out, 4, 10, MPI_INT, right, 60, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
  did("MPI_Psend_init", W, 0, 0, right, 60), with("partitions", "4");
  MPI_Precv_init(in, 4, 10, MPI_INT, left, 60, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
  did("MPI_Precv_init", W, 0, 0, left, 60), with("partitions", "4");
  for (round = 0; round < 2; ++round) {
    MPI_Startall(2, requests), did("MPI_Startall", "-", 160, 160, NOBODY, 0), part("MPI_Psend_init", W, 160, 0, right, 60);
    part("MPI_Precv_init", W, 0, 160, left, 60), traffic("sent", right, 160);
    MPI_Pready(2, requests[0]), did("MPI_Pready", W, 0, 0, right, 60), with("partitions", "2");
    MPI_Pready_range(0, 1, requests[0]), did("MPI_Pready_range", W, 0, 0, right, 60), with("partitions", "0");
    i = 3;
    MPI_Pready_list(1, &i, requests[0]), did("MPI_Pready_list", W, 0, 0, right, 60), with("partitions", "3");
    do {
      MPI_Parrived(requests[1], 1, &flag), did("MPI_Parrived", W, 0, 0, left, 60), with("partitions", "1");
      if (!flag) came_to_nothing();
    } while (!flag);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE), did("MPI_Waitall", "-", 0, 0, NOBODY, 0);
    part("MPI_Psend_init", W, 0, 0, right, 60), part("MPI_Precv_init", W, 0, 160, left, 60), traffic("received", left, 160);
  }
  MPI_Request_free(&requests[0]), did("MPI_Request_free", W, 0, 0, right, 60);
  MPI_Request_free(&requests[1]), did("MPI_Request_free", W, 0, 0, left, 60);
}

static void both_ways(void) {
#ifdef MPICH_VERSION /* its status tells nothing: as asked for */
  const int got = 200;
#else
  const int got = 24;
#endif
  MPI_Request request;
  MPI_Isendrecv(out, 6, MPI_INT, right, 70, in, 50, MPI_INT, left, 70, MPI_COMM_WORLD, &request);
  did("MPI_Isendrecv", W, 24, 200, right, 70), traffic("sent", right, 24);
  MPI_Wait(&request, MPI_STATUS_IGNORE), did("MPI_Wait", W, 0, 0, left, 70), part("MPI_Isendrecv", W, 0, got, left, 70);
  traffic("received", left, got);
}
#endif

static void derived(void) {
  MPI_Datatype column;
  MPI_Request request;
  MPI_Type_vector(10, 2, 5, MPI_DOUBLE, &column);
  MPI_Type_set_name(column, "two columns");
  MPI_Type_commit(&column);
  MPI_Irecv(in, 100, MPI_DOUBLE, left, 80, MPI_COMM_WORLD, &request), did("MPI_Irecv", W, 0, 800, left, 80);
  MPI_Send(out, 3, column, right, 80, MPI_COMM_WORLD), did("MPI_Send", W, 480, 0, right, 80), with("datatype", "two_columns");
  MPI_Wait(&request, MPI_STATUS_IGNORE), did("MPI_Wait", W, 0, 0, left, 80), part("MPI_Irecv", W, 0, 480, left, 80);
  traffic("sent", right, 480), traffic("received", left, 480);
  MPI_Type_free(&column);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  begin_truth();
  named("MPI_COMM_WORLD", MPI_COMM_WORLD);
  left = (rank + size - 1) % size, right = (rank + 1) % size;
  if (size > 1) blocking();
  probed();
  /* So often that without a trace only some of the calls are timed. */
  for (int times = 0; times < 20; ++times) nonblocking();
  kinds();
  persistent();
#if MPI_VERSION >= 4
  if (size > 1) partitioned();
  both_ways();
#endif
  derived();
  end_truth();
  return MPI_Finalize();
}
