// A cluster: the ranks of one communicator that spans nodes, as one of them sees it. All that a hierarchical algorithm works
// with.
//
// Inside a node the engine runs a collective of Stretto; between nodes MPI does, on rails. Rail l is the ranks with local number
// l, one per node, numbered like the nodes. Rails that not every node has a rank for do not exist.
#pragma once
#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "collective/board.hpp"
#include "collective/hierarchy/placement.hpp"
#include "collective/lists.hpp"
#include "collective/patterns/range.hpp"
#include "collective/request.hpp"
#include "collective/waiter.hpp"

namespace stretto::collective {

inline Status too_long(int from) {
  return disagreed("a message between nodes is longer than the room for it", from);
}

// The stages between nodes, on this rank's rail: collective over its ranks, in the same order on all of them. Sizes are in bytes
// and fit an int. What is started in a slot is finished before the slot is used again. A rank without a rail has messages alone.
class Links {
 public:
  static constexpr int slots = 4;
  virtual ~Links() = default;

  // Bytes of a message that an MPI over TCP sends without asking its receiver first (Open MPI: 64 KiB with its header; of one
  // that is a little longer all but the end). The answer to such a question waits behind whatever the receiver's node is sending:
  // where all nodes send at once, longer messages take up to three times as long.
  static constexpr size_t sent_unasked = size_t(60) << 10;
  // A late rank's MPI has to keep what was sent unasked: so not more than this, in one call or several.
  static constexpr size_t kept_unasked = size_t(32) << 20;

  // Between begin_started() and end_started() the stages are those of a nonblocking collective: each is started by a nonblocking
  // call of MPI, and `suspension` returns when it is done; null: the thread waits. On all ranks of the rail alike.
  void begin_started(Suspension* suspension) {
    started_ = true;
    suspension_ = suspension;
  }
  void end_started() {
    started_ = false;
    suspension_ = nullptr;
  }

  virtual Status barrier() = 0;
  virtual Status gather(const void* own, void* all, size_t bytes, int root) = 0;  // `all` is used on the root only
  virtual Status allgather(const void* own, void* all, size_t bytes) = 0;
  // Block i of this rank's to_send goes to node i; what node i sends here arrives as block i of to_receive.
  struct Blocks {
    void* data;
    const int *bytes, *offsets;
  };
  virtual Status exchange(const Blocks& to_send, const Blocks& to_receive) = 0;
  virtual Status allgather_blocks(const Blocks& blocks) = 0;         // each node has its own block, in place
  virtual Status gather_blocks(const Blocks& blocks, int root) = 0;  // the same to one node

  // Nonblocking forms; the blocks' numbers stay as they are until finish().
  virtual Status start_exchange(const Blocks& to_send, const Blocks& to_receive, int slot) = 0;
  virtual Status start_allgather_blocks(const Blocks& blocks, int slot) = 0;

  // MPI's own arithmetic, with the datatype and operation of the call (request.host).
  virtual Status start_reduce(const Request& request, void* vector, size_t count, int root, int slot) = 0;  // in place
  virtual Status start_allreduce(const Request& request, void* vector, size_t count, int slot) = 0;
  virtual Status start_bcast(void* data, size_t bytes, int root, int slot) = 0;
  virtual Status finish(int slot) = 0;

  // Messages of at most 1 GiB between any two ranks of the communicator, in order. Their slots stand behind the others.
  static constexpr int message_slots = 12;
  virtual Status start_receive(int from, void* data, size_t bytes, int slot) = 0;
  virtual Status start_send(int to, const void* data, size_t bytes, int slot) = 0;

  // Messages of at most 1 GiB that end in any order, under numbers of the caller's. Of each stage those between two ranks are
  // received in the order in which they were sent; `anybody` may have sent what is received.
  static constexpr int stages = 24 << 10;  // their numbers are below this
  static constexpr uint32_t none = UINT32_MAX;
  static constexpr int anybody = -1;
  virtual Status post_receive(int from, void* data, size_t bytes, int stage, uint32_t number) = 0;
  virtual Status post_send(int to, const void* data, size_t bytes, int stage, uint32_t number) = 0;
  // The number of one that has ended, each once. Waits for one, until `deadline` of now_ns() at most if it is not 0: then `none`.
  virtual Status any_ended(uint64_t deadline, uint32_t* number) = 0;
  // Bytes of the message that any_ended() told of last, if it was received: fewer than there is room for, or as many.
  size_t ended_bytes() const { return ended_bytes_; }

  // What waits here ends with Code::revoked, on all ranks; nobody waits for that.
  virtual void revoke() = 0;
  // Then, where this rank has left the call in which it was: waits a moment for what it had started. Whether that has ended.
  virtual bool settle() = 0;

