// What Stretto knows of one communicator, and how a call on it runs.
#pragma once
#include <memory>

#include "collective/team.hpp"
#include "engine/job.hpp"
#include "select/selector.hpp"

namespace stretto::engine {

// What the engine needs of the MPI library, for the communicator that is being made.
struct Host {
  void (*progress)(void*) = nullptr;                               // drives outstanding communication
  bool (*broadcast)(void* comm, void* data, int bytes) = nullptr;  // from rank 0 to all ranks of `comm`
  bool (*all)(void* comm, bool own) = nullptr;                     // whether `own` is true on every rank of `comm`
};

// Decisions common to all communicators of the process.
struct Policy {
  const select::Rules* rules = nullptr;
  select::Travel travel = select::Travel::by_rules;
  const char* wait = "auto";
  const char* fault = "";
  Host host;
};

struct Outcome {
  int algorithm = -1;                            // index into collective::algorithms; -1: not run, MPI must
  select::Reason reason = select::Reason::none;  // then: why
  Status status;                                 // of what ran
};

class Communicator {
 public:
  // A communicator that declines everything, and says why.
  explicit Communicator(select::Reason reason) : reason_(reason) {}
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Collective over the communicator: `members` are the job's members of its ranks, in rank order. Rank 0 takes a board from the
  // pool and tells the others where it is. Null only without memory; else it may decline.
  static Communicator* create(Job& job, const Policy& policy, const int* members, int size, int rank, void* comm);

  select::Reason reason() const { return reason_; }
  int rank() const { return team_->rank; }  // of one that does not decline
  int size() const { return team_->size; }
  Outcome run(const collective::Request& request);

  // This rank has freed the communicator. The last one to do so returns its memory. Never waits.
  void leave();

 private:
  Communicator(Job& job, const Policy& policy, const int* members, int size, int rank, uint64_t board, collective::Board* shared);
  bool usable() const { return team_ && team_->usable() && members_; }
  const select::Selection& select(const collective::Request& request);
  uint64_t find_stage();
  bool attach_stage();
  Status prepare_stage();
  void prepare_direct();
  static bool alive(void* self, int rank);

  select::Reason reason_ = select::Reason::none;
  Job* job_ = nullptr;
  const Policy* policy_ = nullptr;
  uint64_t board_ = 0;  // offset
  enum { unknown, ready, absent } stage_ = unknown;
  bool direct_prepared_ = false;
  uint64_t calls_ = 0;
  std::unique_ptr<collective::Team> team_;
  std::unique_ptr<int[]> members_;
  struct {
    uint64_t bytes = UINT64_MAX;
    select::Selection selection;
  } last_[collective::kind_count];  // the newest selection per kind: programs repeat themselves
};

}  // namespace stretto::engine
