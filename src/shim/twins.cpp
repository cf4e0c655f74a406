#include "shim/twins.hpp"

#include <mutex>

#include "shim/nodes.hpp"
#include "shim/rails.hpp"

namespace stretto::shim {

constinit std::atomic<uint32_t> twins_made{0};

namespace {

using engine::Communicator;

struct Twin {
  const Communicator* home = nullptr;  // null: it has been freed, or this place is free
  Communicator* own = nullptr;         // null: this place is free
  int number = 0;                      // among those of its home, in the order in which they were made: on all ranks the same
  bool taken = false;
};

// Each twin has links, so there are not more of them.
struct Twins {
  std::mutex mutex;
  Twin all[most_rails];
};

Twins& twins() {
  alignas(Twins) static char storage[sizeof(Twins)];
  static Twins* made = new (storage) Twins;
  return *made;
}

// Calls visit(twin) for those of `home`. How many there are.
template <class Visit>
int for_twins(const Communicator& home, Visit visit) {
  const std::lock_guard<std::mutex> lock(twins().mutex);
  int count = 0;
  for (Twin& twin : twins().all) {
    if (twin.home != &home) continue;
    ++count;
    visit(twin);
  }
  return count;
}

// The number of one that no rank uses; how many there are where each is used by some.
int agree_on_idle(const Communicator& home, MPI_Comm comm) {
  int64_t idle[most_rails];
  const int count = for_twins(home, [&](const Twin& twin) { idle[twin.number] = !twin.taken && !twin.own->declines(); });
  if (count == 0 || !least_of(comm, idle, count)) return count;
  int number = 0;
  while (number < count && idle[number] == 0) ++number;
  return number;
}

void keep(const Communicator& home, Communicator* own, int number) {
  const std::lock_guard<std::mutex> lock(twins().mutex);
  for (Twin& twin : twins().all) {
    if (twin.own != nullptr) continue;
    twin = {&home, own, number, true};
    twins_made.fetch_add(1, std::memory_order_relaxed);
    return;
  }
}

}  // namespace

Communicator* take_twin(const Communicator& home, MPI_Comm comm) {
  const int number = agree_on_idle(home, comm);
  Communicator* found = nullptr;
  for_twins(home, [&](Twin& twin) {
    if (twin.number != number) return;
    twin.taken = true;
    found = twin.own;
  });
  if (found != nullptr) return found;
  Communicator* made = make_across_nodes(comm, home.size(), home.rank());
  const bool usable = made != nullptr && !made->declines();
  if (usable) return keep(home, made, number), made;
  delete made;
  return nullptr;
}

void return_twin(const Communicator* own) {
  const std::lock_guard<std::mutex> lock(twins().mutex);
  for (Twin& twin : twins().all)
    if (twin.own == own) twin.taken = false;
}

// One that some rank still uses is left as it is, and so are the others: which those are differs from rank to rank.
void free_twins(const Communicator& home, MPI_Comm comm) {
  int64_t idle = 1;
  const int count = for_twins(home, [&](const Twin& twin) {
    twin.own->set_freed();
    if (twin.taken) idle = 0;
  });
  if (count == 0) return;
  const bool agreed = least_of(comm, &idle, 1) && idle != 0;
  Communicator* idle_ones[most_rails] = {};
  for_twins(home, [&](Twin& twin) {
    idle_ones[twin.number] = twin.own;
    if (agreed)
      twin = {};
    else
      twin.home = nullptr;
  });
  for (int i = 0; agreed && i < count; ++i) idle_ones[i]->let_go();
}

}  // namespace stretto::shim
