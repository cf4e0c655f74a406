#include "shim/persistent.hpp"

#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "base/clock.hpp"
#include "shim/context.hpp"
#include "shim/hooks/entry.hpp"
#include "shim/own_comm.hpp"
#include "shim/twins.hpp"

namespace stretto::shim {

constinit std::atomic<uint32_t> persistent_requests{0};

namespace {

// Each has memory of the job's for itself. More are left to MPI.
constexpr int most = 64;

struct Persistent : Prepared {
  explicit Persistent(Kind which) : Prepared{}, kind(which) {}
  ~Persistent() {
    if (twin) {
      return_twin(own);
      return;
    }
    if (own) own->let_go();
    if (home) home->let_go();
  }
  bool twin = false;  // it runs on one of shim/twins.hpp, which is its home too
  const Kind kind;
  WordsHook hook = nullptr;
  KeptCall call;
  MPI_Request request{};
  int place = -1;             // in the table; the tag of its messages
  int error = MPI_SUCCESS;    // of an operation that has failed, until the program is told
  std::atomic<int> users{1};  // the program, and each operation
};

// What the program has, by place.
class Table {
 public:
  bool enter(Persistent* persistent) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (int i = 0; i < most; ++i) {
      if (places_[i]) continue;
      places_[i] = persistent;
      persistent->place = i;
      return true;
    }
    return false;
  }
  void leave(const Persistent* persistent) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (persistent->place >= 0) places_[persistent->place] = nullptr;
  }
  // From now on find() knows it, or does not any more. Returns an error that nobody has been told.
  int list(Persistent* persistent, bool listed) {
    const std::lock_guard<std::mutex> lock(mutex_);
    listed_[persistent->place] = listed;
    persistent_requests.fetch_add(listed ? 1u : uint32_t(-1), std::memory_order_relaxed);
    return std::exchange(persistent->error, MPI_SUCCESS);
  }
  template <class Visit>
  void for_each(Visit visit) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (Persistent* persistent : places_)
      if (persistent) visit(*persistent);
  }
  Persistent* find(MPI_Request request) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return find_locked(request);
  }
  // False: nobody asks for it any more, or one is kept already.
  bool keep_error(Persistent* persistent, int code) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return listed_[persistent->place] && std::exchange(persistent->error, code) == MPI_SUCCESS;
  }
  int take_error(MPI_Request request) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Persistent* persistent = find_locked(request);
    return persistent ? std::exchange(persistent->error, MPI_SUCCESS) : MPI_SUCCESS;
  }

 private:
  Persistent* find_locked(MPI_Request request) {
    for (int i = 0; i < most; ++i)
      if (listed_[i] && places_[i]->request == request) return places_[i];
    return nullptr;
  }

  std::mutex mutex_;
  Persistent* places_[most] = {};
  bool listed_[most] = {};
};

Table& table() {
  alignas(Table) static char storage[sizeof(Table)];
  static Table* made = new (storage) Table;
  return *made;
}

// What completes requests: nothing, on own_comm().
char nothing = 0;

void let_go(Persistent* persistent) {
  if (persistent->users.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  table().leave(persistent);
  delete persistent;
}

// MPI must not learn of an error: it might call an error handler of its own choice.
bool complete_request(Prepared& prepared, int code) {
  auto& persistent = static_cast<Persistent&>(prepared);
  const bool kept = code != MPI_SUCCESS && table().keep_error(&persistent, code);
  mpi().Send(&nothing, 0, byte_type(), 0, persistent.place, own_comm());
  let_go(&persistent);
  return kept;
}

// One operation less that somebody must be told of.
void discount(int error) {
  if (error != MPI_SUCCESS) outstanding_operations.fetch_sub(1, std::memory_order_relaxed);
}

bool run(void* hook, Call& call) {
  const auto* persistent = static_cast<const Persistent*>(hook);
  return persistent->hook(persistent->call.words(), call);
}

// What this rank alone may lack.
bool ready_here(Persistent* persistent, const Plan& plan, const Word* words) {
  if (persistent == nullptr || own_comm() == comm_null() || !table().enter(persistent)) return false;
  return persistent->call.keep(plan, words, persistent->home->rank(), persistent->home->size());
}

// Whether the rules give it to an algorithm of Stretto's on `communicator`, or there is nothing to do in it. On all ranks alike.
bool rehearse(Persistent& persistent, engine::Communicator* communicator) {
  struct Trial {
    Persistent& persistent;
    bool empty;
  } trial{persistent, false};
  engine::Operation operation(context().progress);
  operation.own = communicator;
  operation.rehearse(
      [](void* argument) {
        auto& tried = *static_cast<Trial*>(argument);
        Call call;
        tried.empty = run(&tried.persistent, call);
      },
      &trial);
  return trial.empty || operation.algorithm >= 0;
}

bool make_request(Persistent& persistent) {
  return mpi().Recv_init(&nothing, 0, byte_type(), 0, persistent.place, own_comm(), &persistent.request) == MPI_SUCCESS;
}

// Whether it will run here, and on what. Within a node the choice needs what only its own communicator finds out; over nodes all
// is known, and communicators are few.
bool choose(Persistent& persistent, MPI_Comm comm) {
  const engine::Host& host = context().policy.host;
  engine::Communicator* home = persistent.home;
  if (home->spans_nodes()) {
    if (!host.all(&comm, rehearse(persistent, home))) return false;
    engine::Communicator* own = take_twin(*home, comm);
    if (own == nullptr) return false;
    persistent.home = persistent.own = own;
    persistent.twin = true;
    home->let_go();
    return true;
  }
  persistent.own = home->twin(&comm);
  const bool has_own = persistent.own != nullptr && persistent.own->reason() == Reason::none;
  return host.all(&comm, has_own) && rehearse(persistent, persistent.own);
}

// Collective. All ranks take the same steps, and agree before each that could leave some waiting.
bool make(Persistent* persistent, const Plan& plan, const Word* words, MPI_Comm comm) {
  const engine::Host& host = context().policy.host;
  if (!host.all(&comm, ready_here(persistent, plan, words)) || persistent == nullptr) return false;
  const bool chosen = choose(*persistent, comm), requested = chosen && make_request(*persistent);
  if (host.all(&comm, requested)) return true;
  if (requested) mpi().Request_free(&persistent->request);
  return false;
}

}  // namespace

