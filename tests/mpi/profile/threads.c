/* Several threads exchange messages and collectives at once, each on a communicator of its own. */
#include <pthread.h>

#include "truth.h"

#define THREADS 4
#define ROUNDS 300
static MPI_Comm comms[THREADS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void say(const char* function, const char* comm, long long sent, long long received) {
  did(function, comm, sent, received, NOBODY, 0);
}

static void* work(void* argument) {
  const int me = (int)(long)argument, right = (rank + 1) % size, left = (rank + size - 1) % size;
  char name[20];
  int out[64] = {0}, in[64], i;
  MPI_Request requests[2];
  sprintf(name, "of_thread_%d", me);
  for (i = 0; i < ROUNDS; ++i) {
    const int count = 1 + (i + me) % 60;
    MPI_Irecv(in, 64, MPI_INT, i % 2 ? MPI_ANY_SOURCE : left, me, comms[me], &requests[0]);
    MPI_Isend(out, count, MPI_INT, right, me, comms[me], &requests[1]);
    if (i % 3) {
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    } else {
      MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
      MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    }
    MPI_Allreduce(out, in, 1 + me, MPI_INT, MPI_SUM, comms[me]);
    pthread_mutex_lock(&lock);
    say("MPI_Irecv", name, 0, 256), say("MPI_Isend", name, 4 * count, 0);
    if (i % 3)
      say("MPI_Waitall", "-", 0, 0);
    else
      say("MPI_Wait", name, 0, 0), say("MPI_Wait", name, 0, 0);
    say("MPI_Allreduce", name, 4 * (1 + me), 4 * (1 + me));
    traffic("sent", right, 4 * count), traffic("received", left, 4 * count);
    pthread_mutex_unlock(&lock);
  }
  return NULL;
}

int main(int argc, char** argv) {
  int provided, i;
  pthread_t threads[THREADS];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (provided != MPI_THREAD_MULTIPLE) MPI_Abort(MPI_COMM_WORLD, 7);
  begin_truth();
  for (i = 0; i < THREADS; ++i) {
    char name[20];
    sprintf(name, "of_thread_%d", i);
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]), say("MPI_Comm_dup", "MPI_COMM_WORLD", 0, 0);
    MPI_Comm_set_name(comms[i], name), named(name, comms[i]);
  }
  for (i = 0; i < THREADS; ++i) pthread_create(&threads[i], NULL, work, (void*)(long)i);
  for (i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  end_truth();
  return MPI_Finalize();
}
