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
    Piece gets[max_team] = {};
    if (request_.gets) gets[root] = request_.gets[root_];
    return cluster_.ship_in_node(request_.kind, root, known_ ? block_ * size_t(place_.local_size) : 0, gives,
                                 request_.gets ? gets : nullptr);
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
        [&](int n, int l) { return send(place_.rank_at(n, l), of(n, l)); });
  }

  Status get() {
    Piece own{request_.gets[root_].data, block_};
    const bool alone = surely_alone();
    if (alone) STRETTO_TRY(receive(root_, own));
    STRETTO_TRY(find_sizes());
    if (alone) return cluster_.links->finish_messages();
    const bool packed = one_message_here();
    if (packed) own = place_.leads(0) ? Piece{cluster_.room(), total_} : Piece{nullptr, 0};
    if (own.bytes > 0) {
      STRETTO_TRY(receive(root_, own));
      STRETTO_TRY(cluster_.links->finish_messages());
    }
    if (!packed || total_ == 0) return Status::good();
    return in_node(0, place_.leads(0) ? stacked_pieces(cluster_.room()) : nullptr);
  }

  const Request& request_;
};

}  // namespace

Status scatter_leader(Cluster& cluster, const Request& request) {
  return ClusterScatter(cluster, request).run();
}

}  // namespace stretto::collective
