#include "shim/nonblocking.hpp"

#include <mutex>
#include <new>
#include <utility>

#include "base/log.hpp"
#include "shim/context.hpp"
#include "shim/fault_tolerance.hpp"
#include "shim/nodes.hpp"
#include "shim/twins.hpp"

namespace stretto::shim {

constinit std::atomic<uint32_t> outstanding_operations{0};
constinit RecentRequests recent_requests;

namespace {

// One operation. Its memory and stack are used again when both Stretto and MPI have done with it.
struct Started final : engine::Operation {
  explicit Started(engine::Progress& progress) : Operation(progress) {}

  HookFunction function = nullptr;
  void* hook = nullptr;
  Call call;
  Prepared* prepared = nullptr;  // of a persistent request; null: the request is a generalized one
  bool done = false;             // else declined
  MPI_Comm comm{};
  MPI_Request request{};
  bool has_request = false;
  std::atomic<bool> over{false};  // MPI has been told that it is complete
  std::atomic<bool> gone{false};  // the program has freed the request
  std::atomic<bool> told{false};  // of a failed one: the program knows
  std::atomic<int> users{0};
  Started* next = nullptr;

  static void run(void* self) {
    auto* started = static_cast<Started*>(self);
    started->done = started->function(started->hook, started->call);
  }
};

// Idle ones, with their stacks. One is held back for when there is no memory: MPI cannot do what other ranks start here.
class Idle {
 public:
  explicit Idle(engine::Progress& progress) : last_(progress) {}

  Started* take(engine::Progress& progress) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (Started* first = first_) {
        first_ = first->next;
        --count_;
        return first;
      }
    }
    if (auto* made = new (std::nothrow) Started(progress)) return made;
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(last_taken_, true) ? nullptr : &last_;
  }
  void keep(Started* started) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (started == &last_) {
        last_taken_ = false;
        return;
      }
      if (count_ < most) {
        started->next = first_;
        first_ = started;
        ++count_;
        return;
      }
    }
    delete started;
  }

 private:
  static constexpr uint32_t most = 64;
  std::mutex mutex_;
  Started* first_ = nullptr;
  uint32_t count_ = 0;
  Started last_;
  bool last_taken_ = false;
};

Idle& idle() {
  alignas(Idle) static char storage[sizeof(Idle)];
  static Idle* made = new (storage) Idle(context().progress);
  return *made;
}

// The error of operations whose completion this thread has just seen.
__attribute__((tls_model("initial-exec"))) constinit thread_local int seen_error = MPI_SUCCESS;

// A request that this thread has just tried to cancel cannot be.
__attribute__((tls_model("initial-exec"))) constinit thread_local bool refused_cancel = false;

constexpr size_t for_helper_from = 16 << 10;

constexpr int mark_of_failure = MPI_UNDEFINED;  // as the source in a status

void release(Started* started) {
  if (started->users.fetch_sub(1, std::memory_order_acq_rel) == 1) idle().keep(started);
}

void now_told(Started* started) {
  if (started->call.code == MPI_SUCCESS || started->told.exchange(true)) return;
  outstanding_operations.fetch_sub(1, std::memory_order_relaxed);
}

// MPI asks what it shall tell of a completed one. It must not learn of the error: it would call an error handler of its own
// choice.
int query(void* self, MPI_Status* status) {
  auto* started = static_cast<Started*>(self);
  mpi().Status_set_elements(status, byte_type(), 0);
  mpi().Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_ANY_SOURCE;
  status->MPI_TAG = MPI_ANY_TAG;
  status->MPI_ERROR = MPI_SUCCESS;
  if (started->call.code != MPI_SUCCESS) {
    seen_error = started->call.code;
    status->MPI_SOURCE = mark_of_failure;
  }
  return MPI_SUCCESS;
}

// The request is no more; of one that was freed it may not be complete yet.
int freed(void* self) {
  auto* started = static_cast<Started*>(self);
  started->gone = true;
  if (started->over) now_told(started);
  release(started);
  return MPI_SUCCESS;
}

