// What Stretto knows of one communicator, and how a call on it runs.
#pragma once
#include <memory>

#include "collective/hierarchy/cluster.hpp"
#include "collective/team.hpp"
#include "engine/job.hpp"
#include "select/selector.hpp"

namespace stretto::engine {

// What the engine needs of the MPI library, for the communicator that is being made.
struct Host {
  void (*progress)(void*) = nullptr;                                // drives outstanding communication
  bool (*broadcast)(void* comm, void* data, int bytes) = nullptr;   // from rank 0 to all ranks of `comm`
  bool (*all)(void* comm, bool own) = nullptr;                      // whether `own` is true on every rank of `comm`
  bool (*least)(void* comm, int64_t* values, int count) = nullptr;  // each the least that a rank of `comm` has
};

// Decisions common to all communicators of the process.
struct Policy {
  const select::Rules* rules = nullptr;
  select::Travel travel = select::Travel::by_rules;
  const char* wait = "auto";
  const char* fault = "";
  Host host;
};

// A communicator that spans nodes, as the host has found it.
struct Span {
  collective::Placement place;
  const int* members = nullptr;              // the job's members of its ranks on this node, in order
  std::unique_ptr<collective::Links> links;  // null where this rank has no rail; gone with the communicator
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

  select::Reason reason() const { return reason_; }
  bool spans_nodes() const { return across_ != nullptr; }
  bool declines() const { return reason_ != (across_ ? select::Reason::many_nodes : select::Reason::none); }
  int rank() const { return rank_; }  // of one that does not decline
  int size() const { return size_; }

  // Decides what is to be done with a request, of which the buffers are not looked at. The same on all ranks, so what is not
  // declined must be followed by execute() or abandon() on each of them.
  Outcome prepare(const collective::Request& request);
  Status execute(const collective::Request& request, int algorithm);
  // This rank cannot do its part. Its peers must not wait for it, nor take wrong numbers for right ones: for all of them every
  // further call on this communicator fails, as this one does for those who need this rank.
  void abandon();

  // Both steps.
  Outcome run(const collective::Request& request);

  // Room for this rank alone in the job's shared memory, where the system gives it none. Null: there is none either.
  void* borrow(size_t bytes, uint64_t* offset);
  void give_back(uint64_t offset, size_t bytes);

  // This rank has freed the communicator. The last one to do so returns its memory. Never waits.
  void leave();

 private:
  Communicator(Job& job, const Policy& policy, const int* members, int size, int rank, uint64_t board, collective::Board* shared);
  bool usable() const { return team_ && team_->usable() && members_; }
  const select::Selection& select(const collective::Request& request);
  int decide(const collective::Request& request, select::Reason* reason, Status* status);
  bool fits_into_cell(const collective::Request& request) const;
  uint64_t find_stage();
  bool attach_stage();
  Status prepare_stage();
  void prepare_direct();
  Status failed(const Status& status);
  friend class AcrossNodes;
  Status run_phase(const collective::Request& request);
  Outcome decide_across(const collective::Request& request);
  Status execute_across(const collective::Request& request, int row);
  static bool alive(void* self, int rank);

  select::Reason reason_ = select::Reason::none;  // many_nodes where across_ does it
  int rank_ = 0, size_ = 1;
  Job* job_ = nullptr;
  const Policy* policy_ = nullptr;
  uint64_t board_ = 0;  // offset
  enum { unknown, ready, absent } stage_ = unknown;
  bool direct_prepared_ = false;
  bool abandoned_ = false;
  uint64_t calls_ = 0;
  std::unique_ptr<collective::Team> team_;
  std::unique_ptr<int[]> members_;
  std::unique_ptr<AcrossNodes> across_;
  struct {
    uint64_t bytes = UINT64_MAX;
    select::Selection selection;
  } last_[collective::kind_count];  // the newest selection per kind: programs repeat themselves
};

}  // namespace stretto::engine
