#include "shim/rails.hpp"

#include <string.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

#include "base/clock.hpp"
#include "platform/futex.hpp"
#include "shim/between_nodes.hpp"
#include "shim/fault_tolerance.hpp"
#include "shim/mpi.hpp"
#include "shim/nodes.hpp"
#include "shim/parts.hpp"
#include "shim/posted.hpp"
#include "shim/rail_comms.hpp"
#include "shim/windows.hpp"

namespace stretto::shim {

constinit thread_local uint64_t given_to_other_nodes = 0;

namespace {

using collective::Request;

Status status_of(int code) {
  if (code == MPI_SUCCESS) return Status::good();
  int what = MPI_SUCCESS;
  mpi().Error_class(code, &what);
  if (is_revocation(what)) return revoked();
  if (is_death(what)) return peer_lost("a rank died", collective::any_rank);
  return what == MPI_ERR_TRUNCATE ? collective::too_long(Part::nobody) : refused("MPI failed between the nodes");
}

const HostOperands& operands(const Request& request) {
  return *static_cast<const HostOperands*>(request.host);
}

size_t bytes_of(const MPI_Status& status) {
  int bytes = 0;
  mpi().Get_count(&status, byte_type(), &bytes);
  return size_t(bytes);
}

class Rail final : public collective::Links, public RailComms {
 public:
  // What this rank has exchanged with another one.
  struct Peer {
    size_t unasked;           // bytes sent since it was known to have received all before
    uint32_t sent, received;  // messages in parts
  };

  // peers: by rank of `all`.
  Rail(MPI_Comm comm, MPI_Comm all, std::unique_ptr<Peer[]> peers) : RailComms(comm, all), peers_(std::move(peers)) {
    if (comm_ != comm_null()) {
      mpi().Comm_rank(comm_, &rank_);
      mpi().Comm_size(comm_, &size_);
    }
    mpi().Comm_size(all_, &ranks_);
    std::fill_n(requests_, slots + message_slots, named<MPI_Request>("MPI_REQUEST_NULL"));
  }

  Status barrier() override {
    if (!started()) return status_of(mpi().Barrier(comm_));
    MPI_Request request;
    return ended(mpi().Ibarrier(comm_, &request), &request);
  }

  Status gather(const void* own, void* all, size_t bytes, int root) override {
    gives(bytes, rank_ != root);
    if (!started()) return status_of(mpi().Gather(own, int(bytes), byte_type(), all, int(bytes), byte_type(), root, comm_));
    MPI_Request request;
    return ended(mpi().Igather(own, int(bytes), byte_type(), all, int(bytes), byte_type(), root, comm_, &request), &request);
  }
  Status allgather(const void* own, void* all, size_t bytes) override {
    gives(bytes, others());
    if (!started()) return status_of(mpi().Allgather(own, int(bytes), byte_type(), all, int(bytes), byte_type(), comm_));
    MPI_Request request;
    return ended(mpi().Iallgather(own, int(bytes), byte_type(), all, int(bytes), byte_type(), comm_, &request), &request);
  }
  Status exchange(const Blocks& to_send, const Blocks& to_receive) override {
    if (started()) return after(start_exchange(to_send, to_receive, 0), 0);
    gives(to_send);
    return status_of(mpi().Alltoallv(to_send.data, to_send.bytes, to_send.offsets, byte_type(), to_receive.data, to_receive.bytes,
                                     to_receive.offsets, byte_type(), comm_));
  }
  Status allgather_blocks(const Blocks& blocks) override {
    if (started()) return after(start_allgather_blocks(blocks, 0), 0);
    gives(size_t(blocks.bytes[rank_]), others());
    return status_of(
        mpi().Allgatherv(MPI_IN_PLACE, 0, byte_type(), blocks.data, blocks.bytes, blocks.offsets, byte_type(), comm_));
  }
  Status gather_blocks(const Blocks& blocks, int root) override {
    gives(size_t(blocks.bytes[rank_]), rank_ != root);
    const void* own = rank_ == root ? MPI_IN_PLACE : static_cast<const char*>(blocks.data) + blocks.offsets[rank_];
    if (!started())
      return status_of(mpi().Gatherv(own, blocks.bytes[rank_], byte_type(), blocks.data, blocks.bytes, blocks.offsets,
                                     byte_type(), root, comm_));
    MPI_Request request;
    return ended(mpi().Igatherv(own, blocks.bytes[rank_], byte_type(), blocks.data, blocks.bytes, blocks.offsets, byte_type(),
                                root, comm_, &request),
                 &request);
  }

