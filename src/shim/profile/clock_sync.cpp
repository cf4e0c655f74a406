#include "shim/profile/clock_sync.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.hpp"
#include "engine/identity.hpp"
#include "shim/profile/groups.hpp"
#include "trace/tracer.hpp"

namespace stretto::shim::profile {
namespace {

constexpr int exchanges = 60, best_exchanges = 12;  // so many round trips; the shortest ones say how far they agree
constexpr int sync_tag = 17;                        // on a communicator of our own

// What each rank tells the others.
struct Presence {
  uint64_t host;      // equal on the ranks of one node
  uint64_t start_ns;  // TraceHeader::start_ns
};

struct World {
  int rank = 0, size = 1;
  int32_t* node = nullptr;    // of each rank
  int32_t* leader = nullptr;  // rank of each node's
  int nodes = 1;
  uint64_t start_ns = 0;  // of rank 0
  MPI_Comm comm{};
  MPI_Datatype byte{};
};
World world;

// A line between this process's ticks and the reference's nanoseconds.
struct Line {
  uint64_t ticks = 0, reference_ns = 0, error_ns = 0;
  int32_t via = 0;
  uint32_t reserved = 0;
};

double ns_per_tick() {
  const trace::TraceHeader* header = trace::trace_header();
  const ClockPair now = read_both(10);
  const uint64_t counted = now.ticks - header->start_ticks;
  return counted ? double(now.ns - header->start_ns) / double(counted) : 1.0;
}

uint64_t hash_text(uint64_t hash, const char* text, size_t length) {
  for (size_t i = 0; i < length; ++i) hash = mix(hash, uint8_t(text[i]));
  return hash;
}

// Of the host's name and of its boot: containers on one machine with names of their own count as nodes of their own.
uint64_t host_hash() {
  char text[256] = "";
  gethostname(text, sizeof text - 1);
  uint64_t hash = hash_text(7, text, strlen(text));
  const int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (file < 0) return hash;
  const ssize_t length = read(file, text, sizeof text);
  close(file);
  return hash_text(hash, text, length > 0 ? size_t(length) : 0);
}

bool number_nodes(const Presence* all) {
  world.node = static_cast<int32_t*>(malloc(size_t(world.size) * sizeof(int32_t)));
  world.leader = static_cast<int32_t*>(malloc(size_t(world.size) * sizeof(int32_t)));
  if (!world.node || !world.leader) return false;
  world.nodes = 0;
  for (int rank = 0; rank < world.size; ++rank) {
    int node = 0;
    while (node < world.nodes && all[world.leader[node]].host != all[rank].host) ++node;
    if (node == world.nodes) world.leader[world.nodes++] = rank;
    world.node[rank] = node;
  }
  return true;
}

bool exchange_presence() {
  const Presence own{host_hash(), trace::trace_header()->start_ns};
  auto* all = static_cast<Presence*>(calloc(size_t(world.size), sizeof(Presence)));
  if (!all) return false;
  const bool good = mpi().Allgather(&own, sizeof own, world.byte, all, sizeof own, world.byte, comm_world()) == MPI_SUCCESS &&
                    number_nodes(all);
  world.start_ns = all[0].start_ns;
  free(all);
  return good;
}

void send(const void* data, size_t bytes, int to) {
  mpi().Send(data, int(bytes), world.byte, to, sync_tag, world.comm);
}
void receive(void* data, size_t bytes, int from) {
  mpi().Recv(data, int(bytes), world.byte, from, sync_tag, world.comm, MPI_STATUS_IGNORE);
}

// The reference's clock as far as this rank has it.
uint64_t reference_now(const Line& line, double rate) {
  if (world.rank == world.leader[0]) return now_ns() - world.start_ns;
  return line.reference_ns + uint64_t(double(ticks() - line.ticks) * rate);
}

void give_time(const Line& line, int to) {
  const double rate = ns_per_tick();
  for (int i = 0; i < exchanges; ++i) {
    char ask;
    receive(&ask, 1, to);
    const uint64_t now = reference_now(line, rate);
    send(&now, sizeof now, to);
  }
  send(&line.error_ns, sizeof line.error_ns, to);
}

struct RoundTrip {
  uint64_t middle, spent, reference_ns;
};

RoundTrip ask_time(int from) {
  RoundTrip trip;
  const char ask = 0;
  const uint64_t begin = ticks();
  send(&ask, 1, from);
  receive(&trip.reference_ns, sizeof trip.reference_ns, from);
  const uint64_t end = ticks();
  trip.middle = begin + (end - begin) / 2;
  trip.spent = end - begin;
  return trip;
}

// How far the other good round trips are from what the best one says, in ns.
double spread(const RoundTrip* trips, double rate) {
  double largest = 0;
  for (int i = 1; i < best_exchanges; ++i) {
    const double expected = double(int64_t(trips[i].middle - trips[0].middle)) * rate;
    const double actual = double(int64_t(trips[i].reference_ns - trips[0].reference_ns));
    largest = std::max(largest, std::abs(actual - expected));
  }
  return largest;
}

Line take_time(int from) {
  RoundTrip trips[exchanges];
  for (RoundTrip& trip : trips) trip = ask_time(from);
  uint64_t their_error = 0;
  receive(&their_error, sizeof their_error, from);
  std::sort(trips, trips + exchanges, [](const RoundTrip& a, const RoundTrip& b) { return a.spent < b.spent; });
  const double rate = ns_per_tick();
  const double own_error = double(trips[0].spent) * rate / 2 + spread(trips, rate);
  return {trips[0].middle, trips[0].reference_ns, uint64_t(own_error) + 1 + their_error, from, 0};
}

Line own_line() {
  const ClockPair now = read_both(10);
  return {now.ticks, now.ns - world.start_ns, uint64_t(double(now.apart) * ns_per_tick() / 2) + 1, world.rank, 0};
}

Line among_leaders() {
  const int own = world.node[world.rank];
  Line line = own_line();
  for (int have = 1; have < world.nodes; have *= 2) {
    if (own < have && own + have < world.nodes) give_time(line, world.leader[own + have]);
    if (own >= have && own < 2 * have) line = take_time(world.leader[own - have]);
  }
  return line;
}

// The leader's line holds for all ranks of its node.
Line within_node() {
  const int leader = world.leader[world.node[world.rank]];
  Line line;
  if (world.rank != leader) {
    receive(&line, sizeof line, leader);
    line.via = world.rank;
    return line;
  }
  line = among_leaders();
  for (int rank = 0; rank < world.size; ++rank)
    if (rank != leader && world.node[rank] == world.node[leader]) send(&line, sizeof line, rank);
  return line;
}

bool on_one_node() {
  return world.size == 1 || engine::locality().size == world.size;
}

}  // namespace

const int32_t* find_nodes() {
  if (mpi().Comm_rank(comm_world(), &world.rank) != MPI_SUCCESS || mpi().Comm_size(comm_world(), &world.size) != MPI_SUCCESS)
    return nullptr;
  if (on_one_node() || !predefined("MPI_BYTE", &world.byte)) return nullptr;
  if (!exchange_presence() || world.nodes == 1) return world.nodes = 1, nullptr;
  if (mpi().Comm_dup(comm_world(), &world.comm) != MPI_SUCCESS) world.nodes = 1;
  return world.node;
}

void synchronise_clocks(uint32_t at) {
  if (world.nodes == 1) return;
  const Line line = within_node();
  trace::add_clock({line.ticks, line.reference_ns, line.error_ns, line.via, at});
}

void end_clocks() {
  if (world.nodes > 1) mpi().Comm_free(&world.comm);
  world.nodes = 1;
}

}  // namespace stretto::shim::profile
