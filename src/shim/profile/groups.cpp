#include "shim/profile/groups.hpp"

#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <mutex>

namespace stretto::shim::profile {
namespace {

constexpr size_t bucket_count = 4096;

std::mutex mutex;
Members* buckets[bucket_count];
MPI_Group world{};
int world_size = 0;
const int32_t* node_of = nullptr;
bool prepared = false;

uint64_t hash_of(const int32_t* ranks, uint32_t count) {
  uint64_t hash = mix(0x5354, count);
  for (uint32_t i = 0; i < count; ++i) hash = mix(hash, uint32_t(ranks[i]));
  return hash;
}

// How many different nodes; `seen` has a place for each world rank.
uint32_t count_new_nodes(const Members& members, bool* seen) {
  uint32_t nodes = 0;
  for (uint32_t i = 0; i < members.count; ++i) {
    const int32_t rank = members.ranks[i];
    if (rank < 0 || rank >= world_size) return 0;
    const int32_t node = node_of ? node_of[rank] : 0;
    nodes += !seen[node];
    seen[node] = true;
  }
  return nodes;
}

uint32_t count_nodes(const Members& one, const Members* other) {
  if (world_size == 0) return 0;
  bool* seen = static_cast<bool*>(calloc(size_t(world_size), 1));
  if (!seen) return 0;
  const uint32_t first = count_new_nodes(one, seen);
  const uint32_t second = other ? count_new_nodes(*other, seen) : 0;
  const bool known = (first || one.count == 0) && (!other || second || one.nodes);
  free(seen);
  return known ? first + second : 0;
}

const Members* intern(Members* made) {
  made->hash = hash_of(made->ranks, made->count);
  const std::lock_guard<std::mutex> lock(mutex);
  Members*& bucket = buckets[made->hash % bucket_count];
  for (Members* known = bucket; known; known = known->next) {
    if (known->hash != made->hash || known->count != made->count) continue;
    if (memcmp(known->ranks, made->ranks, made->count * sizeof(int32_t)) != 0) continue;
    free(made);
    return known;
  }
  made->nodes = count_nodes(*made, nullptr);
  made->next = bucket;
  return bucket = made;
}

// Fills in the world ranks.
bool translate(MPI_Group group, Members* made) {
  const size_t count = made->count;
  if (!prepared) return std::fill_n(made->ranks, count, -1), true;
  int* ranks = static_cast<int*>(malloc((count + 1) * sizeof(int)));
  if (!ranks) return false;
  for (size_t i = 0; i < count; ++i) ranks[i] = int(i);
  const bool good = mpi().Group_translate_ranks(group, int(count), ranks, world, made->ranks) == MPI_SUCCESS;
  free(ranks);
  for (size_t i = 0; i < count; ++i) made->ranks[i] = made->ranks[i] < 0 ? -1 : made->ranks[i];
  return good;
}

}  // namespace

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 29u);
}

void prepare_members(const int32_t* nodes) {
  node_of = nodes;
  if (!comm_world() || mpi().Comm_size(comm_world(), &world_size) != MPI_SUCCESS) return;
  prepared = mpi().Comm_group(comm_world(), &world) == MPI_SUCCESS;
}

const Members* members_of(MPI_Group group) {
  int count = 0;
  Members* made = nullptr;
  if (mpi().Group_size(group, &count) == MPI_SUCCESS)
    made = static_cast<Members*>(calloc(1, sizeof(Members) + size_t(count) * sizeof(int32_t)));
  if (made) made->count = uint32_t(count);
  const bool good = made && translate(group, made);
  mpi().Group_free(&group);
  if (!good) return free(made), nullptr;
  return intern(made);
}

uint32_t nodes_of(const Members& one, const Members& other) {
  return one.nodes && other.nodes ? count_nodes(one, &other) : 0;
}

}  // namespace stretto::shim::profile
