#include "platform/rendezvous.hpp"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <new>

#include "base/clock.hpp"
#include "platform/rendezvous_wire.hpp"

namespace stretto::platform {
namespace {

constexpr uint64_t retry_ns = 500'000;

uint64_t left_until(uint64_t deadline_ns) {
  uint64_t now = now_ns();
  return now < deadline_ns ? deadline_ns - now : 0;
}

// Returns when a datagram may be there, when a retry is due, or at the deadline.
void wait_readable(int socket, uint64_t deadline_ns, uint64_t at_most_ns) {
  uint64_t ns = std::min(left_until(deadline_ns), at_most_ns);
  timespec timeout = {time_t(ns / 1'000'000'000), long(ns % 1'000'000'000)};
  pollfd readable = {socket, POLLIN, 0};
  ppoll(&readable, 1, &timeout, nullptr);
}

Message compose(Kind kind, int local_rank, const char* job_hash) {
  Message message;
  message.kind = kind;
  message.local_rank = local_rank;
  memcpy(message.job_hash, job_hash, sizeof message.job_hash);
  return message;
}

// The peer's queue is full, it is not bound yet, or too many descriptors are in flight: all pass.
bool passes(int error) {
  return error == EAGAIN || error == ECONNREFUSED || error == ENOENT || error == ENOBUFS || error == ETOOMANYREFS;
}

// Whether the letter is the one that `rank` of this job and user sends.
bool genuine(const Letter& letter, Kind kind, int rank, const char* job_hash) {
  return letter.user == getuid() && letter.message.kind == kind && letter.from == rank_address(getuid(), job_hash, rank) &&
         memcmp(letter.message.job_hash, job_hash, sizeof letter.message.job_hash) == 0;
}

// Local rank 0's list of who is owed a descriptor.
class Owed {
 public:
  explicit Owed(int local_size) : size_(local_size), state_(new (std::nothrow) State[size_t(local_size)]()) {}
  bool usable() const { return state_ != nullptr; }
  bool awaited(int rank) const { return rank > 0 && rank < size_ && state_[rank] == State::absent; }
  void greeted(int rank) { state_[rank] = State::waiting; }
  bool any_waiting() const { return std::count(state_.get(), state_.get() + size_, State::waiting) > 0; }
  int missing() const { return size_ - 1 - int(std::count(state_.get() + 1, state_.get() + size_, State::served)); }

  // Answers everyone who waits; `send` returns 0 or an errno value. Returns the first error that does not pass.
  template <class Send>
  int serve(Send send) {
    for (int rank = 1; rank < size_; ++rank) {
      if (state_[rank] != State::waiting) continue;
      int error = send(rank);
      if (error == 0) state_[rank] = State::served;
      if (error != 0 && !passes(error)) return error;
    }
    return 0;
  }

