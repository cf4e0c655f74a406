#include "engine/across_nodes.hpp"

#include <algorithm>
#include <iterator>
#include <new>

#include "trace/stopwatch.hpp"

namespace stretto::engine {

using collective::Request;
using select::Reason;

// All ranks agree afterwards whether everybody could.
size_t AcrossNodes::prepare_node() {
  if (!node_->attach_stage()) return 0;
  node_->stage_ = Communicator::ready;
  return std::min(node_->team_->staged->cell_bytes(), cluster_.block_most() / (2 * collective::Links::slots));
}

Status AcrossNodes::run_in_node(void* self, const Request& request) {
  return static_cast<AcrossNodes*>(self)->node_->run_phase(request);
}

Communicator* Communicator::create_across(Job& job, const Policy& policy, Span& span, void* comm) {
  const int rank = span.place.rank, size = span.place.size;
  Communicator* const node = create(job, policy, span.members, span.place.local_size, span.place.local, comm);
  std::unique_ptr<AcrossNodes> across;  // owns the node's
  if (node && node->reason() == Reason::none)
    across.reset(new (std::nothrow) AcrossNodes(span, std::unique_ptr<Communicator>(node)));
  bool usable = across && across->usable();
  // Least element, whether no node is crowded, whether MPI may be called by any thread, whether all offload, and how many domains
  // the ranks of every node are spread over.
  int64_t agreed[] = {usable ? int64_t(across->prepare_node()) : 0, !job.crowded(), policy.host.any_thread, policy.offload,
                      usable ? across->node_domains() : 1};
  std::unique_ptr<Communicator> made(new (std::nothrow) Communicator(Reason::many_nodes));
  if (!made) agreed[0] = 0;
  if (!policy.host.least(comm, agreed, int(std::size(agreed))) || agreed[0] == 0) {
    if (across)
      across->leave();
    else if (node)
      node->let_go();
    return new (std::nothrow) Communicator(Reason::no_shared_memory);
  }
  across->largest_element = size_t(agreed[0]);
  across->crowded = agreed[1] == 0;
  across->any_thread = agreed[2] != 0;
  across->offload = agreed[3] != 0;
  across->cluster().domains = int(agreed[4]);
  made->rank_ = rank;
  made->size_ = size;
  made->job_ = &job;
  made->policy_ = &policy;
  made->rules_ = policy.rules;
  made->across_ = std::move(across);
  return made.release();
}

Communicator* Communicator::put_off(int size, int rank) {
  auto* made = new (std::nothrow) Communicator(Reason::not_prepared);
  if (made == nullptr) return nullptr;
  made->rank_ = rank;
  made->size_ = size;
  made->put_off_ = true;
  return made;
}

void Communicator::take(std::unique_ptr<Communicator> made) {
  put_off_ = false;
  reason_ = made ? made->reason() : Reason::no_shared_memory;
  if (!made) return;
  job_ = made->job_;
  policy_ = made->policy_;
  rules_ = made->rules_;
  across_ = std::move(made->across_);
}

// A phase inside a node: what the rules choose for it, and where they leave it to MPI, the algorithm that can do any size.
Status Communicator::run_phase(const Request& request) {
  const select::Selection& selection = select(request);
  int row = selection.algorithm;
  if (row < 0) row = select::any_size_algorithm(request.kind);
  const collective::Algorithm& algorithm = collective::algorithms[row];
  prepare_direct(algorithm);
  team_->unmapped = collective::way_of(selection.unmapped);
  return algorithm.run(*team_, request);
}

// Whether nothing may be combined in a node before the ranks of others are there.
bool Communicator::scattered(const Request& request) const {
  const bool prefix = request.kind == collective::Kind::scan || request.kind == collective::Kind::exscan;
  return (prefix || request.ordered) && !across_->place().in_order;
}

// An element of a user's operation, which may be of any size, and where there are blocks one of each.
bool Communicator::fits_across(const Request& request, int row) const {
  const bool blocks = request.kind == collective::Kind::reduce_scatter || request.kind == collective::Kind::reduce_scatter_block;
  const collective::Placement& place = across_->place();
  if (collective::cluster_algorithms[row - collective::algorithm_count].run == collective::ordered) {
    const size_t ranks = size_t(place.size);
    return ranks <= collective::max_team &&
           request.element <= std::min(collective::Cluster::room_bytes / ranks, collective::Cluster::slice_bytes);
  }
  const bool fits_room = !blocks || request.element <= collective::Cluster::room_bytes / collective::scattered_blocks(place);
  const size_t in_cell = across_->largest_element / size_t(blocks ? place.largest : 1);
  return fits_room && (request.op != kernels::Op::user || request.element <= in_cell);
}

void Communicator::agree_on_size(collective::Kind kind) {
  if (!across_ || reason() != Reason::many_nodes) return;
  VaryingSize& varying = across_->varying(kind);
  if (!varying.is_decided()) varying.decide(select::depends_on_size(*rules_, facts_across(kind, 0, false)));
  if (!varying.is_wanted() || !varying.begin_call()) return;
  uint64_t sum = varying.own();
  if (across_->add_up(&sum).ok())
    varying.agree(sum);
  else
    reason_ = Reason::peer_lost;
}

// What rules go by in a blocking call: of alltoallv, alltoallw and gatherv what a rank moves, as of alltoall and gather; of
// scatterv all.
uint64_t AcrossNodes::bytes_for_rules(const Request& request) {
  if (!collective::sizes_vary(request.kind)) return request.bytes();
  VaryingSize& varying = varying_[int(request.kind)];
  varying.note(moved(request, place().size));
  return varying.bytes() / uint64_t(request.kind == collective::Kind::scatterv ? 1 : place().size);
}

// All nodes have agreed on them.
select::Facts Communicator::facts_across(collective::Kind kind, uint64_t bytes, bool scattered) const {
  select::Facts facts{kind, bytes, size_, across_->crowded, policy_->travel};
  facts.nodes = across_->place().nodes;
  facts.per_node = across_->place().largest;
  facts.domains = across_->cluster().domains;
  facts.scattered = scattered;
  facts.offload = across_->offload;
  facts.library = policy_->library;
  return facts;
}

// As decide(). bytes: what rules go by.
Outcome Communicator::choose_across(const Request& request, uint64_t bytes) {
  const bool apart = scattered(request);
  auto& last = last_[int(request.kind)];
  if (last.bytes != bytes || last.scattered != apart)
    last = {bytes, apart, select::choose(*rules_, facts_across(request.kind, bytes, apart)), {}};
  if (reason() != Reason::many_nodes) return {-1, reason(), {}};
  if (is_turn_of_mpi()) return {-1, Reason::turn_of_mpi, {}};
  if (last.selection.algorithm < 0) return {-1, last.selection.reason, {}};
  if (!fits_across(request, last.selection.algorithm)) return {-1, Reason::large_element, {}};
  return {last.selection.algorithm, Reason::none, {}};
}

Outcome Communicator::decide_across(const Request& request) {
  Outcome outcome = choose_across(request, across_->bytes_for_rules(request));
  if (outcome.algorithm < 0) return outcome;
  trace::takes_long();
  end_operations();
  return outcome;
}

// A stage between nodes may be due while this rank's program sits in a call of MPI that ends only after it: so another thread
// must be allowed to see to it.
bool Communicator::starts_operations() const {
  return !across_ || across_->any_thread;
}

Outcome Communicator::prepare_started_across(Operation& operation, const Request& request) {
  if (!across_->any_thread) return {-1, Reason::many_nodes, {}};
  Outcome outcome = choose_across(request, request.bytes());
  operation.algorithm = outcome.algorithm;
  if (operation.rehearses()) outcome.algorithm = -1;
  return outcome;
}

Status Communicator::execute_started_across(Operation& operation, const Request& request, int row) {
  Status status = reason() == Reason::revoked ? revoked() : peer_lost("a rank died", lost_);
  if (!declines()) {
    across_->begin_started(operation.has_fiber() ? &operation : nullptr);
    status = execute_across(request, row);
    across_->end_started();
  }
  operation.end_turn();
  return status;
}

Status Communicator::execute_across(const Request& request, int row) {
  Status status = collective::cluster_algorithms[row - collective::algorithm_count].run(across_->cluster(), request);
  if (status.ok()) return status;
  across_->set_failed();
  if (status.code == Code::revoked || across_->is_revoked()) {
    across_->revoke();
    across_->settle();
    reason_ = Reason::revoked;
    return revoked();
  }
  if (status.code == Code::disagreed) across_->abandon(collective::Board::by_disagreement);
  if (status.code == Code::refused || status.code == Code::peer_lost || status.code == Code::no_memory) across_->tell_lost();
  reason_ = Reason::peer_lost;
  return {status.code, collective::any_rank, status.what};  // ranks of a phase are not the communicator's
}

}  // namespace stretto::engine