bool prepare(const Plan& plan, WordsHook hook, const Word* words, MPI_Comm comm, MPI_Request* request) {
  Context& c = context();
  if (!c.active.load(std::memory_order_acquire) || !c.starts || request == nullptr) return false;
  engine::Communicator* home = find(comm);
  const engine::Host& host = c.policy.host;
  if (home != nullptr && home->is_put_off() && host.all(&comm, host.any_thread)) make_put_off(*home, comm);
  if (home == nullptr || home->declines() || !home->starts_operations()) return false;
  auto* persistent = new (std::nothrow) Persistent(plan.kind);
  if (persistent != nullptr) {
    home->hold();
    persistent->home = home;
    persistent->comm = comm;
    persistent->hook = hook;
    persistent->complete = complete_request;
  }
  if (!make(persistent, plan, words, comm)) {
    if (persistent != nullptr) let_go(persistent);
    return false;
  }
  *request = persistent->request;
  table().list(persistent, true);
  return true;  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): the table has it
}

// MPI may give the program another handle: Open MPI does where a buffered send is started anew before its data has gone.
int start_any(MPI_Request* request) {
  Persistent* persistent = table().find(*request);
  if (persistent == nullptr) return mpi().Start(request);
  if (int code = mpi().Start(request)) return code;
  persistent->users.fetch_add(1, std::memory_order_relaxed);
  const Kind kind = persistent->kind;
  const uint64_t begin = ticks();
  Call call;
  start_prepared(run, persistent, *persistent, call);
  recent_requests.add(*request);
  trace::count_accelerated(uint32_t(kind), call.algorithm, ticks() - begin, call.bytes);
  return MPI_SUCCESS;
}

void forget_persistent(MPI_Request request) {
  Persistent* persistent = table().find(request);
  if (persistent == nullptr) return;
  discount(table().list(persistent, false));
  let_go(persistent);
}

int tell_error(MPI_Request request) {
  const int error = table().take_error(request);
  discount(error);
  return error;
}

void revoke_persistent(MPI_Comm comm) {
  table().for_each([&](Persistent& persistent) {
    if (persistent.comm == comm && persistent.own != nullptr && !persistent.home->freed()) persistent.own->revoke();
  });
}

// MPI says so of the null request, to whom it says it of all that cannot be cancelled.
int cancel_any(MPI_Request* request) {
  const bool ours = request != nullptr && table().find(*request) != nullptr;
  if (!ours) {
    const int code = mpi().Cancel(request);
    if (!take_refused_cancel()) return code;
  }
  MPI_Request none = named<MPI_Request>("MPI_REQUEST_NULL");
  return mpi().Cancel(&none);
}

int forward_persistent(uint32_t index, const Word* words) {
  const bool several = index == number::Startall;
  auto* requests = reinterpret_cast<MPI_Request*>(words[several ? 1 : 0]);
  const int count = several ? int(words[0]) : 1;
  if (index == number::Request_free) {
    if (requests != nullptr) forget_persistent(*requests);
    return mpi().Request_free(requests);
  }
  if (requests == nullptr || count < 0) return several ? mpi().Startall(count, requests) : mpi().Start(requests);
  for (int i = 0; i < count; ++i)
    if (int code = start_any(&requests[i])) return code;
  return MPI_SUCCESS;
}

}  // namespace stretto::shim