// MPI must not learn of this error either.
int cancel(void*, int) {
  refused_cancel = true;
  return MPI_SUCCESS;
}

// The algorithm is done and the hook has returned.
void tell_mpi(Started* started) {
  const bool failed = started->call.code != MPI_SUCCESS;
  if (failed && is_revocation(started->call.code)) learn_of_revocation(started->comm);
  if (failed) mpi().Comm_call_errhandler(started->comm, started->call.code);
  if (started->prepared) {
    const bool kept = started->prepared->complete(*started->prepared, started->call.code);
    if (!kept) outstanding_operations.fetch_sub(1, std::memory_order_relaxed);
    return release(started);
  }
  if (started->has_request) mpi().Grequest_complete(started->request);
  if (!failed) outstanding_operations.fetch_sub(1, std::memory_order_relaxed);
  started->over = true;
  if (started->gone) now_told(started);
  release(started);
}

void finish(Started* started) {
  if (started->has_fiber() && started->stage() == engine::Operation::Stage::executed) started->resume();
  engine::Communicator* communicator = started->communicator();
  const engine::Communicator* home = started->prepared ? started->prepared->home : communicator;
  if (home && home->freed()) started->comm = comm_world();
  tell_mpi(started);
  if (communicator) communicator->let_go();
}

bool finish_executed() {
  bool any = false;
  while (engine::Operation* operation = context().progress.take_executed()) {
    finish(static_cast<Started*>(operation));
    any = true;
  }
  return any;
}

// Behind its request, as far as it goes now.
bool carry_on(Started* started) {
  Context& c = context();
  outstanding_operations.fetch_add(1, std::memory_order_relaxed);
  if (started->stage() != engine::Operation::Stage::queued) {
    finish(started);
    return true;
  }
  // The thread has what takes long from the beginning: else who finds all its peers there would do much of it here.
  const bool is_for_helper = c.helper.is_eager() && started->bytes >= for_helper_from;
  c.progress.enqueue(*started);
  if (is_for_helper) c.helper.wake();
  advance(!is_for_helper);
  if (c.progress.queued().load(std::memory_order_seq_cst) != 0) c.helper.wake();
  return true;
}

// As far as it goes before its turn.
void begin(Started* started, HookFunction function, void* hook, MPI_Comm comm, Prepared* prepared) {
  started->function = function;
  started->hook = hook;
  started->call = {};
  started->comm = comm;
  started->prepared = prepared;
  started->own = prepared ? prepared->own : nullptr;
  started->has_request = started->over = started->gone = started->told = false;
  started->users.store(prepared ? 1 : 2, std::memory_order_relaxed);
  started->start(Started::run, started);
}

}  // namespace

bool take_refused_cancel() {
  return std::exchange(refused_cancel, false);
}

bool error_is_kept() {
  return engine::Operation::current() != nullptr;
}

bool start(HookFunction function, void* hook, MPI_Comm comm, MPI_Request* request, Call& call) {
  Context& c = context();
  call.reason = uint32_t(select::Reason::not_joined);
  if (!c.active.load(std::memory_order_acquire)) return false;
  call.reason = uint32_t(select::Reason::other_tool);
  if (!c.starts) return false;
  call.reason = uint32_t(select::Reason::invalid_arguments);
  if (request == nullptr) return false;
  Started* started = idle().take(c.progress);
  if (started == nullptr) {
    log(Level::error, "no memory for a nonblocking collective that other ranks start: ending the job");
    return end_job(comm_world(), call.code = MPI_ERR_NO_MEM), true;
  }
  begin(started, function, hook, comm, nullptr);
  const bool ended = started->stage() == engine::Operation::Stage::ended;
  call = started->call;
  if (started->communicator()) call.algorithm = uint32_t(started->algorithm);
  if (ended && !started->done) return idle().keep(started), false;
  call.code = mpi().Grequest_start(query, freed, cancel, started, &started->request);
  started->has_request = call.code == MPI_SUCCESS;
  if (started->has_request) {
    *request = started->request;
    recent_requests.add(*request);
  } else {  // it is done all the same: others take part in it
    log_once(Level::error, "MPI gives no request for a nonblocking collective");
    predefined("MPI_REQUEST_NULL", request);
    started->gone = true;
    started->users.store(1, std::memory_order_relaxed);
  }
  return carry_on(started);
}

