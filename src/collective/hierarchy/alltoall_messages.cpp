// Alltoall over nodes, messages: for each pair of ranks on different nodes, copied nowhere but in place; for varying sizes too.
//
// A pair's blocks are cut into pieces that are sent unasked (Links::sent_unasked), and a rank sends its next piece of a block
// when the last one has gone and the other's has come. So the links carry pieces one after the other, and none waits for a
// question that stands behind others'; MPI's own messages of that size take 1.1 to 1.4 times what the link needs. Ranks meet in
// the order of a tournament: as many pairs at a time as there are lanes, the same for both. Whoever is there has exchanged all
// with whoever else is before the late ones come. The blocks of the own node come last, from buffer to buffer.
//
// Of blocks that vary a receiver may have more room than there is to come: a piece that is not full is the last of its lane.
#include <string.h>

#include "collective/hierarchy/pieces.hpp"
#include "collective/hierarchy/rows.hpp"

namespace stretto::collective {
namespace {

constexpr int most_lanes = 32;
constexpr int shared_up_to = 8;  // lanes, where there are fewer peers: of each pair up to
constexpr int most_shares = 4;
constexpr size_t width = Links::sent_unasked;  // of a piece
static_assert(2 * most_lanes * width <= Cluster::room_bytes);

class ByMessages {
 public:
  // varies: a receiver may have more room than there is to come.
  ByMessages(Cluster& cluster, const Request& request, bool varies)
      : cluster_(cluster),
        place_(cluster.place),
        request_(request),
        shares_(std::clamp(shared_up_to / std::max(place_.size - place_.largest, 1), 1, most_shares)),
        varies_(varies) {}

  Status run() {
    const int lanes = std::min((place_.size - place_.local_size) * shares_, most_lanes);
    for (int lane = 0; lane < lanes; ++lane) STRETTO_TRY(go_on(lane));
    while (under_way_ > 0) {
      uint32_t number;
      STRETTO_TRY(cluster_.links->any_ended(0, &number));
      Lane& lane = lanes_[number / 2];
      if (number % 2 == received && varies_) take(int(number / 2), cluster_.links->ended_bytes());
      --under_way_;
      if (--lane.under_way > 0) continue;
      lane.next += uint32_t(shares_);
      STRETTO_TRY(go_on(int(number / 2)));
    }
    STRETTO_TRY(alltoall_in_node(cluster_, request_));
    return outcome_;
  }

 private:
  static constexpr int nobody = -1;
  static constexpr uint32_t sent = 0, received = 1;
  // Carries pieces share, share + shares_, ... of what this rank and a peer give each other.
  struct Lane {
    int peer = nobody, share = 0;
    Piece room{};                      // for the peer's block
    uint32_t next = 0;                 // piece
    bool gives = false, gets = false;  // whether there are more
    int under_way = 0;                 // messages
  };

  // The next pieces of a lane, of its peer or the next one.
  Status go_on(int number) {
    Lane& lane = lanes_[number];
    while (lane.peer != nobody || take_peer(lane)) {
      const Range range = {lane.next * width, (lane.next + 1) * width};
      const Piece gives = cut(request_.gives[lane.peer], range), gets = cut(lane.room, range);
      if (!varies_) {
        lane.gives = gives.bytes > 0;
        lane.gets = gets.bytes > 0;
      }
      if (lane.gives || lane.gets) return swap(number, gives, gets);
      lane.peer = nobody;
    }
    return Status::good();
  }

  // At step i of a tournament ranks r and i - r meet.
  bool take_peer(Lane& lane) {
    for (; step_ < place_.size; ++step_, share_ = 0) {
      const int peer = (step_ - place_.rank + place_.size) % place_.size;
      if (place_.node_of[peer] == place_.node || share_ == shares_) continue;
      const Piece& room = request_.gets[peer];
      lane = {peer, share_, room, uint32_t(share_), request_.gives[peer].bytes > 0, room.bytes > 0, 0};
      ++share_;
      return true;
    }
    return false;
  }

  // For each lane room for a piece that is sent from a copy, and one for a piece that may be longer than there is room for.
  Piece stage(int which, int lane) { return {cluster_.room() + size_t(which * most_lanes + lane) * width, width}; }
  bool has_room(const Piece& gets) const { return !varies_ || gets.bytes == width; }

  // A piece of a block that varies has come.
  void take(int number, size_t bytes) {
    Lane& lane = lanes_[number];
    const size_t at = lane.next * width;
    const Piece gets = cut(lane.room, {at, at + width});
    if (bytes > gets.bytes) outcome_ = too_long(lane.peer);
    if (!has_room(gets) && gets.bytes > 0) memcpy(gets.data, stage(1, number).data, std::min(bytes, gets.bytes));
    lane.gets = bytes == width;
    if (!lane.gets) request_.came(lane.peer, at + bytes);
  }

  // In place, what is sent must be out of the way of what is received.
  Status swap(int number, const Piece& gives, const Piece& gets) {
    Lane& lane = lanes_[number];
    const void* data = gives.data;
    if (gives.data == gets.data && gives.bytes > 0) data = memcpy(stage(0, number).data, gives.data, gives.bytes);
    lane.under_way = lane.gets + lane.gives;
    under_way_ += lane.under_way;
    const uint32_t mark = uint32_t(number) * 2;
    if (lane.gets) {
      const Piece room = has_room(gets) ? gets : stage(1, number);
      STRETTO_TRY(cluster_.links->post_receive(lane.peer, room.data, room.bytes, lane.share, mark + received));
    }
    if (!lane.gives) return Status::good();
    lane.gives = gives.bytes == width;
    return cluster_.links->post_send(lane.peer, data, gives.bytes, lane.share, mark + sent);
  }

  Cluster& cluster_;
  const Placement& place_;
  const Request& request_;
  const int shares_;  // lanes of a pair, the same for all
  const bool varies_;
  Lane lanes_[most_lanes];
  int step_ = 0, share_ = 0;  // of the next lane
  int under_way_ = 0;         // messages
  Status outcome_;            // good, or that a message was too long
};

}  // namespace

Status alltoall_messages(Cluster& cluster, const Request& request) {
  return ByMessages(cluster, request, request.kind != Kind::alltoall).run();
}

Status exchange_messages(Cluster& cluster, const Piece* gives, Piece* gets) {
  Request request;
  request.kind = Kind::alltoallv;
  request.gives = gives;
  request.gets = gets;
  return ByMessages(cluster, request, false).run();
}

}  // namespace stretto::collective
