// Nonblocking collectives: the blocking hook on a fiber, behind a request of MPI's own.
//
// The request is a generalized one, so MPI's functions know it, alone or among others. It is completed inside calls of MPI, by
// threads of the program: they see to what is outstanding (advance), and where MPI would wait for requests they test instead
// as long as there is something to see to.
#pragma once
#include <atomic>

#include "engine/communicator.hpp"
#include "shim/hooks.hpp"
#include "shim/mpi.hpp"
#include "shim/windows.hpp"

namespace stretto::shim {

// Operations whose completion MPI has not been told; failed ones count until the program knows. 0: nothing to see to.
extern constinit std::atomic<uint32_t> outstanding_operations;
inline bool anything_outstanding() {
  return __builtin_expect(outstanding_operations.load(std::memory_order_relaxed) != 0, 0);
}

// The requests of the operations that were started last, by any thread. MPI may have given one to another call since.
class RecentRequests {
 public:
  void add(MPI_Request request) {
    keys_[next_.fetch_add(1, std::memory_order_relaxed) % most].store(key_of(request), std::memory_order_relaxed);
  }
  bool has(MPI_Request request) const {
    for (const auto& key : keys_)
      if (key.load(std::memory_order_relaxed) == key_of(request)) return true;
    return false;
  }

 private:
  static constexpr uint32_t most = 16;
  std::atomic<uintptr_t> keys_[most] = {};
  std::atomic<uint32_t> next_{0};
};
extern constinit RecentRequests recent_requests;

using HookFunction = bool (*)(void* hook, Call& call);

// Starts what hook(call) does in one go. False: it declines, nothing has happened. True: *request stands for it.
bool start(HookFunction function, void* hook, MPI_Comm comm, MPI_Request* request, Call& call);

template <class Hook>
bool start(Hook hook, MPI_Comm comm, MPI_Request* request, Call& call) {
  return start([](void* self, Call& started) { return (*static_cast<Hook*>(self))(started); }, &hook, comm, request, call);
}

// Who stands behind a persistent request.
struct Prepared {
  MPI_Comm comm;               // of the program's call
  engine::Communicator* home;  // of that communicator
  engine::Communicator* own;   // what its operations run on
  // The operation is done, with `code`. True: it has failed, and remains outstanding until the program has been told.
  bool (*complete)(Prepared& self, int code);
};

// Starts what hook(call) does, for an active persistent request: prepared.complete() will be called.
void start_prepared(HookFunction function, void* hook, Prepared& prepared, Call& call);

// On an operation errors wait until it is completed: MPI's error handler is not called from here.
bool error_is_kept();

// Whether this thread has tried to cancel a request of a nonblocking collective since it last asked.
bool take_refused_cancel();

// Gets operations as far as they go, and completes the requests of those that are done. What the helper thread works on it is
// left to, unless the call `waits`, and so has nothing else to do, or there is little to do. False: none could go on.
bool advance(bool waits = false);

// In MPI_Finalize: completes them all and ends the helper thread.
void finish_operations();

// The words of a call that completes requests, and how functions of its language are called.
struct Completion {
  uint32_t index;  // of the function
  Word* words;
  uint32_t count;
  AnyFunction (*function)(uint32_t index);
  int (*call)(AnyFunction function, Word* words, uint32_t count);
  MPI_Request (*request)(Word array, int i);
  bool in_c;