void start_prepared(HookFunction function, void* hook, Prepared& prepared, Call& call) {
  Started* started = idle().take(context().progress);
  if (started == nullptr) {
    if (prepared.own->spans_nodes()) return end_job(comm_world(), call.code = MPI_ERR_NO_MEM);
    prepared.own->abandon();
    if (!prepared.home->freed()) mpi().Comm_call_errhandler(prepared.comm, MPI_ERR_NO_MEM);
    outstanding_operations.fetch_add(1, std::memory_order_relaxed);
    if (!prepared.complete(prepared, MPI_ERR_NO_MEM)) outstanding_operations.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
  begin(started, function, hook, prepared.comm, &prepared);
  const bool declined = started->stage() == engine::Operation::Stage::ended && !started->done;
  if (declined) {  // its peers are lost
    const char* name;
    const bool revoked = prepared.own->reason() == select::Reason::revoked;
    started->call.code = revoked ? error_of_revocation() : error_of_death(&name);
  }
  call = started->call;
  if (started->communicator()) call.algorithm = uint32_t(started->algorithm);
  carry_on(started);
}

MPI_Status* statuses_of(const Completion& c, int* count) {
  if (!completes_several(c)) return nullptr;
  const bool some = c.index == number::Waitsome || c.index == number::Testsome;
  *count = !some ? int(c.words[0]) : *reinterpret_cast<const int*>(c.words[2]);
  auto* statuses = reinterpret_cast<MPI_Status*>(c.words[some ? 4 : c.index == number::Waitall ? 2 : 3]);
  return statuses == MPI_STATUSES_IGNORE ? nullptr : statuses;
}

int error_to_tell(const Completion& c, int code) {
  const int error = seen_error;
  seen_error = MPI_SUCCESS;
  if (error == MPI_SUCCESS) return code;
  int count;
  MPI_Status* statuses = statuses_of(c, &count);
  if (statuses == nullptr && completes_several(c)) return MPI_ERR_IN_STATUS;
  if (statuses == nullptr) {
    auto* status = reinterpret_cast<MPI_Status*>(c.words[c.count - 1]);
    if (c.in_c && status != MPI_STATUS_IGNORE && status != nullptr && status->MPI_SOURCE == mark_of_failure)
      status->MPI_SOURCE = MPI_ANY_SOURCE;
    return error;
  }
  for (int i = 0; i < count; ++i) {
    const bool failed = statuses[i].MPI_SOURCE == mark_of_failure;
    if (failed || code == MPI_SUCCESS) statuses[i].MPI_ERROR = failed ? error : MPI_SUCCESS;
    if (failed) statuses[i].MPI_SOURCE = MPI_ANY_SOURCE;
  }
  return MPI_ERR_IN_STATUS;
}

bool advance(bool waits) {
  Context& c = context();
  seen_error = MPI_SUCCESS;  // of MPI_Request_get_status, which completes nothing
  c.helper.relieve();
  const bool moved = (waits || !c.helper.works()) && c.progress.drive();
  return finish_executed() || moved;
}

void end_operations_on(MPI_Comm comm) {
  Context& c = context();
  engine::Communicator* communicator = nullptr;
  int found = 0;
  if (comm == comm_null() || mpi().Comm_get_attr(comm, c.keyval, &communicator, &found) != MPI_SUCCESS) return;
  if (!found || !communicator->spans_nodes()) return;
  communicator->end_operations();
  finish_executed();
  free_twins(*communicator, comm);
}

void finish_operations() {
  Context& c = context();
  for (uint32_t round = 0; c.progress.queued().load() != 0; ++round) {
    if (advance(true)) round = 0;
    if (c.policy.host.progress && (round % 64 == 63 || c.progress.is_contended())) c.policy.host.progress(nullptr);
    c.progress.rest(round);
  }
  finish_executed();
  c.helper.stop();
}

}  // namespace stretto::shim
