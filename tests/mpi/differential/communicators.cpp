#include "communicators.hpp"

#include <numeric>

#include "compare.hpp"
#include "sections.hpp"

namespace differential {
namespace {

struct World {
  int rank, size;
  World() {
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
  }
};

// Random colours (some ranks left out), keys that keep, reverse or shuffle the order.
MPI_Comm random_split(Random& agreed) {
  World world;
  std::vector<int> colours(world.size), keys(world.size);
  int groups = int(1 + agreed.below(3)), order = int(agreed.below(3));
  for (int r = 0; r < world.size; ++r) {
    colours[r] = agreed.one_in(8) ? MPI_UNDEFINED : int(agreed.below(uint64_t(groups)));
    keys[r] = order == 0 ? r : order == 1 ? -r : int(agreed.below(100));
  }
  MPI_Comm comm;
  MPI_Comm_split(MPI_COMM_WORLD, colours[world.rank], keys[world.rank], &comm);
  return comm;
}

// A random subset in random order, by the constructor that only its members call.
MPI_Comm from_group(Random& agreed) {
  World world;
  std::vector<int> members(world.size);
  std::iota(members.begin(), members.end(), 0);
  agreed.shuffle(members);
  members.resize(1 + agreed.below(uint64_t(world.size)));
  MPI_Group all, some;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, int(members.size()), members.data(), &some);
  int place;
  MPI_Group_rank(some, &place);
  MPI_Comm comm = MPI_COMM_NULL;
  bool together = agreed.one_in(2);
  if (together)
    MPI_Comm_create(MPI_COMM_WORLD, some, &comm);
  else if (place != MPI_UNDEFINED)
    MPI_Comm_create_group(MPI_COMM_WORLD, some, 7, &comm);
  MPI_Group_free(&all);
  MPI_Group_free(&some);
  return comm;
}

MPI_Comm cartesian(Random& agreed) {
  World world;
  int sizes[2] = {0, 0}, periodic[2] = {1, 0};
  MPI_Dims_create(world.size, 2, sizes);
  MPI_Comm grid, row;
  MPI_Cart_create(MPI_COMM_WORLD, 2, sizes, periodic, 0, &grid);
  if (agreed.one_in(2)) return grid;
  int keep[2] = {0, 1};
  MPI_Cart_sub(grid, keep, &row);
  MPI_Comm_free(&grid);
  return row;
}

MPI_Comm duplicated_without_waiting() {
  MPI_Comm comm;
  MPI_Request request;
  MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  return comm;
}

MPI_Comm merged() {
  World world;
  MPI_Comm half, between, whole;
  MPI_Comm_split(MPI_COMM_WORLD, world.rank % 2, world.rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - world.rank % 2, 5, &between);
  MPI_Intercomm_merge(between, world.rank % 2, &whole);
  MPI_Comm_free(&between);
  MPI_Comm_free(&half);
  return whole;
}

}  // namespace

std::vector<Named> make_communicators(Random& agreed) {
  std::vector<Named> made = {{"split", random_split(agreed)}, {"group", from_group(agreed)}, {"cart", cartesian(agreed)}};
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  made.push_back({"dup", comm});
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm);
  made.push_back({"split_type", comm});
  if (agreed.one_in(3)) made.push_back({"idup", duplicated_without_waiting()});
  if (World().size > 1) made.push_back({"merged", merged()});
  return made;
}

void free_all(std::vector<Named>& communicators) {
  for (Named& c : communicators)
    if (c.comm != MPI_COMM_NULL) MPI_Comm_free(&c.comm);
  communicators.clear();
}

void random_sequence(const Options& options) {
  Random agreed(options.seed);
  std::vector<Named> made;
  for (long step = 0; step < options.steps; ++step) {
    if (step % 40 == 0) {
      free_all(made);
      made = make_communicators(agreed);
      made.push_back({"world", MPI_COMM_WORLD});
    }
    const Named& chosen = agreed.one_in(3) ? made.back() : made[agreed.below(made.size())];
    if (chosen.comm == MPI_COMM_NULL) continue;
    Context context(chosen.comm, chosen.name, options.seed, step,
                    {options.largest, options.derived, options.same_bits, options.all, options.mixed, options.late_us});
    if (context.size() > 1) compare_any(context);  // single ranks have a part of their own
  }
  made.pop_back();
  free_all(made);
}

void many_communicators(const Options& options) {
  Random agreed(mix(options.seed, 3));
  for (int round = 0; round < 2; ++round) {
    std::vector<MPI_Comm> live(static_cast<size_t>(options.live));
    for (size_t i = 0; i < live.size(); ++i) {
      MPI_Comm_dup(MPI_COMM_WORLD, &live[i]);
      Context context(live[i], "one of many dups", options.seed, long(i), {4096, options.derived, options.same_bits});
      if (i % 64 == 0) compare_any(context);
      long one = 1, sum = 0;
      MPI_Allreduce(&one, &sum, 1, MPI_LONG, MPI_SUM, live[i]);
      count_comparison();
      if (sum != context.size()) report_failure(context, "Allreduce of ones is wrong");
    }
    agreed.shuffle(live);
    for (MPI_Comm& comm : live) MPI_Comm_free(&comm);
  }
}

}  // namespace differential
