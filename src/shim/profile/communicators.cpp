#include "shim/profile/communicators.hpp"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mutex>
#include <new>

#include "base/clock.hpp"

namespace stretto::shim::profile {

constinit thread_local RememberedCommunicator known_communicators[remembered_communicators] = {};
constinit std::atomic<uint64_t> communicators_freed{1};

namespace {

constexpr size_t longest_name = 256;                       // of MPI_MAX_OBJECT_NAME, in every ABI
constexpr const char* default_name = "MPI COMMUNICATOR ";  // what Open MPI calls those without a name

int keyval = MPI_KEYVAL_INVALID;
std::mutex mutex;                // of the list and of the numbers
std::mutex making;               // one at a time: two for one handle must not be
std::atomic<bool> ended{false};  // MPI is being finalized and cannot be asked any more
Communicator* living = nullptr;

int keep_to_itself(MPI_Comm, int, void*, void*, void*, int* copied) {
  *copied = 0;
  return MPI_SUCCESS;
}

void link(Communicator* communicator) {
  const std::lock_guard<std::mutex> lock(mutex);
  communicator->next = living;
  if (living) living->previous = communicator;
  living = communicator;
}

void unlink(Communicator* communicator) {
  const std::lock_guard<std::mutex> lock(mutex);
  (communicator->previous ? communicator->previous->next : living) = communicator->next;
  if (communicator->next) communicator->next->previous = communicator->previous;
}

void note_freed(Communicator* communicator) {
  refresh_name(communicator);
  if (communicator->entry) communicator->entry->freed_ticks = ticks();
}

int freed(MPI_Comm, int, void* attribute, void*) {
  communicators_freed.fetch_add(1, std::memory_order_acq_rel);
  auto* communicator = static_cast<Communicator*>(attribute);
  if (!ended.load(std::memory_order_acquire)) note_freed(communicator);
  unlink(communicator);
  let_go(communicator);
  return MPI_SUCCESS;
}

// How often each key was drawn. Chained, never freed: as many as there are different ways in which groups were made.
struct Drawn {
  Drawn* next;
  uint64_t key;
  uint32_t times;
};
constexpr size_t drawn_buckets = 4096;
Drawn* drawn[drawn_buckets];

uint32_t draw(uint64_t key) {
  const std::lock_guard<std::mutex> lock(mutex);
  Drawn*& bucket = drawn[key % drawn_buckets];
  for (Drawn* one = bucket; one; one = one->next)
    if (one->key == key) return one->times++;
  Drawn* first = new (std::nothrow) Drawn{bucket, key, 1};
  if (first) bucket = first;
  return 0;
}

// The two groups of an intercommunicator count in the order of their least members, which is the same on both sides.
int32_t least(const Members& members) {
  int32_t found = INT32_MAX;
  for (uint32_t i = 0; i < members.count; ++i)
    if (members.ranks[i] >= 0 && members.ranks[i] < found) found = members.ranks[i];
  return found;
}

uint64_t key_of_group(const Origin& origin, const Members* own, const Members* remote) {
  uint64_t hash = mix(mix(origin.parent, origin.key), 0x1);
  if (!remote) return mix(hash, own->hash);
  const bool own_first = least(*own) <= least(*remote);
  return mix(mix(hash, (own_first ? own : remote)->hash), (own_first ? remote : own)->hash);
}

// The name that the program gave; false: it gave none.
bool given_name(MPI_Comm comm, char* name) {
  int length = 0;
  name[0] = '\0';
  if (mpi().Comm_get_name(comm, name, &length) != MPI_SUCCESS) return false;
  return name[0] != '\0' && strncmp(name, default_name, strlen(default_name)) != 0;
}

void copy_name(char (&to)[72], const char* from) {
  snprintf(to, sizeof to, "%s", from);
}

void describe(const Communicator& c, const Origin& origin, trace::CommunicatorEntry* entry) {
  *entry = {};
  entry->identity = c.identity;
  entry->parent = origin.parent;
  entry->created_ticks = ticks();
  entry->size = uint32_t(c.size);
  entry->rank = c.rank;
  entry->remote_size = c.remote ? c.remote->count : 0;
  entry->nodes = c.remote ? nodes_of(*c.own, *c.remote) : c.own->nodes;
  char name[longest_name];
  if (given_name(c.handle, name))
    copy_name(entry->name, name);
  else if (*origin.parent_name)
    snprintf(entry->name, sizeof entry->name, "%s of %.*s", origin.how, int(sizeof entry->name - 8 - strlen(origin.how)),
             origin.parent_name);
  else
    copy_name(entry->name, origin.how);
}

void enter_into_trace(Communicator* c, const Origin& origin) {
  trace::CommunicatorEntry entry;
  describe(*c, origin, &entry);
  if (!c->remote) {
    c->index = trace::add_communicator(entry, c->own->ranks, c->own->count);
    return;
  }
  const uint32_t count = c->own->count + c->remote->count;
  int32_t* both = static_cast<int32_t*>(malloc(count * sizeof(int32_t)));
  if (!both) return;
  memcpy(both, c->own->ranks, c->own->count * sizeof(int32_t));
  memcpy(both + c->own->count, c->remote->ranks, c->remote->count * sizeof(int32_t));
  c->index = trace::add_communicator(entry, both, count);
  free(both);
}

bool find_members(MPI_Comm comm, Communicator* c) {
  int inter = 0;
  MPI_Group group;
  if (mpi().Comm_test_inter(comm, &inter) != MPI_SUCCESS || mpi().Comm_group(comm, &group) != MPI_SUCCESS) return false;
  c->own = members_of(group);
  if (inter) {
    if (mpi().Comm_remote_group(comm, &group) != MPI_SUCCESS) return false;
    c->remote = members_of(group);
    if (!c->remote) return false;
  }
  mpi().Comm_rank(comm, &c->rank);
  mpi().Comm_size(comm, &c->size);
  return c->own != nullptr;
}

Communicator* make(MPI_Comm comm, const Origin& origin, const uint32_t* number) {
  auto* c = new (std::nothrow) Communicator;
  if (!c) return nullptr;
  c->handle = comm;
  if (!find_members(comm, c)) return delete c, nullptr;
  const uint64_t key = key_of_group(origin, c->own, c->remote);
  c->identity = mix(key, number ? *number : draw(key));
  if (c->identity == 0) c->identity = 1;
  c->is_world = comm == comm_world();
  if (mpi().Comm_set_attr(comm, keyval, c) != MPI_SUCCESS) return delete c, nullptr;
  enter_into_trace(c, origin);
  c->entry = trace::communicator_entry(c->index);
  link(c);
  return c;
}

// The one that hangs on the handle already; null: none does.
Communicator* attached_to(MPI_Comm comm, bool* usable) {
  Communicator* found = nullptr;
  int flag = 0;
  *usable = mpi().Comm_get_attr(comm, keyval, &found, &flag) == MPI_SUCCESS;
  return *usable && flag ? found : nullptr;
}

Communicator* attached_or_made(MPI_Comm comm, const Origin& origin, const uint32_t* number) {
  const std::lock_guard<std::mutex> lock(making);
  bool usable;
  Communicator* found = attached_to(comm, &usable);
  return found || !usable ? found : make(comm, origin, number);
}

}  // namespace

bool prepare_communicators() {
  if (mpi().Comm_create_keyval(keep_to_itself, freed, &keyval, nullptr) != MPI_SUCCESS) return false;
  Origin origin;
  origin.key = 1;
  for (MPI_Comm comm : {comm_world(), comm_self()}) make(comm, origin, nullptr);
  return true;
}

Communicator* look_up_communicator(MPI_Comm comm, RememberedCommunicator& slot) {
  const uintptr_t key = key_of(comm);
  const uint64_t now = communicators_freed.load(std::memory_order_acquire);
  if (key == 0 || comm == comm_null() || keyval == MPI_KEYVAL_INVALID) return nullptr;
  Communicator* found = attached_or_made(comm, Origin{}, nullptr);
  if (found) slot = {key, now, found};
  return found;
}

void hold(Communicator* communicator) {
  communicator->holders.fetch_add(1, std::memory_order_relaxed);
}

void let_go(Communicator* communicator) {
  if (communicator->holders.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (const Neighbours* neighbours = communicator->neighbours.load()) {
    free(neighbours->absent_sources);
    free(neighbours->absent_destinations);
    delete neighbours;
  }
  delete communicator;
}

Origin origin_from(const char* how, Communicator* parent, uint64_t key) {
  Origin origin;
  origin.how = how;
  origin.key = key;
  if (!parent) return origin;
  origin.parent = parent->identity;
  if (parent->entry) copy_name(origin.parent_name, parent->entry->name);
  return origin;
}

void communicator_made(MPI_Comm comm, const Origin& origin, const uint32_t* number) {
  if (comm == comm_null() || key_of(comm) == 0 || keyval == MPI_KEYVAL_INVALID) return;
  attached_or_made(comm, origin, number);
}

uint32_t draw_number(const Origin& origin, const Members* own, const Members* remote) {
  return draw(key_of_group(origin, own, remote));
}

void refresh_name(Communicator* communicator) {
  char name[longest_name];
  if (communicator->entry && given_name(communicator->handle, name)) copy_name(communicator->entry->name, name);
}

void end_communicators() {
  ended.store(true, std::memory_order_release);
  const std::lock_guard<std::mutex> lock(mutex);
  for (Communicator* one = living; one; one = one->next) refresh_name(one);
}

}  // namespace stretto::shim::profile