  int number(uint32_t word) const { return in_c ? int(words[word]) : *reinterpret_cast<const int*>(words[word]); }
};
// Where there are more than six words there is room for most_words.
inline constexpr uint32_t most_words = 16;
Word forward_words(AnyFunction function, const Word* words, uint32_t count);

inline constexpr bool waits_for_requests(uint32_t index) {
  return index == number::Wait || index == number::Waitall || index == number::Waitany || index == number::Waitsome;
}
inline constexpr bool tests_requests(uint32_t index) {
  return index == number::Test || index == number::Testall || index == number::Testany || index == number::Testsome;
}

// The C functions that tell which of their requests have failed in statuses, of which there may be none.
inline constexpr bool completes_several(const Completion& c) {
  return c.in_c &&
         (c.index == number::Waitall || c.index == number::Testall || c.index == number::Waitsome || c.index == number::Testsome);
}

// Calls it while something is outstanding: what would wait tests. Returns MPI's code, or that of a collective that failed.
int complete(const Completion& completion);
// The same for C functions.
int complete_in_c(uint32_t index, Word* words, uint32_t count);

// The code for a call of MPI that has just completed requests, some of failed operations maybe, and gave `code`.
int error_to_tell(const Completion& completion, int code);
// Where the statuses of a call for several requests are, and how many it has set; null where they are ignored, or Fortran's.
MPI_Status* statuses_of(const Completion& completion, int* count);

// Calls that free a communicator, as the first of their words.
inline constexpr bool frees_communicator(uint32_t index) {
  return index == number::Comm_free || index == number::Comm_disconnect;
}
// While MPI frees a communicator in this thread: callbacks of the program's attributes may use it until the end, when Stretto's
// own attribute may be gone, or can no longer be set. A null handle: nothing.
class BeingFreed {
 public:
  explicit BeingFreed(MPI_Comm comm);
  ~BeingFreed();
  BeingFreed(const BeingFreed&) = delete;
  BeingFreed& operator=(const BeingFreed&) = delete;

  // Null: it is not being freed here.
  static BeingFreed* find(MPI_Comm comm);
  engine::Communicator* communicator() const { return communicator_; }  // null: it has had none yet
  void keep(engine::Communicator* made) {
    communicator_ = made;
    made_here_ = true;
  }

 private:
  MPI_Comm comm_;
  engine::Communicator* communicator_ = nullptr;
  bool made_here_ = false;
  BeingFreed* outer_ = nullptr;
};
// Before such a call, which is collective: where communicators of MPI's own go with it, its operations end first.
void end_operations_on(MPI_Comm comm);

inline constexpr bool makes_window(uint32_t index) {
  return index == number::Win_create || index == number::Win_create_c || index == number::Win_allocate ||
         index == number::Win_allocate_c || index == number::Win_allocate_shared || index == number::Win_allocate_shared_c ||
         index == number::Win_create_dynamic;
}
inline constexpr bool concerns_windows(uint32_t index) {
  return makes_window(index) || index == number::Win_free;
}
inline void note_window(uint32_t index) {
  if (makes_window(index)) open_windows.fetch_add(1, std::memory_order_relaxed);
  if (index == number::Win_free) open_windows.fetch_sub(1, std::memory_order_relaxed);
}
template <uint32_t index>
inline void count_windows(int code) {
  if constexpr (concerns_windows(index)) {
    if (code == MPI_SUCCESS) note_window(index);
  }
}

// Calls that make a communicator, as the last of their words: in a session, where it may be used after MPI_Finalize;
inline constexpr bool makes_of_session(uint32_t index) {
  return index == number::Comm_create_from_group || index == number::Intercomm_create_from_groups;
}
// of another one, which is the first word, but by no duplication, as attributes tell of those;
inline constexpr bool derives_communicator(uint32_t index) {
  return index == number::Comm_split || index == number::Comm_split_type || index == number::Comm_create ||
         index == number::Comm_create_group || index == number::Intercomm_create || index == number::Intercomm_merge ||
         index == number::Cart_create || index == number::Cart_sub || index == number::Graph_create ||
         index == number::Dist_graph_create || index == number::Dist_graph_create_adjacent;
}
// for which what collectives on it need is made there and then.
inline constexpr bool prepares_communicator(uint32_t index) {
  return index == number::Comm_dup || index == number::Comm_dup_with_info || index == number::Comm_split ||
         index == number::Comm_split_type || index == number::Comm_create;
}
inline constexpr bool makes_communicator(uint32_t index) {
  return makes_of_session(index) || derives_communicator(index) || prepares_communicator(index);
}
// Those of sessions are left to MPI.
bool is_of_session(MPI_Comm comm);
void made_of_session(MPI_Comm comm);
// Makes what collectives on it need, as waiting is allowed here and not in a nonblocking call. Collective.
void prepare_communicator(MPI_Comm comm);

}  // namespace stretto::shim
