#include "conformance/world.hpp"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <new>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "platform/process.hpp"
#include "platform/shared_memory.hpp"
#include "transport/fault/fault.hpp"
#include "transport/make.hpp"

namespace stretto::conformance {
namespace {

constexpr uint64_t patience_ns = 60'000'000'000;
constexpr int denied_exit = 77;
const std::string denied = "skip: this machine denies the mechanism";

// The shared object: the board, the stage, and where a transport asks for them the ranks' arenas.
struct Memory {
  int fd = -1;
  size_t bytes = 0, arenas_at = 0;
  void* address = nullptr;

  explicit Memory(const Shape& shape, bool with_arenas) {
    arenas_at = round_up(sizeof(Board) + size_t(shape.ranks) * shape.cell_bytes * shape.cells, 4096);
    bytes = arenas_at + (with_arenas ? size_t(shape.ranks) * arena_bytes : 0);
    if (platform::create_shared_object("conformance", bytes, &fd).ok() && map()) new (address) Board;
  }
  ~Memory() {
    platform::unmap_shared_object(address, bytes);
    if (fd >= 0) close(fd);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Forked children do not inherit the mapping: each makes its own.
  bool map() { return platform::map_shared_object(fd, 0, bytes, &address).ok(); }
  Board& board() { return *static_cast<Board*>(address); }
};

// The arena of a rank; null where the transport needs none.
char* arena_of(const Case& test_case, const Shape& shape, Board& board, int rank) {
  size_t at = round_up(sizeof(Board) + size_t(shape.ranks) * shape.cell_bytes * shape.cells, 4096);
  return test_case.row->arena_only ? reinterpret_cast<char*>(&board) + at + size_t(rank) * arena_bytes : nullptr;
}

std::unique_ptr<transport::Transport> make_transport(const Case& test_case, const Shape& shape, Board& board, int rank) {
  transport::Mapped arenas[most_ranks];
  for (int r = 0; r < shape.ranks; ++r) arenas[r] = {arena_of(test_case, shape, board, r), arena_bytes};
  int32_t pids[most_ranks] = {};
  for (int r = 0; r < shape.ranks; ++r) pids[r] = board.lines[r].pid.load();
  transport::Team team;
  team.stage = {reinterpret_cast<char*>(&board + 1), shape.cell_bytes * shape.cells, shape.cell_bytes, shape.cells};
  team.pids = pids;
  team.arenas = arenas;
  team.size = shape.ranks;
  team.rank = rank;
  auto plain = transport::make(test_case.row->name, team);
  transport::Faults faults;
  if (plain == nullptr || !transport::parse_faults(test_case.faults, &faults).ok()) return nullptr;
  return *test_case.faults == 0 ? std::move(plain) : transport::make_fault(std::move(plain), faults);
}

// A denied system call is the machine's affair, not the transport's. Tried on a transport without faults.
bool works_here(const Case& test_case, const Shape& shape, Rank& me) {
  if (test_case.row->staged) return true;
  auto plain = make_transport({test_case.row, test_case.processes, ""}, shape, me.board, me.rank);
  uint64_t scratch = 0;
  Buffer word(me, std::vector<char>(sizeof scratch, 1));
  me.mine().window = plain->window(word.data()).base;
  if (!me.meet()) return true;
  int peer = (me.rank + 1) % me.size;
  const void* data = nullptr;
  Status status = plain->get(peer, {me.line(peer).window}, {}, 0, sizeof scratch, &scratch, &data);
  me.meet();
  return status.ok() || (status.detail != EPERM && status.detail != ENOSYS);
}

std::string run_rank(const Case& test_case, const Shape& shape, Board& board, int rank, const Body& body) {
  platform::ProcessId self = platform::self_process();
  board.lines[rank].start = self.start;
  board.lines[rank].pid = self.pid;
  for (int peer = 0; peer < shape.ranks; ++peer)
    while (board.lines[peer].pid.load() == 0) sched_yield();
  auto transport = make_transport(test_case, shape, board, rank);
  if (transport == nullptr) return "no such transport";
  Rank me = {rank, shape.ranks, board, *transport, arena_of(test_case, shape, board, rank)};
  std::string complaint = works_here(test_case, shape, me) ? body(me) : denied;
  if (!complaint.empty()) board.broken = 1;
  me.meet();  // nobody's memory goes away while others read it
  return complaint;
}

std::string as_threads(const Case& test_case, const Shape& shape, Memory& memory, const Body& body) {
  std::vector<std::string> complaints(shape.ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < shape.ranks; ++rank)
    threads.emplace_back([&, rank] { complaints[rank] = run_rank(test_case, shape, memory.board(), rank, body); });
  for (auto& thread : threads) thread.join();
  std::string all;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    if (is_skip(complaints[rank])) return denied;
    if (!complaints[rank].empty()) all += "rank " + std::to_string(rank) + ": " + complaints[rank] + "\n";
  }
  return all;
}

int child(const Case& test_case, const Shape& shape, Memory& memory, int rank, const Body& body) {
  alarm(120);
  platform::allow_memory_readers();
  if (!memory.map()) return 1;
  std::string complaint = run_rank(test_case, shape, memory.board(), rank, body);
  if (is_skip(complaint)) return denied_exit;
  if (!complaint.empty()) fprintf(stderr, "rank %d: %s\n", rank, complaint.c_str());
  return complaint.empty() ? 0 : 1;
}

std::string as_processes(const Case& test_case, const Shape& shape, Memory& memory, const Body& body) {
  std::vector<pid_t> children;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    children.push_back(fork());
    if (children.back() == 0) _exit(child(test_case, shape, memory, rank, body));
  }
  std::string all;
  bool skipped = false;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    int status = 0;
    waitpid(children[rank], &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == denied_exit)
      skipped = true;
    else if (status != 0)
      all += "rank " + std::to_string(rank) + " ended with wait status " + std::to_string(status) + "\n";
  }
  return skipped ? denied : all;
}

}  // namespace

bool Rank::wait_until(const std::function<bool()>& holds) {
  uint64_t deadline = now_ns() + patience_ns;
  while (!holds()) {
    if (board.broken.load() != 0) return false;
    if (now_ns() > deadline) {
      board.broken = 1;
      return false;
    }
    sched_yield();
  }
  return true;
}

bool Rank::meet() {
  mine().arrived.store(++barriers, std::memory_order_release);
  for (int peer = 0; peer < size; ++peer)
    if (!wait(line(peer).arrived, barriers)) return false;
  return true;
}

std::string run(const Case& test_case, const Shape& shape, const Body& body) {
  Memory memory(shape, test_case.row->arena_only);
  if (memory.address == nullptr) return "no shared memory for the test itself";
  return test_case.processes ? as_processes(test_case, shape, memory, body) : as_threads(test_case, shape, memory, body);
}

}  // namespace stretto::conformance
