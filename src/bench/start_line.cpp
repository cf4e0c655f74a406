#include "bench/start_line.hpp"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include <thread>

#include "bench/ticks.hpp"
#include "platform/futex.hpp"
#include "platform/shared_memory.hpp"

namespace stretto::bench {
namespace {

constexpr unsigned polls_of_a_patient_rank = 20000;
constexpr uint64_t longest_nap_ns = 100'000'000;
constexpr int round_trips = 100, tries = 40;
constexpr double lead_ns = 500;
constexpr double crowded_lead_ns = 100'000, lead_per_rank_ns = 20'000;  // so that all are asleep, or ready to run, at the start

// The object of rank 0, opened by the others through its process. False: this rank does not share its node.
bool open_object(const int64_t place[2], int* fd) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%lld/fd/%lld", static_cast<long long>(place[0]), static_cast<long long>(place[1]));
  *fd = ::open(path, O_RDWR | O_CLOEXEC);
  return *fd >= 0;
}

// Rank 0 throws, rank 1 returns: `from` is followed by `to` once per round trip.
void play(std::atomic<uint32_t>& to, std::atomic<uint32_t>& from, bool throws) {
  uint32_t ball = to.load();
  for (int trip = 0; trip < round_trips; ++trip) {
    ++ball;
    if (throws) to.store(ball, std::memory_order_release);
    while (from.load(std::memory_order_acquire) != ball) cpu_relax();
    if (!throws) to.store(ball, std::memory_order_release);
  }
}

// Plays on a CPU of its own, whatever that of the rank; the best time of a hop, in ns.
double play_on(int cpu, std::atomic<uint32_t>& to, std::atomic<uint32_t>& from, bool throws) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  sched_setaffinity(0, sizeof one, &one);  // of this thread
  double best = 0;
  for (int attempt = 0; attempt < tries; ++attempt) {
    const uint64_t begin = now_ticks();
    play(to, from, throws);
    const double took = to_ns(now_ticks() - begin) / round_trips / 2;
    if (attempt == 0 || took < best) best = took;
  }
  return best;
}

}  // namespace

const char* StartLine::share(const Mpi& mpi) {
  int fd = -1;
  void* address = nullptr;
  int64_t place[2] = {getpid(), -1};
  if (rank_ == 0 && platform::create_shared_object("stretto-bench", sizeof(StartLineShared), &fd).ok()) place[1] = fd;
  mpi.library.Bcast(place, sizeof place, mpi.byte, 0, mpi.world);
  bool good = place[1] >= 0 && (rank_ == 0 || open_object(place, &fd));
  good = good && platform::map_shared_object(fd, 0, sizeof(StartLineShared), &address).ok();
  shared_ = static_cast<StartLineShared*>(address);
  // A process of another node may have the number as well, but not the contents.
  if (good && rank_ == 0) shared_->start.store(uint64_t(place[0]) * 1'000'003 + now_ns());
  uint64_t told = good ? shared_->start.load() : 0;
  mpi.library.Bcast(&told, 1, mpi.uint64, 0, mpi.world);
  good = good && shared_->start.load() == told;
  const bool all = sum_over_ranks(mpi, good ? 0 : 1) == 0;
  if (fd >= 0) ::close(fd);
  return all ? nullptr : "the ranks are not on one node";
}

const char* StartLine::open(const Mpi& mpi, int rank, int ranks, const Nodes& nodes, const platform::CpuSet& cpus, bool crowded) {
  rank_ = rank;
  ranks_ = ranks;
  crowded_ = crowded;
  for (int cpu = 0; cpu < platform::max_cpus; ++cpu) {
    if (!cpus.has(cpu)) continue;
    last_cpu_ = cpu;
    if (first_cpu_ < 0) first_cpu_ = cpu;
  }
  if (nodes.count == 1) return share(mpi);
  far_.open(mpi, rank, ranks, nodes.first_elsewhere);
  return nullptr;
}

void StartLine::close() {
  if (shared_ != nullptr) platform::unmap_shared_object(shared_, sizeof(StartLineShared));
  shared_ = nullptr;
}

void StartLine::halt() {
  if (far_.is_open()) return far_.halt();
  shared_->halted.store(shared_->generation.load() + 1);
}

// Where ranks share cores, whoever waits sleeps, so that those still in a call have the cores: sched_yield does not give them
// away where a launcher starts every rank in a session of its own (MPICH's does), as the kernel then divides time by session. A
// rank with a core of its own yields when it has waited for long: then its peer has lost its core to some other program, and a
// rank that spins meanwhile uses up its own claim to run when the peer is back.
void StartLine::await_generation_after(uint32_t generation) const {
  unsigned polls = 0;
  while (shared_->generation.load(std::memory_order_acquire) == generation) {
    if (crowded_)
      platform::futex_wait(&shared_->generation, generation, longest_nap_ns);
    else if (++polls % polls_of_a_patient_rank == 0)
      sched_yield();
    else
      cpu_relax();
  }
}

void StartLine::meet() {
  far_.is_open() ? far_.meet() : void(meet_near());
}

uint32_t StartLine::meet_near() {
  const uint32_t generation = shared_->generation.load(std::memory_order_acquire);
  if (shared_->arrived.fetch_add(1) + 1 == uint32_t(ranks_)) {
    shared_->arrived.store(0, std::memory_order_relaxed);
    const double lead = crowded_ ? crowded_lead_ns + lead_per_rank_ns * ranks_ : lead_ns;
    shared_->start.store(now_ticks() + from_ns(lead), std::memory_order_relaxed);
    shared_->generation.store(generation + 1, std::memory_order_release);
    if (crowded_) platform::futex_wake_all(&shared_->generation);
  } else {
    await_generation_after(generation);
  }
  return generation + 1;
}

bool StartLine::wait(double delay_ns, uint64_t* planned, uint64_t* start) {
  if (far_.is_open()) return far_.wait(delay_ns, planned, start);
  const uint32_t generation = meet_near();
  const bool halted = shared_->halted.load(std::memory_order_relaxed) == generation;
  *start = shared_->start.load(std::memory_order_relaxed);
  *planned = *start + from_ns(delay_ns);
  if (halted) return false;
  if (crowded_) sleep_until(*planned);
  while (now_ticks() < *planned) cpu_relax();
  return true;
}

double StartLine::hop_of_threads() {
  if (first_cpu_ == last_cpu_) return 0;
  double best = 0;
  std::thread returns([&] { play_on(last_cpu_, shared_->back, shared_->there, false); });
  std::thread throws([&] { best = play_on(first_cpu_, shared_->there, shared_->back, true); });
  returns.join();
  throws.join();
  return best;
}

double StartLine::hop_ns() {
  if (far_.is_open()) return far_.set_clocks();
  if (ranks_ < 2) return 0;
  double best = 0;
  if (crowded_) {
    meet();
    if (rank_ == 0) best = hop_of_threads();
    meet();
    return best;
  }
  for (int attempt = 0; attempt < tries; ++attempt) {
    wait();
    const uint64_t begin = now_ticks();
    if (rank_ == 0) play(shared_->there, shared_->back, true);
    if (rank_ == 1) play(shared_->back, shared_->there, false);
    const double took = to_ns(now_ticks() - begin) / round_trips / 2;
    if (attempt == 0 || took < best) best = took;
  }
  return best;
}

}  // namespace stretto::bench
