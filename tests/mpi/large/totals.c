/* Collectives whose totals pass 2^31 bytes, against known contents at the borders of blocks, where offsets pass powers of two,
 * and at random places: totals COLLECTIVE... Prints "right" on rank 0; says on standard error what is wrong.
 *
 * Word i of what rank r sends is value(r, i). That repeats: one small file of memory is mapped again and again, so that
 * sending takes hardly any memory. Receiving takes 2^31 bytes and some. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef uint32_t word;
#define WORD MPI_UINT32_T

enum { most_ranks = 8, most_places = 1 << 15 };
static const size_t period = ((size_t)5 << 20) + 1024; /* words: whole pages, and no power of two is a multiple */

static int rank, size, right = 1;
static size_t block, total; /* words of one rank, and of all */
static word *sent, *received;

static word value(int r, size_t i) {
  return (word)(i % period) * 2654435761u + (word)r * 40503u;
}

static word sum(size_t i) {
  word all = 0;
  for (int r = 0; r < size; ++r) all += value(r, i);
  return all;
}

static int make_buffers(void) {
  const size_t bytes = period * sizeof(word);
  const size_t room = (total / period + 1) * bytes;
  const int file = memfd_create("sent", 0);
  received = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  sent = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (file < 0 || ftruncate(file, (off_t)bytes) != 0 || received == MAP_FAILED || sent == MAP_FAILED) return 0;
  for (size_t at = 0; at < room; at += bytes)
    if (mmap((char*)sent + at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED) return 0;
  for (size_t i = 0; i < period; ++i) sent[i] = value(rank, i);
  return close(file) == 0;
}

/* Places among n words: around the borders of blocks and powers of two, and random ones. */
static size_t where[most_places];
static int choose_places(size_t n) {
  int count = 0;
  for (int near = -2; near <= 1; ++near) {
    for (int r = 0; r <= size; ++r) where[count++] = (size_t)r * block + (size_t)near;
    for (int bit = 10; bit < 32; ++bit) where[count++] = ((size_t)1 << bit) + (size_t)near;
  }
  where[count++] = n - 1;
  for (uint64_t x = 1; count < most_places; x = x * 6364136223846793005u + 1442695040888963407u) where[count++] = (x >> 20) % n;
  int inside = 0;
  for (int k = 0; k < count; ++k)
    if (where[k] < n) where[inside++] = where[k];
  return inside;
}

/* What a collective receives: n words, of which expected(i) is the i-th. */
struct collective {
  const char* name;
  void (*call)(void);
  size_t (*count)(void);
  word (*expected)(size_t i);
};

static size_t all(void) {
  return total;
}
static size_t one(void) {
  return block;
}
static size_t all_at_root(void) {
  return rank == 1 ? total : 0;
}
static size_t all_but_at_root(void) {
  return rank == 1 ? 0 : total;
}

static void bcast(void) {
  MPI_Bcast(rank == 1 ? sent : received, (int)total, WORD, 1, MPI_COMM_WORLD);
}
static void gather(void) {
  MPI_Gather(sent, (int)block, WORD, received, (int)block, WORD, 1, MPI_COMM_WORLD);
}
static void scatter(void) {
  MPI_Scatter(sent, (int)block, WORD, received, (int)block, WORD, 1, MPI_COMM_WORLD);
}
static void allgather(void) {
  MPI_Allgather(sent, (int)block, WORD, received, (int)block, WORD, MPI_COMM_WORLD);
}
static void alltoall(void) {
  MPI_Alltoall(sent, (int)block, WORD, received, (int)block, WORD, MPI_COMM_WORLD);
}
static void alltoallw(void) {
  int counts[most_ranks], displacements[most_ranks];
  MPI_Datatype types[most_ranks];
  for (int r = 0; r < size; ++r) {
    counts[r] = (int)block;
    displacements[r] = (int)((size_t)r * block * sizeof(word)); /* bytes: the last block begins below 2^31 and ends above */
    types[r] = WORD;
  }
  MPI_Alltoallw(sent, counts, displacements, types, received, counts, displacements, types, MPI_COMM_WORLD);
}
static void allreduce(void) {
  MPI_Allreduce(sent, received, (int)total, WORD, MPI_SUM, MPI_COMM_WORLD);
}
static void iallreduce(void) {
  MPI_Request request;
  MPI_Iallreduce(sent, received, (int)total, WORD, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static void reduce_scatter_block(void) {
  MPI_Reduce_scatter_block(sent, received, (int)block, WORD, MPI_SUM, MPI_COMM_WORLD);
}

static word of_root(size_t i) {
  return value(1, i);
}
static word blocks_of_all(size_t i) {
  return value((int)(i / block), i % block);
}
static word own_blocks_of_all(size_t i) {
  return value((int)(i / block), (size_t)rank * block + i % block);
}
static word own_block_of_root(size_t i) {
  return value(1, (size_t)rank * block + i);
}
static word own_block_of_sum(size_t i) {
  return sum((size_t)rank * block + i);
}

static const struct collective collectives[] = {
    {"Bcast", bcast, all_but_at_root, of_root},
    {"Gather", gather, all_at_root, blocks_of_all},
    {"Scatter", scatter, one, own_block_of_root},
    {"Allgather", allgather, all, blocks_of_all},
    {"Alltoall", alltoall, all, own_blocks_of_all},
    {"Alltoallw", alltoallw, all, own_blocks_of_all},
    {"Allreduce", allreduce, all, sum},
    {"Iallreduce", iallreduce, all, sum},
    {"Reduce_scatter_block", reduce_scatter_block, one, own_block_of_sum},
};

static void check(const struct collective* c) {
  const size_t n = c->count();
  const int places = n ? choose_places(n) : 0;
  int wrong = 0;
  for (int k = 0; k < places; ++k) received[where[k]] = ~c->expected(where[k]);
  c->call();
  for (int k = 0; k < places; ++k)
    if (received[where[k]] != c->expected(where[k]) && wrong++ == 0)
      fprintf(stderr, "rank %d of %d: wrong: %s, word %zu of %zu\n", rank, size, c->name, where[k], n);
  right &= wrong == 0;
}

int main(int argc, char** argv) {
  int called = 0, everywhere = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  block = ((size_t)1 << 29) / (size_t)size + 4099;
  total = block * (size_t)size;
  right = size > 1 && size <= most_ranks && make_buffers();
  for (size_t c = 0; right && c < sizeof collectives / sizeof *collectives; ++c)
    for (int i = 1; i < argc; ++i)
      if (strcmp(argv[i], collectives[c].name) == 0) check(&collectives[c]), ++called;
  right &= called == argc - 1;
  PMPI_Allreduce(&right, &everywhere, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (rank == 0 && everywhere) puts("right");
  MPI_Finalize();
  return everywhere ? 0 : 1;
}
