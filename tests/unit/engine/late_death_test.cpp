// A rank is killed at some moment of a sequence of reductions of long vectors, by every algorithm that does such. Each call of a
// survivor ends with the right result, or with an error that names the death and with the input as it was; and what a survivor
// has taken back after its error nobody writes to any more. Nobody waits for ever, either for the dead or for who has given up.
// STRETTO_TEST_SEEDS=N: N deaths for each algorithm.
#include <csignal>
#include <random>
#include <thread>

#include "unit/engine/joined.hpp"

namespace stretto::engine {
namespace {

using collective::Algorithm;
using collective::Kind;
using collective::Request;

constexpr uint32_t size = 3, root = 1;
constexpr size_t block = 40000, count = size * block;  // elements: several turns of the staging cells
constexpr uint32_t most_calls = 100000, mark = 0xdeadbeef;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr unsigned deaths_by_default = 1;
#else
constexpr unsigned deaths_by_default = 2;
#endif

enum Exit : int { good, no_communicator, other_algorithm, wrong_numbers, input_changed, written_after, other_error, no_error };

// What becomes of one sequence.
struct Death {
  const Algorithm* row;
  uint32_t victim;
  uint32_t call;          // in which, about ...
  uint32_t microseconds;  // ... and so long after its beginning
  std::vector<pid_t> ranks;
};

uint32_t given(uint32_t rank, uint32_t call, size_t i) {
  return uint32_t(i) * 2654435761u + rank * 40503u + call;
}
uint32_t sum_at(uint32_t call, size_t i) {
  uint32_t sum = 0;
  for (uint32_t r = 0; r < size; ++r) sum += given(r, call, i);
  return sum;
}

class Rank {
 public:
  Rank(const Algorithm& row, uint32_t rank) : row_(row), rank_(rank), in_(count), out_(whole() ? count : block) {
    for (uint32_t r = 0; r < size; ++r) blocks_[r] = {in_.data() + r * block, block * sizeof in_[0]};
  }

  Exit run(const std::string& job, const Death& death) {
    Joined joined(int(rank_), int(size), job);
    if (joined.communicator == nullptr) return no_communicator;
    *joined.rules = rules_of((std::string(collective::name(row_.kind)) + " " + row_.name).c_str());
    for (uint32_t call = 0; call < most_calls; ++call) {
      if (rank_ == death.victim && call == death.call) die_in(death.microseconds);
      for (size_t i = 0; i < count; ++i) in_[i] = given(rank_, call, i);
      const Outcome outcome = joined.communicator->run(request());
      if (outcome.reason == select::Reason::peer_lost) return taken_back();  // the call before ended well even so
      if (outcome.algorithm < 0 || std::strcmp(collective::algorithms[outcome.algorithm].name, row_.name) != 0)
        return other_algorithm;
      if (Exit problem = judge(outcome.status, call, death.victim); problem != good) return problem;
      if (!outcome.status.ok()) return taken_back();
    }
    return no_error;
  }

 private:
  bool whole() const { return row_.kind != Kind::reduce_scatter_block; }
  bool has_result() const { return row_.kind != Kind::reduce || rank_ == root; }

  static void die_in(uint32_t microseconds) {
    std::thread([=] {
      usleep(microseconds);
      kill(getpid(), SIGKILL);
    }).detach();
  }

  Request request() {
    Request request;
    request.kind = row_.kind;
    request.type = kernels::Type::i32;
    request.element = 4;
    request.count = count;
    if (!whole()) request.gives = blocks_;
    request.input = in_.data();
    request.output = has_result() ? out_.data() : nullptr;
    request.root = root;
    return request;
  }

  Exit judge(const Status& status, uint32_t call, uint32_t victim) const {
    if (!status.ok() && (status.code != Code::peer_lost || status.detail != int(victim))) return other_error;
    const size_t first = whole() ? 0 : rank_ * block;
    for (size_t i = 0; status.ok() && has_result() && i < out_.size(); ++i)
      if (out_[i] != sum_at(call, first + i)) return wrong_numbers;
    for (size_t i = 0; i < count; ++i)
      if (in_[i] != given(rank_, call, i)) return input_changed;
    return good;
  }

  // The program uses its memory for other things, until the last survivor has done so.
  Exit taken_back() {
    std::fill(in_.begin(), in_.end(), mark);
    std::fill(out_.begin(), out_.end(), mark);
    stand->read.fetch_add(1);
    while (stand->read.load() < size - 1) usleep(100);
    for (const auto* buffer : {&in_, &out_})
      for (uint32_t value : *buffer)
        if (value != mark) return written_after;
    return good;
  }

  const Algorithm& row_;
  const uint32_t rank_;
  std::vector<uint32_t> in_, out_;
  collective::Piece blocks_[size];
};

void start(Death& death) {
  const std::string job = unique_job();
  make_stand(int(size));
  for (uint32_t rank = 0; rank < size; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);  // who waits for ever is killed by it
      _exit(Rank(*death.row, rank).run(job, death));
    }
    death.ranks.push_back(child);
  }
}

// The victim last: it stays a zombie until the others have noticed.
void expect_good_end(const Death& death) {
  const auto status_of = [&](uint32_t rank) {
    int status = 0;
    waitpid(death.ranks[rank], &status, 0);
    return status;
  };
  for (uint32_t rank = 0; rank < size; ++rank) {
    if (rank == death.victim) continue;
    const int status = status_of(rank);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == good)
        << name(death.row->kind) << " " << death.row->name << ": rank " << rank << " ended with "
        << (WIFEXITED(status) ? "" : "signal ") << (WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status)) << ", rank "
        << death.victim << " was killed " << death.microseconds << " us after the beginning of call " << death.call;
  }
  EXPECT_TRUE(WIFSIGNALED(status_of(death.victim)));
}

std::vector<Death> random_deaths(unsigned for_each) {
  std::mt19937 random(20);
  std::vector<Death> deaths;
  for (const Algorithm& row : collective::algorithms) {
    const bool reduces = row.kind == Kind::reduce || row.kind == Kind::allreduce || row.kind == Kind::reduce_scatter_block;
    if (!reduces || row.max_bytes != collective::any_size) continue;
    for (unsigned i = 0; i < for_each; ++i)
      deaths.push_back({&row, uint32_t(random() % size), uint32_t(random() % 8), uint32_t(random() % 2000), {}});
  }
  return deaths;
}

TEST(LateDeath, LeavesNoWrongNumbersAndNobodyWaiting) {
  const char* asked = getenv("STRETTO_TEST_SEEDS");
  std::vector<Death> deaths = random_deaths(asked ? unsigned(atoi(asked)) : deaths_by_default);
  constexpr size_t at_once = 6;  // a survivor sleeps for a tenth of a second before it asks who lives
  for (size_t done = 0; done < deaths.size(); done += at_once) {
    const size_t end = std::min(deaths.size(), done + at_once);
    for (size_t i = done; i < end; ++i) start(deaths[i]);
    for (size_t i = done; i < end; ++i) expect_good_end(deaths[i]);
  }
}

}  // namespace
}  // namespace stretto::engine