  Status start_exchange(const Blocks& to_send, const Blocks& to_receive, int slot) override {
    gives(to_send);
    return status_of(mpi().Ialltoallv(to_send.data, to_send.bytes, to_send.offsets, byte_type(), to_receive.data,
                                      to_receive.bytes, to_receive.offsets, byte_type(), comm_, &requests_[slot]));
  }
  Status start_allgather_blocks(const Blocks& blocks, int slot) override {
    gives(size_t(blocks.bytes[rank_]), others());
    return status_of(mpi().Iallgatherv(MPI_IN_PLACE, 0, byte_type(), blocks.data, blocks.bytes, blocks.offsets, byte_type(),
                                       comm_, &requests_[slot]));
  }

  Status start_reduce(const Request& request, void* vector, size_t count, int root, int slot) override {
    gives(count * request.element, rank_ != root);
    const void* own = rank_ == root ? MPI_IN_PLACE : vector;
    return status_of(
        mpi().Ireduce(own, vector, int(count), operands(request).type, operands(request).op, root, comm_, &requests_[slot]));
  }
  Status start_allreduce(const Request& request, void* vector, size_t count, int slot) override {
    gives(2 * count * request.element * others() / (others() + 1), 1);
    return status_of(mpi().Iallreduce(MPI_IN_PLACE, vector, int(count), operands(request).type, operands(request).op, comm_,
                                      &requests_[slot]));
  }
  Status start_bcast(void* data, size_t bytes, int root, int slot) override {
    gives(bytes, rank_ == root ? others() : 0);
    return status_of(mpi().Ibcast(data, int(bytes), byte_type(), root, comm_, &requests_[slot]));
  }
  Status finish(int slot) override { return ended(MPI_SUCCESS, &requests_[slot]); }

  Status start_receive(int from, void* data, size_t bytes, int slot) override {
    return status_of(mpi().Irecv(data, int(bytes), byte_type(), from, message_tag, all_, &requests_[slot]));
  }
  Status start_send(int to, const void* data, size_t bytes, int slot) override {
    return status_of(isend(to, data, int(bytes), message_tag, &requests_[slot]));
  }

  Status post_receive(int from, void* data, size_t bytes, int stage, uint32_t number) override {
    if (from == anybody) return posted_.want({data, int(bytes), message_tag + 1 + stage, number}) ? Status::good() : no_room();
    if (!posted_.reserve()) return no_room();
    const int code = mpi().Irecv(data, int(bytes), byte_type(), from, message_tag + 1 + stage, all_, posted_.next());
    return posted(code, number);
  }
  Status post_send(int to, const void* data, size_t bytes, int stage, uint32_t number) override {
    if (!posted_.reserve()) return no_room();
    return posted(isend(to, data, int(bytes), message_tag + 1 + stage, posted_.next()), number);
  }
  Status any_ended(uint64_t deadline, uint32_t* number) override {
    if (!posted_.has_ended()) STRETTO_TRY(take_ended(deadline));
    *number = none;
    if (posted_.has_ended()) {
      const Posted::Ended one = posted_.take();
      *number = one.number;
      ended_bytes_ = one.bytes;
    }
    return Status::good();
  }

  void revoke() override { revoke_comms(); }
  // What is waited for by slots; all else is of the program's buffers.
  bool settle() override {
    constexpr uint64_t patience_ns = 300'000'000;
    int ended = 0;
    for (const uint64_t begin = now_ns(); ended < slots + message_slots && now_ns() - begin < patience_ns;) {
      ended = 0;
      for (MPI_Request& request : requests_) {
        int flag = 0;
        mpi().Test(&request, &flag, MPI_STATUS_IGNORE);
        ended += flag;
      }
    }
    return ended == slots + message_slots;
  }

  Status add_up(uint64_t* number) override {
    MPI_Datatype type{};
    MPI_Op sum{};
    if (!predefined("MPI_UINT64_T", &type) || !predefined("MPI_SUM", &sum)) return refused("MPI cannot add numbers");
    return status_of(mpi().Allreduce(MPI_IN_PLACE, number, 1, type, sum, all_));
  }