 private:
  enum class State : uint8_t { absent, waiting, served };
  int size_;
  std::unique_ptr<State[]> state_;
};

// Takes in all greetings that have arrived.
void read_greetings(int socket, const char* job_hash, Owed* owed) {
  Letter letter;
  for (;;) {
    int error = receive_letter(socket, &letter);
    if (error == EBADMSG) continue;
    if (error != 0) return;
    if (letter.fd >= 0) ::close(letter.fd);
    int rank = letter.message.local_rank;
    if (owed->awaited(rank) && genuine(letter, Kind::greeting, rank, job_hash)) owed->greeted(rank);
  }
}

// Takes in all descriptors of peers that have arrived.
void read_exchanged(int socket, int own_rank, const char* job_hash, int* fds, int size) {
  Letter letter;
  for (;;) {
    int error = receive_letter(socket, &letter);
    if (error == EBADMSG) continue;
    if (error != 0) return;
    if (letter.fd < 0) continue;
    int rank = letter.message.local_rank;
    bool expected = rank >= 0 && rank < size && rank != own_rank && fds[rank] < 0;
    if (expected && genuine(letter, Kind::exchanged, rank, job_hash))
      fds[rank] = letter.fd;
    else
      ::close(letter.fd);
  }
}

// Takes letters until the one from local rank 0 or none is left. EAGAIN: not there yet.
int read_object(int socket, int local_rank, const char* job_hash, int* fd) {
  Letter letter;
  for (;;) {
    int error = receive_letter(socket, &letter);
    if (error == EBADMSG) continue;
    if (error != 0) return error;
    if (letter.fd < 0) continue;
    if (genuine(letter, Kind::object, 0, job_hash) && letter.message.local_rank == local_rank) {
      *fd = letter.fd;
      return 0;
    }
    ::close(letter.fd);
  }
}

}  // namespace

Rendezvous::~Rendezvous() {
  close();
}

Status Rendezvous::open(const char* job, int local_rank) {
  close();
  local_rank_ = local_rank;
  hash_job(job, job_);
  return bind_socket(rank_address(getuid(), job_, local_rank), &socket_);
}

Status Rendezvous::give(int fd, int local_size, uint64_t deadline_ns) {
  if (socket_ < 0 || local_rank_ != 0 || local_size < 1) return invalid("give is for local rank 0 after open");
  Owed owed(local_size);
  if (!owed.usable()) return no_memory("list of ranks");
  for (;;) {
    read_greetings(socket_, job_, &owed);
    int error = owed.serve([&](int rank) {
      return send_message(socket_, rank_address(getuid(), job_, rank), compose(Kind::object, rank, job_), fd);
    });
    if (error != 0) return refused("the descriptor cannot be sent", error);
    int missing = owed.missing();
    if (missing == 0) return Status::good();
    if (left_until(deadline_ns) == 0) return timed_out("ranks of this node did not appear", missing);
    if (owed.any_waiting())
      usleep(retry_ns / 1000);
    else
      wait_readable(socket_, deadline_ns, UINT64_MAX);
  }
}

Status Rendezvous::take(int* fd, uint64_t deadline_ns) {
  if (socket_ < 0 || local_rank_ == 0) return invalid("take is for local ranks other than 0 after open");
  Address leader = rank_address(getuid(), job_, 0);
  bool greeted = false;
  for (;;) {
    if (!greeted) {
      int error = send_message(socket_, leader, compose(Kind::greeting, local_rank_, job_), -1);
      if (error != 0 && !passes(error)) return refused("local rank 0 cannot be reached", error);
      greeted = error == 0;
    }
    int error = read_object(socket_, local_rank_, job_, fd);
    if (error == 0) return Status::good();
    if (error != EAGAIN) return refused("this rank's socket cannot be read", error);
    if (left_until(deadline_ns) == 0)
      return timed_out(greeted ? "local rank 0 did not send the shared object" : "local rank 0 does not run Stretto");
    wait_readable(socket_, deadline_ns, greeted ? UINT64_MAX : retry_ns);
  }
}

Status Rendezvous::swap(int fd, int local_size, int* fds, uint64_t deadline_ns) {
  if (socket_ < 0 || local_rank_ >= local_size) return invalid("swap is for ranks of the node after open");
  std::fill(fds, fds + local_size, -1);
  std::unique_ptr<bool[]> sent(new (std::nothrow) bool[size_t(local_size)]());
  if (sent == nullptr) return no_memory("list of ranks");
  for (;;) {
    int unsent = 0;
    for (int rank = 0; rank < local_size; ++rank) {
      if (rank == local_rank_ || sent[rank]) continue;
      int error = send_message(socket_, rank_address(getuid(), job_, rank), compose(Kind::exchanged, local_rank_, job_), fd);
      if (error != 0 && !passes(error)) return refused("the descriptor cannot be sent", error);
      sent[rank] = error == 0;
      unsent += error != 0;
    }
    read_exchanged(socket_, local_rank_, job_, fds, local_size);
    int missing = int(std::count(fds, fds + local_size, -1)) - 1;
    if (unsent == 0 && missing == 0) return Status::good();
    if (left_until(deadline_ns) == 0) return timed_out("ranks of this node did not exchange their descriptors", unsent + missing);
    if (missing > 0)
      wait_readable(socket_, deadline_ns, unsent > 0 ? retry_ns : UINT64_MAX);
    else
      usleep(retry_ns / 1000);
  }
}

bool Rendezvous::claim_voice() const {
  constexpr int nobody = -1;
  int kept;
  return socket_ >= 0 && bind_socket(rank_address(getuid(), job_, nobody), &kept).ok();
}

void Rendezvous::close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

}  // namespace stretto::platform
