// A communicator over nodes whose ranks are threads: a TeamOfThreads per node, and rails that stand in for MPI.
#pragma once
#include <barrier>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <tuple>

#include "base/clock.hpp"
#include "collective/hierarchy/rows.hpp"
#include "team_of_threads.hpp"

namespace stretto::collective {

// Where ranks may be, by names of nodes.
inline const std::vector<std::vector<int>> placements = {
    {0, 0, 1, 1},              // block
    {0, 1, 0, 1},              // cyclic
    {5, 5, 5, 2, 9, 9},        // uneven
    {1, 0, 0, 1, 1},           // neither
    {3, 3},                    // one node only
    {0, 1, 1},                 // a rank alone
    {0, 1, 2, 3, 3, 2, 1, 0},  // four nodes, folded
    {0, 1, 2},                 // ranks alone
};

// What the ranks of one rail share.
struct RailOfThreads {
  explicit RailOfThreads(int nodes) : sync(nodes), blocks(size_t(nodes)), data(size_t(nodes)) {}
  std::barrier<> sync;
  std::vector<Links::Blocks> blocks;
  std::vector<void*> data;
};

// Messages between the ranks of a cluster: what is sent is kept until it is asked for.
class MailOfThreads {
 public:
  void send(int from, int to, const void* data, size_t bytes, int stage = -1) {
    auto* begin = static_cast<const unsigned char*>(data);
    std::lock_guard<std::mutex> lock(mutex_);
    boxes_[{from, to, stage}].emplace_back(begin, begin + bytes);
    came_.notify_all();
  }
  std::vector<unsigned char> receive(int from, int to, int stage = -1) {
    std::unique_lock<std::mutex> lock(mutex_);
    auto& box = boxes_[{from, to, stage}];
    came_.wait(lock, [&] { return !box.empty(); });
    std::vector<unsigned char> message = std::move(box.front());
    box.pop_front();
    return message;
  }
  bool has(int from, int to, int stage) {
    std::lock_guard<std::mutex> lock(mutex_);
    return !boxes_[{from, to, stage}].empty();
  }
  bool empty() const {
    return std::all_of(boxes_.begin(), boxes_.end(), [](const auto& one) { return one.second.empty(); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::map<std::tuple<int, int, int>, std::deque<std::vector<unsigned char>>> boxes_;
};

// One rank's stages: everybody shows where its data is, then takes from the others what is its own. What is started is done at
// once, which MPI may do as well.
class LinksOfThreads final : public Links {
 public:
  // rail: null where this rank has none.
  LinksOfThreads(RailOfThreads* rail, const Placement& place, MailOfThreads& mail)
      : rail_(rail), node_(place.node), nodes_(place.nodes), rank_(place.rank), size_(place.size), mail_(mail) {}

  Status barrier() override {
    rail_->sync.arrive_and_wait();
    return Status::good();
  }
  Status gather(const void* own, void* all, size_t bytes, int root) override {
    return around(const_cast<void*>(own), [&] {
      for (int i = 0; node_ == root && i < nodes_; ++i)
        memcpy(static_cast<char*>(all) + size_t(i) * bytes, rail_->data[size_t(i)], bytes);
    });
  }
  Status allgather(const void* own, void* all, size_t bytes) override {
    return around(const_cast<void*>(own), [&] {
      for (int i = 0; i < nodes_; ++i) memcpy(static_cast<char*>(all) + size_t(i) * bytes, rail_->data[size_t(i)], bytes);
    });
  }
  Status exchange(const Blocks& to_send, const Blocks& to_receive) override {
    rail_->blocks[size_t(node_)] = to_send;
    return around(to_send.data, [&] {
      for (int i = 0; i < nodes_; ++i) {
        const Blocks& theirs = rail_->blocks[size_t(i)];
        EXPECT_EQ(theirs.bytes[node_], to_receive.bytes[i]);
        memcpy(static_cast<char*>(to_receive.data) + to_receive.offsets[i],
               static_cast<char*>(theirs.data) + theirs.offsets[node_], size_t(theirs.bytes[node_]));
      }
    });
  }
  Status allgather_blocks(const Blocks& blocks) override {
    return around(blocks.data, [&] { take_blocks(blocks); });
  }
  Status gather_blocks(const Blocks& blocks, int root) override {
    return around(blocks.data, [&] {
      if (node_ == root) take_blocks(blocks);
    });
  }
  Status start_exchange(const Blocks& to_send, const Blocks& to_receive, int slot) override {
    begin(slot);
    return exchange(to_send, to_receive);
  }
  Status start_allgather_blocks(const Blocks& blocks, int slot) override {
    begin(slot);
    return allgather_blocks(blocks);
  }
  Status start_reduce(const Request& request, void* vector, size_t count, int root, int slot) override {
    return reduce(request, vector, count, node_ == root, slot);
  }
  Status start_allreduce(const Request& request, void* vector, size_t count, int slot) override {
    return reduce(request, vector, count, true, slot);
  }
  Status start_bcast(void* data, size_t bytes, int root, int slot) override {
    begin(slot);
    return around(data, [&] {
      if (node_ != root) memcpy(data, rail_->data[size_t(root)], bytes);
    });
  }
  Status finish(int slot) override {
    EXPECT_TRUE(started_[slot]) << "nothing was started in this slot";
    started_[slot] = false;
    if (slot < slots) return Status::good();
    const Message& one = messages_[slot - slots];
    return one.sends ? sent(one) : received(slot);
  }
  void revoke() override {}
  bool settle() override { return true; }
  Status add_up(uint64_t*) override { return refused("no algorithm does this"); }
  Status start_receive(int from, void* data, size_t bytes, int slot) override {
    begin(slot);
    messages_[slot - slots] = {false, {data, bytes}, from, {}};
    receiving_[from].push_back(slot);
    return Status::good();
  }
  // Gone at once, as far as the receiver is concerned; to be left alone until it is finished all the same.
  Status start_send(int to, const void* data, size_t bytes, int slot) override {
    begin(slot);
    auto* bytes_of = static_cast<const unsigned char*>(data);
    messages_[slot - slots] = {true, {const_cast<void*>(data), bytes}, to, {bytes_of, bytes_of + bytes}};
    mail_.send(rank_, to, data, bytes);
    return Status::good();
  }
  // What is posted ends in no order that could be relied on: a send some time after it has gone.
  Status post_receive(int from, void* data, size_t bytes, int stage, uint32_t number) override {
    posted_[{from, stage}].push_back({number, {data, bytes}});
    return Status::good();
  }
  Status post_send(int to, const void* data, size_t bytes, int stage, uint32_t number) override {
    auto* begin = static_cast<const unsigned char*>(data);
    mail_.send(rank_, to, data, bytes, stage);
    gone_.push_back({number, {const_cast<void*>(data), bytes}, {begin, begin + bytes}});
    return Status::good();
  }
  Status any_ended(uint64_t deadline, uint32_t* number) override {
    for (*number = none;;) {
      if (!gone_.empty() && ++looks_ % 3 == 0) {
        const auto one = gone_.begin() + long(looks_ % gone_.size());
        EXPECT_EQ(memcmp(one->memory.data, one->sent.data(), one->sent.size()), 0) << "written to while it was sent";
        *number = one->number;
        gone_.erase(one);
        return Status::good();
      }
      for (auto& [from, waiting] : posted_) {
        const int sender = waiting.empty() ? none_yet : sender_of(from.first, from.second);
        if (sender == none_yet) continue;
        const Bytes message = mail_.receive(sender, rank_, from.second);
        const Posted one = waiting.front();
        waiting.pop_front();
        *number = one.number;
        ended_bytes_ = message.size();
        if (message.size() > one.memory.bytes) return disagreed("too long", sender);
        if (!message.empty()) memcpy(one.memory.data, message.data(), message.size());
        return Status::good();
      }
      if (deadline != 0 && now_ns() >= deadline) return Status::good();
      std::this_thread::yield();
    }
  }
  Status receive(int from, void* data, size_t bytes, size_t* came) override {
    expected_.push_back(Expected{from, {data, bytes}, came});
    return Status::good();
  }
  Status send(int to, const void* data, size_t bytes) override {
    mail_.send(rank_, to, data, bytes);
    unfinished_ = true;
    return Status::good();
  }
  Status finish_messages() override {
    for (const auto& [from, piece, came] : expected_) {
      std::vector<unsigned char> message = mail_.receive(from, rank_);
      if (message.size() > piece.bytes) return disagreed("too long", from);
      memcpy(piece.data, message.data(), message.size());
      if (came != nullptr) *came = message.size();
    }
    expected_.clear();
    unfinished_ = false;
    return Status::good();
  }
  bool idle() const {
    return expected_.empty() && !unfinished_ && gone_.empty() &&
           std::all_of(posted_.begin(), posted_.end(), [](const auto& one) { return one.second.empty(); }) &&
           std::none_of(std::begin(started_), std::end(started_), [](bool one) { return one; });
  }

 private:
  template <class Take>
  Status around(void* own, Take take) {
    rail_->data[size_t(node_)] = own;
    rail_->sync.arrive_and_wait();
    take();
    rail_->sync.arrive_and_wait();
    return Status::good();
  }
  void take_blocks(const Blocks& blocks) {
    for (int i = 0; i < nodes_; ++i)
      if (i != node_)
        memcpy(static_cast<char*>(blocks.data) + blocks.offsets[i],
               static_cast<char*>(rail_->data[size_t(i)]) + blocks.offsets[i], size_t(blocks.bytes[i]));
  }
  Status reduce(const Request& request, void* vector, size_t count, bool receives, int slot) {
    begin(slot);
    Bytes result(count * request.element);
    Status status = around(vector, [&] {
      std::vector<const void*> inputs(rail_->data.begin(), rail_->data.end());
      kernels::reduce(request.op, request.type, inputs.data(), nodes_, result.data(), count);
    });
    if (receives) memcpy(vector, result.data(), result.size());
    return status;
  }
  static constexpr int none_yet = -2;
  // Whose message can be received, of those that are expected from this rank, or from anybody.
  int sender_of(int from, int stage) {
    for (int r = from == anybody ? 0 : from; r < (from == anybody ? size_ : from + 1); ++r)
      if (mail_.has(r, rank_, stage)) return r;
    return none_yet;
  }
  void begin(int slot) {
    EXPECT_FALSE(started_[slot]) << "the slot is in use";
    started_[slot] = true;
  }

  using Bytes = std::vector<unsigned char>;
  struct Message {
    bool sends = false;
    Piece memory{};
    int peer = 0;
    Bytes sent;
  };
  Status sent(const Message& one) {
    EXPECT_EQ(memcmp(one.memory.data, one.sent.data(), one.sent.size()), 0) << "written to while it was sent";
    return Status::good();
  }
  struct Posted {
    uint32_t number;
    Piece memory;
    Bytes sent{};
  };
  // Messages are taken in the order in which their receives were begun.
  Status received(int slot) {
    const Message& one = messages_[slot - slots];
    auto& waiting = receiving_[one.peer];
    EXPECT_EQ(waiting.front(), slot) << "not the first that was begun: this stand-in knows no other order";
    waiting.pop_front();
    Bytes message = mail_.receive(one.peer, rank_);
    EXPECT_EQ(message.size(), one.memory.bytes);
    memcpy(one.memory.data, message.data(), std::min(message.size(), one.memory.bytes));
    return Status::good();
  }
  RailOfThreads* const rail_;
  const int node_, nodes_, rank_, size_;
  MailOfThreads& mail_;
  struct Expected {
    int from;
    Piece piece;
    size_t* came;
  };
  std::vector<Expected> expected_;
  bool unfinished_ = false;
  bool started_[slots + message_slots] = {};
  Message messages_[message_slots];
  std::map<int, std::deque<int>> receiving_;                  // slots by sender
  std::map<std::pair<int, int>, std::deque<Posted>> posted_;  // by sender and stage
  std::deque<Posted> gone_;
  size_t looks_ = 0;
};

// node_names[r]: where rank r is.
class ClusterOfThreads {
 public:
  explicit ClusterOfThreads(const std::vector<int>& node_names) {
    const int size = int(node_names.size());
    for (int r = 0; r < size; ++r) {
      Placement place;
      EXPECT_TRUE(place.find(node_names.data(), size, r));
      if (r == 0) make_nodes(place);
      RailOfThreads* rail = place.local < place.rails ? rails_[size_t(place.local)].get() : nullptr;
      auto links = std::make_unique<LinksOfThreads>(rail, place, mail_);
      Team& team = nodes_[size_t(place.node)]->team(place.local);
      clusters_.push_back(std::make_unique<Cluster>(std::move(place), links.get(), run_in_node, &team, &team.shared()));
      links_.push_back(std::move(links));
      EXPECT_TRUE(clusters_.back()->usable());
    }
  }
  int size() const { return int(clusters_.size()); }
  Cluster& cluster(int r) { return *clusters_[size_t(r)]; }
  MailOfThreads& mail() { return mail_; }

  void run(const std::function<Status(Cluster&)>& body) {
    std::vector<std::thread> threads;
    std::vector<Status> statuses(clusters_.size());
    for (size_t r = 0; r < clusters_.size(); ++r)
      threads.emplace_back([&, r] { run_in_little_stack([&] { statuses[r] = body(*clusters_[r]); }); });
    for (auto& thread : threads) thread.join();
    for (size_t r = 0; r < clusters_.size(); ++r) {
      EXPECT_TRUE(statuses[r].ok()) << "rank " << r << ": " << statuses[r].what;
      EXPECT_TRUE(links_[r]->idle()) << "rank " << r << " has left something unfinished";
    }
    EXPECT_TRUE(mail_.empty()) << "a message nobody asked for";
  }

 private:
  void make_nodes(const Placement& place) {
    std::vector<int> sizes(size_t(place.nodes), 0);
    for (int r = 0; r < place.size; ++r) ++sizes[size_t(place.node_of[r])];
    for (int ranks : sizes) nodes_.push_back(std::make_unique<TeamOfThreads>(ranks));
    for (int l = 0; l < place.rails; ++l) rails_.push_back(std::make_unique<RailOfThreads>(place.nodes));
  }
  static Status run_in_node(void* team, const Request& request) {
    Team& ranks = *static_cast<Team*>(team);
    switch (request.kind) {
      case Kind::barrier:
        return barrier_flat(ranks, request);
      case Kind::bcast:
        return request.bytes() <= slot_payload ? bcast_flat(ranks, request) : bcast_staged(ranks, request);
      case Kind::reduce:
        return request.bytes() <= slot_payload ? reduce_flat(ranks, request) : reduce_slices(ranks, request);
      case Kind::allreduce:
        return invalid("no such phase");
      default:
        return first_row(request).run(ranks, request);
    }
  }
  // Of its kind, that can do it.
  static const Algorithm& first_row(const Request& request) {
    const auto* row = std::begin(algorithms);
    while (row->kind != request.kind || row->max_bytes < request.bytes()) ++row;
    return *row;
  }

  std::vector<std::unique_ptr<TeamOfThreads>> nodes_;
  std::vector<std::unique_ptr<RailOfThreads>> rails_;
  MailOfThreads mail_;
  std::vector<std::unique_ptr<LinksOfThreads>> links_;
  std::vector<std::unique_ptr<Cluster>> clusters_;
};

}  // namespace stretto::collective