  Status receive(int from, void* data, size_t bytes, size_t* came) override {
    const int tag = tag_of(peers_[from].received++);
    return in_parts({from, tag, 0, 0, came}, bytes, [&](size_t at, int part, MPI_Request* request) {
      return mpi().Irecv(static_cast<char*>(data) + at, part, byte_type(), from, tag, all_, request);
    });
  }
  Status send(int to, const void* data, size_t bytes) override {
    const uint32_t number = peers_[to].sent++;
    const size_t most = number % (tags / 2) == tags / 2 - 1 ? 0 : kept_unasked / size_t(ranks_);
    return in_parts({Part::nobody, tag_of(number), 0, 0, nullptr}, bytes, [&](size_t at, int part, MPI_Request* request) {
      return isend(to, static_cast<const char*>(data) + at, part, tag_of(number), request, most);
    });
  }
  Status finish_messages() override {
    const int pending = std::exchange(parts_.count, 0);
    for (int i = 0; i < pending; ++i) {
      const Part part = parts_.of[i];
      MPI_Status end;
      if (Status status = ended(MPI_SUCCESS, &parts_.requests[i], &end); !status.ok()) {
        for (int rest = i + 1; rest < pending; ++rest) withdraw(rest);
        if (status.code != Code::disagreed) return status;
        drop_rest(part);
        return collective::too_long(part.from);
      }
      if (part.from == Part::nobody || bytes_of(end) == part.full) continue;
      if (part.came != nullptr) *part.came = part.at + bytes_of(end);
      for (; i + 1 < pending && parts_.of[i + 1].at > 0; ++i) withdraw(i + 1);
    }
    return Status::good();
  }

 private:
  // A message between any two ranks. Senders may be calls ahead of a rank that waits for somebody else, whose MPI keeps what
  // comes meanwhile: so once in `most` bytes one is sent that ends only when it is received.
  int isend(int to, const void* data, int bytes, int tag, MPI_Request* request, size_t most = kept_unasked) {
    gives(size_t(bytes), 1);
    size_t& sent = peers_[to].unasked;
    sent += size_t(bytes);
    if (sent <= most) return mpi().Isend(data, bytes, byte_type(), to, tag, all_, request);
    sent = 0;
    return mpi().Issend(data, bytes, byte_type(), to, tag, all_, request);
  }

  // Of what has been started: when it is done.
  Status ended(int code, MPI_Request* request, MPI_Status* end = MPI_STATUS_IGNORE) {
    if (code != MPI_SUCCESS) return status_of(code);
    if (suspension() == nullptr) return status_of(mpi().Wait(request, end));
    return look_until([&](int* flag) { return mpi().Test(request, flag, end); });
  }
  Status after(const Status& start, int slot) { return start.ok() ? finish(slot) : start; }

  static Status no_room() { return no_memory("no memory for requests"); }
  Status posted(int code, uint32_t number) {
    if (code == MPI_SUCCESS) posted_.add(number);
    return status_of(code);
  }

  Status take_ended(uint64_t deadline) {
    Posted& p = posted_;
    if (p.count + p.wanted_count == 0) return refused("no message is under way");
    int found = 0;
    auto test = [&](int* flag) {
      int code = take_wanted();
      found = 0;
      if (code == MPI_SUCCESS && p.count > 0 && !p.has_ended())
        code = mpi().Testsome(p.count, p.requests.get(), &found, p.indices.get(), p.statuses.get());
      *flag = p.has_ended() || (found != 0 && found != MPI_UNDEFINED) || (deadline != 0 && now_ns() >= deadline);
      return code;
    };
    const Status status = look_until(test);
    if (status.ok() && found != 0 && found != MPI_UNDEFINED) p.end(found, bytes_of);
    return status;
  }

  // What anybody may send is looked for: MPICH 5.0 over UCX loses messages that come before a receive with MPI_ANY_SOURCE is
  // posted, on nodes of several ranks.
  int take_wanted() {
    for (int i = 0; i < posted_.wanted_count; ++i) {
      const Posted::Wanted& one = posted_.wanted[i];
      if (i > 0 && one.tag == posted_.wanted[i - 1].tag) continue;
      int flag = 0;
      MPI_Status status;
      int code = mpi().Iprobe(MPI_ANY_SOURCE, one.tag, all_, &flag, &status);
      if (code != MPI_SUCCESS) return code;
      if (!flag) continue;
      code = mpi().Recv(one.data, one.bytes, byte_type(), status.MPI_SOURCE, one.tag, all_, MPI_STATUS_IGNORE);
      posted_.end_wanted(i, bytes_of(status));
      return code;
    }
    return MPI_SUCCESS;
  }

