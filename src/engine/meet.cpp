// How the nodes of a job meet: local rank 0 of each asks the process that started the job, which hears from all of them and gives
// all the same answer. As inside a node, MPI is not asked: a rank without Stretto could not answer.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <new>

#include "base/clock.hpp"
#include "engine/job.hpp"
#include "platform/futex.hpp"
#include "platform/meeting.hpp"

namespace stretto::engine {
namespace {

constexpr uint64_t grace_ns = 5'000'000'000;  // beyond what the meeting waits for the others
constexpr size_t digits = 12;

struct Answer {
  const char* text;
  Nodes nodes;
};
constexpr Answer answers[] = {{"joined", Nodes::joined}, {"missing", Nodes::missing}, {"differ", Nodes::differ}};

// What the launcher calls this job on all nodes; "-" where it does not say.
const char* launch_name() {
  for (const char* variable : {"PMIX_NAMESPACE", "SLURM_STEP_ID"}) {
    const char* text = getenv(variable);
    if (text != nullptr && *text != '\0' && strpbrk(text, " \n") == nullptr) return text;
  }
  return "-";
}

}  // namespace

int Job::node_name() const {
  int least = header_->members[0].world_rank;
  for (int i = 1; i < place_.local_size; ++i) least = std::min<int>(least, header_->members[i].world_rank);
  return least;
}

// An answer that ends in "!" says that this node is to tell the user. The question:
// "meet JOB LAUNCH NONCE WORLD-SIZE FINGERPRINT TIMEOUT-MS RANKS"; RANKS is "-" where this node's ranks have not joined.
Nodes Job::ask_nodes(bool joined) {
  const size_t bytes = 512 + digits * size_t(place_.local_size);
  std::unique_ptr<char[]> line(new (std::nothrow) char[bytes]);
  if (!line) return Nodes::unreachable;
  int length =
      snprintf(line.get(), 400, "meet %.64s %.128s %llx %d %llx %llu ", settings_.job, launch_name(),
               static_cast<unsigned long long>(now_ns() ^ (uint64_t(getpid()) << 40)), place_.world_size,
               static_cast<unsigned long long>(fingerprint_), static_cast<unsigned long long>(settings_.join_timeout_ms));
  size_t at = size_t(std::min(length, 399));
  for (int i = 0; joined && i < place_.local_size; ++i)
    at += size_t(snprintf(&line[at], digits, "%s%d", i ? "," : "", header_->members[i].world_rank));
  snprintf(&line[at], digits, "%s\n", joined ? "" : "-");
  char answer[32];
  uint64_t deadline = now_ns() + settings_.join_timeout_ms * 1'000'000 + grace_ns;
  Status status = platform::ask_meeting(settings_.meeting, line.get(), {deadline, deadline}, answer, sizeof answer);
  speaks_for_nodes_ = true;
  if (!status.ok()) return status.code == Code::timed_out ? Nodes::unknown : Nodes::unreachable;
  size_t end = strlen(answer);
  speaks_for_nodes_ = end > 0 && answer[end - 1] == '!';
  if (speaks_for_nodes_) answer[end - 1] = '\0';
  for (const Answer& known : answers)
    if (strcmp(answer, known.text) == 0) return known.nodes;
  return Nodes::unreachable;
}

void Job::meet_nodes(bool joined) {
  if (place_.world_size <= place_.local_size) return;
  nodes_ = Nodes::not_asked;
  speaks_for_nodes_ = place_.world_rank == 0;
  if (strcmp(settings_.nodes, "auto") != 0 || *settings_.meeting == '\0' || *settings_.job == '\0') return;
  std::atomic<uint32_t>& verdict = header_->nodes;
  if (place_.local_rank == 0) {
    verdict.store(uint32_t(ask_nodes(joined)), std::memory_order_release);
    platform::futex_wake_all(&verdict);
  }
  // Where this node has not joined, nobody needs the answer.
  while (joined && verdict.load(std::memory_order_acquire) == uint32_t(Nodes::open) && alive(0))
    platform::futex_wait(&verdict, uint32_t(Nodes::open), 10'000'000);
  uint32_t found = verdict.load(std::memory_order_acquire);
  nodes_ = found == uint32_t(Nodes::open) ? Nodes::missing : Nodes(found);
}

}  // namespace stretto::engine