  // Adds up a number over all ranks of the communicator. Of blocking collectives only.
  virtual Status add_up(uint64_t* number) = 0;

  // Messages of any size, begun here and ended all together. One may be shorter than the room for it, as in MPI; where one is
  // longer its end is lost, and finish_messages() says so. By then *came is what came; null: nobody asks.
  virtual Status receive(int from, void* data, size_t bytes, size_t* came) = 0;
  virtual Status send(int to, const void* data, size_t bytes) = 0;
  virtual Status finish_messages() = 0;

 protected:
  bool started() const { return started_; }
  Suspension* suspension() const { return suspension_; }

  size_t ended_bytes_ = 0;

 private:
  bool started_ = false;
  Suspension* suspension_ = nullptr;
};

class Cluster {
 public:
  // Vectors are cut into slices of at most this many bytes where a stage works in the room of this rank.
  static constexpr size_t slice_bytes = size_t(1) << 20;
  static constexpr size_t room_bytes = size_t(4) << 20;

  // in_node: runs a request on the ranks of this node, in which root is a local number. It never declines.
  using InNode = Status (*)(void* context, const Request& request);

  // board: of this node's ranks; null: nobody ever comes late there.
  Cluster(Placement where, Links* between, InNode in_node, void* context, Board* board)
      : place(std::move(where)),
        links(between),
        lists(std::min(place.size, max_team)),
        in_node_(in_node),
        context_(context),
        board_(board) {
    size_t n = size_t(place.nodes);
    inputs_.reset(new (std::nothrow) const void*[n]);
    numbers_.reset(new (std::nothrow) int[Links::slots * 5 * n]);
    room_.reset(new (std::nothrow) char[room_bytes]);
    vector_.reset(new (std::nothrow) char[slice_bytes]);
  }
  bool usable() const { return lists.usable() && inputs_ && numbers_ && room_ && vector_ && block_most() > 0; }
  // A call has ended in its midst: what was on its way may still be written here, however late, so this is never freed.
  void leave_memory_behind() {
    (void)numbers_.release();
    (void)room_.release();
    (void)vector_.release();
  }

  const Placement place;
  Links* const links;
  Lists lists;      // for the ranks of a node, or for all where they are no more than max_team
  int domains = 1;  // over which the ranks of each node are spread, the same on all: the fewest

  // What the first ranks of the nodes remember of allreduce_presence: who decides next, the same on all; and how long a call took
  // to which all had come.
  struct Attended {
    int decider = 0;
    double ns_per_byte = 1;
  } attended;

  Status run_in_node(const Request& request);
  // Bytes of the rank with local number `root` for all of the node, where `data` is.
  Status bcast_in_node(int root, void* data, size_t bytes);
  // Pieces moved inside the node: `count` as the request's, `root` a local number.
  Status ship_in_node(Kind kind, int root, size_t count, const Piece* gives, Piece* gets);

  // A collective that is told where its ranks have come to, the same on all ranks: this one has; whether its node's others have.
  void come() {
    if (board_ != nullptr) board_->ranks[place.local].came.store(++came_, std::memory_order_relaxed);
  }
  bool node_is_here() const {
    for (int l = 0; board_ != nullptr && l < place.local_size; ++l)
      if (!reached(board_->ranks[l].came.load(std::memory_order_relaxed), came_)) return false;
    return true;
  }

  // The rank, by its local number, that takes part between nodes in a message of rank `root` for all: the root in its own node;
  // elsewhere the one that did so last, or where that has not come within so long, whoever is there. All ranks of the cluster ask
  // once for a message, and leave it by leave_message().
  int carrier_from(int root, uint64_t patience_ns);
  Status leave_message();
  uint64_t messages() const { return messages_; }  // how many there have been

  const void** inputs() { return inputs_.get(); }  // room for one pointer per node
  int* numbers(int slot, int i) {
    return &numbers_[(slot * 5 + i) * place.nodes];
  }  // for each slot five arrays, one number per node
  char* room() { return room_.get(); }
  char* vector() { return vector_.get(); }                                                          // slice_bytes
  size_t block_most() const { return room_bytes / size_t(place.nodes) / cache_line * cache_line; }  // one per node fits the room

 private:
  InNode in_node_;
  void* context_;
  Board* board_;
  uint64_t came_ = 0, messages_ = 0;
  int usual_carrier_ = 0;
  std::unique_ptr<const void*[]> inputs_;
  std::unique_ptr<int[]> numbers_;
  std::unique_ptr<char[]> room_, vector_;
};

}  // namespace stretto::collective
