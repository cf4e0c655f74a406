#include <vector>

#include "communicators.hpp"
#include "compare.hpp"
#include "sections.hpp"

namespace differential {
namespace {

void on_single_ranks(const Options& options) {
  MPI_Comm alone;
  int world_rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_split(MPI_COMM_WORLD, world_rank, 0, &alone);
  for (long step = 0; step < 40; ++step) {
    Context context(step % 2 ? alone : MPI_COMM_SELF, "a single rank", mix(options.seed, 4), step,
                    {65536, options.derived, options.same_bits});
    compare_any(context);
  }
  MPI_Comm_free(&alone);
}

// Two groups; the left one reduces for the right one and the other way round.
void on_intercommunicator(const Options& options) {
  Context world(MPI_COMM_WORLD, "an intercommunicator", mix(options.seed, 5), 0, {65536, options.derived, options.same_bits});
  if (world.size() < 2) return;
  MPI_Comm half, between;
  int side = world.rank() % 2;
  MPI_Comm_split(MPI_COMM_WORLD, side, world.rank(), &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 5, &between);
  int rank, remote;
  MPI_Comm_rank(half, &rank);
  MPI_Comm_remote_size(between, &remote);

  long mine = 1 + side, sum = 0, expected = long(remote) * (2 - side);
  MPI_Barrier(between);
  MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, between);
  count_comparison();
  if (sum != expected) report_failure(world, "Allreduce");

  // The root is the left group's rank 0: the right group receives, or contributes.
  int root = side == 1 ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
  long told = side == 0 ? 42 + rank : -1, gathered = -1;
  MPI_Bcast(&told, 1, MPI_LONG, root, between);
  MPI_Reduce(&mine, &gathered, 1, MPI_LONG, MPI_SUM, root, between);
  count_comparison();
  if (told != (side == 1 ? 42 : 42 + rank)) report_failure(world, "Bcast");
  if (gathered != (root == MPI_ROOT ? expected : -1)) report_failure(world, "Reduce");

  std::vector<long> theirs(size_t(remote), -1), expected_theirs(size_t(remote), 2 - side);
  MPI_Allgather(&mine, 1, MPI_LONG, theirs.data(), 1, MPI_LONG, between);
  count_comparison();
  if (theirs != expected_theirs) report_failure(world, "Allgather");
  MPI_Comm_free(&between);
  MPI_Comm_free(&half);
}

int error_class(int error) {
  int result = MPI_SUCCESS;
  MPI_Error_class(error, &result);
  return result;
}

// Wrong arguments must be MPI's to judge: the same error class as without Stretto.
void with_wrong_arguments(const Options& options) {
  Context context(MPI_COMM_WORLD, "wrong arguments", options.seed, 0, {0, options.derived, options.same_bits});
  int in = 1, out = 0, size = context.size();
  auto same = [&](const char* what, int mine, int theirs) {
    count_comparison();
    if (error_class(mine) != error_class(theirs)) report_failure(context, std::string(what) + ": another error class");
  };
  MPI_Comm comm = MPI_COMM_WORLD;
  same("negative count", MPI_Bcast(&in, -1, MPI_INT, 0, comm), PMPI_Bcast(&in, -1, MPI_INT, 0, comm));
  same("no such root", MPI_Bcast(&in, 1, MPI_INT, size, comm), PMPI_Bcast(&in, 1, MPI_INT, size, comm));
  same("no datatype", MPI_Bcast(&in, 1, MPI_DATATYPE_NULL, 0, comm), PMPI_Bcast(&in, 1, MPI_DATATYPE_NULL, 0, comm));
  same("no operation", MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_OP_NULL, comm),
       PMPI_Allreduce(&in, &out, 1, MPI_INT, MPI_OP_NULL, comm));
  same("bits of a float", MPI_Allreduce(&in, &out, 1, MPI_FLOAT, MPI_BAND, comm),
       PMPI_Allreduce(&in, &out, 1, MPI_FLOAT, MPI_BAND, comm));
  same("reduce to nowhere", MPI_Reduce(&in, &out, 1, MPI_INT, MPI_SUM, -7, comm),
       PMPI_Reduce(&in, &out, 1, MPI_INT, MPI_SUM, -7, comm));
  std::vector<int> all(size_t(size), 0), negative(size_t(size), -1);
  same("negative block", MPI_Allgather(&in, -1, MPI_INT, all.data(), -1, MPI_INT, comm),
       PMPI_Allgather(&in, -1, MPI_INT, all.data(), -1, MPI_INT, comm));
  same("negative blocks", MPI_Reduce_scatter(all.data(), &out, negative.data(), MPI_INT, MPI_SUM, comm),
       PMPI_Reduce_scatter(all.data(), &out, negative.data(), MPI_INT, MPI_SUM, comm));
  same("gather to nowhere", MPI_Gather(&in, 1, MPI_INT, all.data(), 1, MPI_INT, size, comm),
       PMPI_Gather(&in, 1, MPI_INT, all.data(), 1, MPI_INT, size, comm));
  same("scan by no operation", MPI_Scan(&in, &out, 1, MPI_INT, MPI_OP_NULL, comm),
       PMPI_Scan(&in, &out, 1, MPI_INT, MPI_OP_NULL, comm));
  same("blocks of no type", MPI_Alltoall(all.data(), 1, MPI_DATATYPE_NULL, all.data(), 1, MPI_INT, comm),
       PMPI_Alltoall(all.data(), 1, MPI_DATATYPE_NULL, all.data(), 1, MPI_INT, comm));
  compare_any(context);  // and the communicator still works
}

