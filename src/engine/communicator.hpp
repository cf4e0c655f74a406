// What Stretto knows of one communicator, and how a call on it runs.
#pragma once
#include <memory>

#include "collective/hierarchy/cluster.hpp"
#include "collective/team.hpp"
#include "engine/job.hpp"
#include "engine/operation.hpp"
#include "engine/progress.hpp"
#include "engine/turns.hpp"
#include "select/selector.hpp"

namespace stretto::engine {

// What the engine needs of the MPI library, for the communicator that is being made.
struct Host {
  void (*progress)(void*) = nullptr;                                // drives outstanding communication
  bool (*broadcast)(void* comm, void* data, int bytes) = nullptr;   // from rank 0 to all ranks of `comm`
  bool (*all)(void* comm, bool own) = nullptr;                      // whether `own` is true on every rank of `comm`
  bool (*least)(void* comm, int64_t* values, int count) = nullptr;  // each the least that a rank of `comm` has
  bool any_thread = false;                                          // the library may be called by any thread at any time
  const std::atomic<int32_t>* windows = nullptr;                    // collective::WaitHooks
};

// Decisions common to all communicators of the process.
struct Policy {
  const select::Rules* rules = nullptr;
  select::Travel travel = select::Travel::by_rules;
  select::Library library = select::Library::other;
  const char* fault = "";
  int readers = 0;             // most that read one buffer at a time by copying; 0: any number
  bool any_order = false;      // reductions may combine by domain first
  bool arrival_order = false;  // STRETTO_ORDER=arrival
  bool offload = false;        // STRETTO_OFFLOAD
  Host host;
  Progress* progress = nullptr;  // of nonblocking operations
};

// A communicator that spans nodes, as the host has found it.
struct Span {
  collective::Placement place;
  const int* members = nullptr;              // the job's members of its ranks on this node, in order
  std::unique_ptr<collective::Links> links;  // gone with the communicator
};

class AcrossNodes;

struct Outcome {
  int algorithm = -1;                            // index into collective::algorithms; -1: not run, MPI must
  select::Reason reason = select::Reason::none;  // then: why
  Status status;                                 // of what ran
};

class Communicator {
 public:
  // A communicator that declines everything, and says why.
  explicit Communicator(select::Reason reason);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Collective over the communicator: `members` are the job's members of its ranks, in rank order. Rank 0 takes a board from the
  // pool and tells the others where it is. Null only without memory; else it may decline.
  static Communicator* create(Job& job, const Policy& policy, const int* members, int size, int rank, void* comm);

  // The same for one that spans nodes. `policy` has a host whose broadcast() and all() are collective over all of `comm`, the
  // former from the first rank of each node to its node, with one answer for all.
  static Communicator* create_across(Job& job, const Policy& policy, Span& span, void* comm);

  // One that spans nodes, before its calls have been worth a state: until create_across() has made it one, they are MPI's.
  static Communicator* put_off(int size, int rank);
  bool is_put_off() const { return put_off_; }
  bool never_takes_part() const { return declines() && !put_off_; }
  // Counts a call that begins, and says how many there have been: the same on all ranks, whatever comes of the call.
  uint64_t count_call() { return ++put_off_calls_; }
  // Takes the state of `made`, which is empty then. Null: there was no memory.
  void take(std::unique_ptr<Communicator> made);

  // A blocking call begins whose blocks vary: over nodes the ranks now and then agree on how large the former ones were.
  void agree_on_size(collective::Kind kind);

  // Another one of the same ranks, for a persistent collective: those may be started in any order. Collective; as create().
  Communicator* twin(void* comm) const;

  select::Reason reason() const { return reason_.load(std::memory_order_relaxed); }
  bool spans_nodes() const { return across_ != nullptr || put_off_; }
  bool declines() const { return reason() != (across_ ? select::Reason::many_nodes : select::Reason::none); }
  bool starts_operations() const;     // else nonblocking ones are left to MPI
  int rank() const { return rank_; }  // of one that does not decline
  int size() const { return size_; }

  // Decides what is to be done with a request, of which the buffers are not looked at. The same on all ranks, so what is not
  // declined must be followed by execute() or abandon() on each of them.
  Outcome prepare(const collective::Request& request);
  Status execute(const collective::Request& request, int algorithm);
  // This rank cannot do its part. Its peers must not wait for it, nor take wrong numbers for right ones: for all of them every
  // further call on this communicator fails, as this one does for those who need this rank.
  void abandon(uint32_t why = 0);

  // The program has revoked it, here or elsewhere: what is under way on this node ends with Code::revoked, and this rank declines
  // from now on. Waits for nobody; the other nodes hear of it by MPI.
  void revoke();

  // From now on it declines every other `calls` calls, for MPI to take its turn. The same on all ranks.
  void take_turns_with_mpi(uint32_t calls) { turns_ = Turns(calls, uint32_t(size_)); }

  // Whether MPI does such a request whatever else may be said of it. (Where several nodes take part it is not known yet.)
  bool leaves_to_mpi(const collective::Request& request) { return !spans_nodes() && select(request).algorithm < 0; }

  // Both steps.
  //
  // All three may be called on a nonblocking operation (Operation::current()), where prepare() waits for nobody and execute()
  // takes its turn behind the operations that were started before. A blocking call lets those end first.
  Outcome run(const collective::Request& request);