  // Until test(&flag) says that it is done. Who waits for long sleeps between its looks, as what it waits for may need the CPU,
  // but not while others may wait for their one-sided calls to be served here.
  template <class Test>
  Status look_until(Test test) {
    struct Asked {
      Test& test;
      int code, flag;
      bool ask() { return code = test(&flag), code != MPI_SUCCESS || flag != 0; }
    } asked{test, MPI_SUCCESS, 0};
    if (suspension() != nullptr) {
      suspension()->until_done([](void* context) { return static_cast<Asked*>(context)->ask(); }, &asked);
      return status_of(asked.code);
    }
    constexpr uint64_t short_wait_ns = 100'000, between_looks_ns = 20'000;
    for (const uint64_t begin = now_ns(); !asked.ask();)
      if (now_ns() - begin < short_wait_ns || open_windows.load(std::memory_order_relaxed) > 0)
        platform::yield();
      else
        platform::nap(between_looks_ns);
    return status_of(asked.code);
  }

  static constexpr int message_tag = 0;  // behind it the stages, and behind those messages in parts

  // Messages in parts have tags of their own, by their number between two ranks: a receiver with room for more parts than come
  // must not get those of the next message. No sender is half of the tags ahead, as it waits so often until one has been
  // received.
  static constexpr uint32_t tags = 1024;
  static constexpr int first_tag = message_tag + 1 + stages;
  static_assert(first_tag + tags <= 32767);  // all that every MPI allows
  static constexpr int tag_of(uint32_t number) { return first_tag + int(number % tags); }

  static constexpr size_t largest_part = size_t(1) << 30;  // of a message, whose bytes MPI counts by ints

  // Calls start(offset, bytes, request) for each part of a message, of which `part` holds what all have in common. How long a
  // full one is depends on where it begins alone: what a late rank's MPI can keep goes unasked.
  template <class Start>
  Status in_parts(Part part, size_t bytes, Start start) {
    for (size_t length;; part.at += length) {
      part.full = full_part(part.at);
      length = std::min(part.full, bytes - part.at);
      if (!parts_.reserve()) return no_room();
      STRETTO_TRY(status_of(start(part.at, int(length), parts_.next())));
      parts_.add(part);
      if (length < part.full) return Status::good();
    }
  }
  size_t full_part(size_t at) const { return at < kept_unasked / size_t(ranks_) ? sent_unasked : largest_part; }

  // Of a message that has ended before: nothing will come.
  void withdraw(int i) {
    if (parts_.of[i].from == Part::nobody) return;
    mpi().Cancel(&parts_.requests[i]);
    mpi().Wait(&parts_.requests[i], MPI_STATUS_IGNORE);
  }

  // What may be left of a message that was too long: some MPI do not end while there are messages for a rank that has ended.
  void drop_rest(const Part& part) {
    constexpr uint64_t patience_ns = 100'000'000;
    size_t at = part.at;
    for (uint64_t begin = now_ns(); now_ns() - begin < patience_ns;) {
      int flag = 0;
      MPI_Status found;
      if (mpi().Iprobe(part.from, part.tag, all_, &flag, &found) != MPI_SUCCESS) return;
      if (!flag) continue;
      at += full_part(at);
      const size_t bytes = bytes_of(found);
      mpi().Recv(nullptr, 0, byte_type(), part.from, part.tag, all_, MPI_STATUS_IGNORE);
      if (bytes < full_part(at)) return;
      begin = now_ns();
    }
  }

  size_t others() const { return size_t(size_ - 1); }
  // The call in which a nonblocking one goes on is another.
  void gives(size_t bytes, size_t times) const {
    if (!started()) given_to_other_nodes += bytes * times;
  }
  void gives(const Blocks& blocks) const {
    for (int i = 0; i < size_; ++i)
      if (i != rank_) gives(size_t(blocks.bytes[i]), 1);
  }

  int rank_ = 0, size_ = 1;  // of comm_
  int ranks_ = 1;            // of all_
  MPI_Request requests_[slots + message_slots];
  Parts parts_;
  Posted posted_;
  std::unique_ptr<Peer[]> peers_;
};

}  // namespace

bool reserve_rail() {
  std::lock_guard<std::mutex> lock(rails().mutex);
  if (rails().taken == most_rails) return false;
  ++rails().taken;
  return true;
}

void return_rail() {
  std::lock_guard<std::mutex> lock(rails().mutex);
  --rails().taken;
}

std::unique_ptr<collective::Links> make_links(MPI_Comm rail, MPI_Comm all) {
  int ranks = 0;
  mpi().Comm_size(all, &ranks);
  std::unique_ptr<Rail::Peer[]> peers(new (std::nothrow) Rail::Peer[size_t(ranks)]());
  if (peers == nullptr) return nullptr;
  return std::unique_ptr<collective::Links>(new (std::nothrow) Rail(rail, all, std::move(peers)));
}

void free_rails() {
  for (RailComms* one = rails().newest; one != nullptr; one = one->next()) one->free_comms();
}

}  // namespace stretto::shim