// All give one another more than there is room for: nobody writes beside its room, nor into Stretto's memory, and where there
// are others all are told (of one rank alone Stretto leaves it to MPI, and MPICH's Allgather says nothing).
void with_blocks_too_long(const Options& options) {
  constexpr int room = 1;
  for (const bool to_each : {false, true})
    for (const int sent : {4, 2000}) {
      MPI_Comm comm;
      MPI_Comm_dup(MPI_COMM_WORLD, &comm);
      Context context(comm, "blocks too long", options.seed, sent, {65536, options.derived});
      const size_t ranks = size_t(context.size());
      std::vector<int> mine(size_t(sent) * ranks, context.rank()), all(ranks + size_t(sent), -1);
      const int code = to_each ? MPI_Alltoall(mine.data(), sent, MPI_INT, all.data(), room, MPI_INT, comm)
                               : MPI_Allgather(mine.data(), sent, MPI_INT, all.data(), room, MPI_INT, comm);
      count_comparison();
      if (ranks > 1 && error_class(code) != MPI_ERR_TRUNCATE)
        report_failure(context, "blocks of " + std::to_string(sent) + ": not told");
      for (size_t i = 0; i < all.size(); ++i)
        if (all[i] != -1 && (i >= ranks || all[i] != int(i))) report_failure(context, "wrote beside its room");
      if (sent < 100) compare_any(context);
      MPI_Comm_free(&comm);
    }
}

// A sender gives more than the root has room for. Nobody hangs, and the root is told what MPI would tell it; where both are small
// the communicator still works, and elsewhere another one does.
void with_unequal_sizes(const Options& options) {
  constexpr int many = 100000;
  for (auto [sent, expected] : {std::pair{4, 1}, {many, 1}, {many, many / 2}, {1, many}}) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    Context context(comm, "unequal sizes", options.seed, sent + expected, {65536, options.derived});
    std::vector<int> mine(size_t(many), context.rank()), all(size_t(many) * size_t(context.size()), -1);
    int count = context.rank() == 0 ? expected : sent;
    int code = MPI_Gather(mine.data(), count, MPI_INT, all.data(), expected, MPI_INT, 0, comm);
    count_comparison();
    if (context.rank() == 0 && context.size() > 1 && error_class(code) != MPI_ERR_TRUNCATE)
      report_failure(context, "Gather of " + std::to_string(sent) + " into " + std::to_string(expected) + ": not told");
    for (size_t r = 1; expected == 1 && r < size_t(context.size()); ++r)
      if (context.rank() == 0 && all[r] != -1 && all[r] != int(r)) report_failure(context, "Gather wrote beside its room");
    if (sent < many && expected < many) compare_any(context);
    MPI_Comm_free(&comm);
  }
  Context context(MPI_COMM_WORLD, "after unequal sizes", options.seed, 0, {65536, options.derived});
  compare_any(context);
}

}  // namespace

void passed_through(const Options& options) {
  on_single_ranks(options);
  on_intercommunicator(options);
  with_wrong_arguments(options);
  with_unequal_sizes(options);
  with_blocks_too_long(options);
}

}  // namespace differential
