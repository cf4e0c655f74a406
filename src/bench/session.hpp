// One run of the benchmark on all ranks: sides, sizes, patterns, in the order in which they are measured.
#pragma once
#include "bench/machine.hpp"
#include "bench/options.hpp"
#include "bench/output.hpp"

namespace stretto::bench {

class Session {
 public:
  Session(const Mpi& mpi, Options& options) : mpi_(mpi), options_(options) {}

  // Null, or what is wrong. Collective.
  const char* open();
  const char* run();
  void close();
  int rank() const { return rank_; }

 private:
  const char* run_collective(const Collective& c);
  const char* run_size(const Collective& c, size_t bytes);
  const char* run_arrival(const Collective& c, Data& data, size_t bytes);
  const char* run_spread(const Collective& c, Data& data, size_t bytes, double spread, double unit_us);
  int library_side() const;
  bool wants(const char* name, size_t length) const;
  const char* add_candidates(const Collective& c);
  bool add_candidate(const char* kind, size_t kind_length, const char* algorithm, size_t length, size_t most_bytes);
  void drop_candidates();
  int sides_for(const Collective& c, size_t bytes, Side* sides) const;
  Plan plan_for(const Side* sides, int count) const;
  Mode mode_for(size_t bytes) const;
  double floor_us(const Collective& c, size_t bytes);
  double bound_us(const Collective& c, size_t bytes, const Plan& plan, const Point& point);
  const char* finish(const Described& described, const Plan& plan, const Point& point);
  bool fits(const Collective& c, size_t bytes) const;
  void describe_setup();
  bool find_cores(platform::CpuSet* cpus);

  const Mpi& mpi_;
  Options& options_;  // of its pattern the nodes are filled in
  Preload preload_{};
  Nodes nodes_;
  int rank_ = 0, ranks_ = 1, cores_ = 1;
  platform::CpuSet cpus_;  // of all ranks of this node
  bool crowded_ = false;
  bool first_size_ = true;  // of a collective: new communicators do their first calls in another way
  const char* clock_ = "";
  StartLine line_;
  Machine machine_{mpi_, line_};
  FILE* json_ = nullptr;
  double hop_ns_ = 0;
  struct Candidate {
    char name[48];
    size_t most_bytes;
    MPI_Comm comm;
  };
  Candidate candidates_[most_sides];
  int candidate_count_ = 0;
};

}  // namespace stretto::bench
