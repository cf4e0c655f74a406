// Scatter and scatterv over nodes, leader: the root's messages are on their way while its node scatters. A node that gets few
// bytes gets them as one message to its first rank, which scatters them; else its ranks receive from the root themselves
// (rooted.hpp). What a node gets enters it once.
#include <string.h>

#include "collective/hierarchy/rooted.hpp"
#include "collective/hierarchy/rows.hpp"

namespace stretto::collective {
namespace {

size_t got(const Cluster& cluster, const Request& request) {
  if (request.kind == Kind::scatter) return request.bytes() / size_t(cluster.place.size);
  return request.gets ? request.gets[request.root].bytes : 0;
}

class ClusterScatter : Rooted {
 public:
  ClusterScatter(Cluster& cluster, const Request& request)
      : Rooted(cluster, request.root, request.gives, got(cluster, request), request.kind == Kind::scatter), request_(request) {}

  Status run() {
    if (known_ && block_ == 0) return Status::good();
    if (!here()) return get();
    if (is_root()) STRETTO_TRY(send_messages());
    STRETTO_TRY(in_node(root_local_, is_root() ? local_pieces() : nullptr));
    return is_root() ? cluster_.links->finish_messages() : Status::good();
  }

 private:
  Status in_node(int root, const Piece* gives) {
    PerRank<Piece> gets(cluster_.lists);
    std::fill_n(gets.of, place_.local_size, Piece{});
    if (request_.gets) gets[root] = request_.gets[root_];
    const Status status = cluster_.ship_in_node(request_.kind, root, known_ ? block_ * size_t(place_.local_size) : 0, gives,
                                                request_.gets ? gets.of : nullptr);
    request_.came(root_, gets[root].bytes);
    return status;
  }

  Status send_messages() {
    char* room = cluster_.room();
    return for_messages(
        [&](int n, size_t bytes) {
          if (joined(n)) return cluster_.links->send(place_.rank_at(n, 0), of(n, 0).data, bytes);
          const char* packed = room;
          for (int l = 0; l < place_.ranks_on(n); room += of(n, l++).bytes)
            if (of(n, l).bytes > 0) memcpy(room, of(n, l).data, of(n, l).bytes);
          return cluster_.links->send(place_.rank_at(n, 0), packed, bytes);
        },
        [&](int n, int l) { return cluster_.links->send(place_.rank_at(n, l), of(n, l).data, of(n, l).bytes); });
  }

  Status get() {
    if (block_ == 0) return Status::good();
    if (!one_message_here()) return receive(request_.gets[root_].data, block_, &request_.gets[root_].bytes);
    if (place_.leads(0)) STRETTO_TRY(receive(cluster_.room(), total_of(place_.node), nullptr));
    return in_node(0, place_.leads(0) ? stacked_pieces(cluster_.room()) : nullptr);
  }

  Status receive(void* data, size_t bytes, size_t* came) {
    STRETTO_TRY(cluster_.links->receive(root_, data, bytes, came));
    return cluster_.links->finish_messages();
  }

  const Request& request_;
};

}  // namespace

Status scatter_leader(Cluster& cluster, const Request& request) {
  return ClusterScatter(cluster, request).run();
}

}  // namespace stretto::collective