  // Room for this rank alone in the job's shared memory, where the system gives it none. Null: there is none either.
  void* borrow(size_t bytes, uint64_t* offset);
  void give_back(uint64_t offset, size_t bytes);

  // Returns when no operation is under way any more. In a call that is collective and may wait.
  void end_operations() {
    if (__builtin_expect(queue_.length.load(std::memory_order_acquire) != 0, 0)) policy_->progress->drain(queue_);
  }

  // It is deleted when the program has freed it and no operation is left: each let_go() ends one hold(), the first is the
  // maker's.
  void hold() { holds_.fetch_add(1, std::memory_order_relaxed); }
  void let_go();
  // Arrivals are compared as far as the others have come. For the end.
  void close_arrivals() {
    if (team_) team_->arrivals.close();
  }
  void set_freed() { freed_.store(true, std::memory_order_relaxed); }
  bool freed() const { return freed_.load(std::memory_order_relaxed); }

 private:
  Communicator(Job& job, const Policy& policy, const int* members, int size, int rank, uint64_t board, collective::Board* shared);
  // This rank has done with it. The last rank to leave returns the memory. Never waits.
  void leave();
  Outcome rehearse(Operation& operation, const collective::Request& request);
  Outcome prepare_started(Operation& operation, const collective::Request& request);
  Outcome run_started(Operation& operation, const collective::Request& request);
  Status execute_started(Operation& operation, const collective::Request& request, int algorithm);
  Status run_in_turn(const collective::Request& request, int algorithm, int unmapped);
  void settle(collective::Team& team, int size);
  void look_around(bool noted_later);
  bool usable() const { return team_ && team_->usable() && members_; }
  const select::Selection& select(const collective::Request& request);
  const select::Selection& select_first(const collective::Request& request);
  bool is_turn_of_mpi() { return __builtin_expect(turns_.are_taken(), 0) && turns_.is_of_mpi(); }
  int decide(const collective::Request& request, select::Reason* reason, Status* status, bool rehearses = false);
  bool fits_into_cell(const collective::Request& request) const;
  uint64_t find_stage();
  bool attach_stage();
  void release_stage(const collective::Board& shared);
  Status prepare_stage();
  Status settle_stage();
  void settle_wanted_stage(Status* status);
  void prepare_direct(const collective::Algorithm& algorithm) {
    if (algorithm.direct != collective::Direct::never && !direct_prepared_) reach_directly();
  }
  void reach_directly();
  Status failed(const Status& status);
  int dead_rank() const;
  int tell_lost(int rank);
  void tell_revoked();
  friend class AcrossNodes;
  Status run_phase(const collective::Request& request);
  bool fits_across(const collective::Request& request, int row) const;
  bool scattered(const collective::Request& request) const;
  select::Facts facts_across(collective::Kind kind, uint64_t bytes, bool scattered) const;
  Outcome choose_across(const collective::Request& request, uint64_t bytes);
  Outcome decide_across(const collective::Request& request);
  Outcome prepare_started_across(Operation& operation, const collective::Request& request);
  Status execute_started_across(Operation& operation, const collective::Request& request, int row);
  Status execute_across(const collective::Request& request, int row);
  static bool alive(void* self, int rank);
  void begin(const collective::Request& request) { doing_ = {doing_.number + 1, request.bytes() << 8 | uint64_t(request.kind)}; }
  bool disagrees();

  std::atomic<select::Reason> reason_{select::Reason::none};  // many_nodes where across_ does it
  int rank_ = 0, size_ = 1;
  Job* job_ = nullptr;
  const Policy* policy_ = nullptr;
  const select::Rules* rules_ = nullptr;  // the policy's when it was made
  uint64_t board_ = 0;                    // offset
  enum StageState : uint8_t { unknown, ready, absent };
  StageState stage_ = unknown;
  StageState known_stage_ = unknown;  // as all ranks knew it at their newest blocking call
  bool stage_wanted_ = false;         // an operation was declined without: equal on all ranks, the next blocking call sees to it
  bool direct_prepared_ = false;
  // How many more calls of those for which there are such rules are its first ones: until so many were made, or so many bytes
  // sent, as make it pay to touch the cells' memory and to try what is fastest.
  uint32_t fresh_calls_ = 64;
  static constexpr uint64_t fresh_bytes = 32 << 20;
  uint64_t bytes_while_fresh_ = 0;
  std::atomic<bool> abandoned_{false};
  // Small calls drive MPI, and are looked at by the arrival watch, once in so many: a prime, as a program's loop has a period
  // too.
  static constexpr uint32_t calls_between_looks = 61;
  uint32_t calls_to_look_ = calls_between_looks;
  Turns turns_;
  bool put_off_ = false;
  uint64_t put_off_calls_ = 0;
  int lost_ = collective::any_rank;  // with Reason::peer_lost: who, if that is known
  std::atomic<uint32_t> holds_{1};
  std::atomic<bool> freed_{false};
  Queue queue_;
  // The newest call that was begun, by its number; likewise. Calls of a right program are alike on all ranks.
  struct {
    uint64_t number = 0, with = 0;
  } doing_;
  std::unique_ptr<collective::Team> team_;
  std::unique_ptr<int[]> members_;
  std::unique_ptr<AcrossNodes> across_;
  struct {
    uint64_t bytes = UINT64_MAX;
    bool scattered = false;
    select::Selection selection, first;  // first: while it is fresh
  } last_[collective::kind_count];       // the newest selection per kind: programs repeat themselves
};

}  // namespace stretto::engine
