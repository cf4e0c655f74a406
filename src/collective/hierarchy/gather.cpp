// Gather and gatherv over nodes, leader: the root's node gathers while the messages of the others are on their way. A node with
// few bytes gathers them to its first rank, which sends one message; else its ranks send to the root themselves (rooted.hpp).
// What a node gives leaves it once.
#include <string.h>

#include "collective/hierarchy/rooted.hpp"
#include "collective/hierarchy/rows.hpp"

namespace stretto::collective {
namespace {

size_t given(const Request& request) {
  if (request.kind == Kind::gather) return request.bytes();
  return request.gives ? request.gives->bytes : 0;
}

class ClusterGather : Rooted {
 public:
  ClusterGather(Cluster& cluster, const Request& request)
      : Rooted(cluster, request.root, request.gets, given(request), request.kind == Kind::gather), request_(request) {}

  Status run() {
    if (known_ && block_ == 0) return Status::good();
    if (!here()) return give();
    if (is_root()) STRETTO_TRY(expect_messages());
    Piece* const gets = is_root() ? local_pieces() : nullptr;
    STRETTO_TRY(in_node(root_local_, request_.gives, gets));
    if (gets == nullptr) return Status::good();
    for (int l = 0; l < place_.local_size; ++l) request_.came(place_.rank_at(place_.node, l), gets[l].bytes);
    return take_messages();
  }

 private:
  Status in_node(int root, const Piece* gives, Piece* gets) {
    return cluster_.ship_in_node(request_.kind, root, known_ ? block_ : 0, gives, gets);
  }

  Status give() {
    Piece own{request_.gives->data, block_};
    if (own.bytes == 0) return Status::good();
    if (one_message_here()) {
      STRETTO_TRY(in_node(0, &own, place_.leads(0) ? stacked_pieces(cluster_.room()) : nullptr));
      if (!place_.leads(0)) return Status::good();
      own = {cluster_.room(), total_of(place_.node)};
    }
    STRETTO_TRY(cluster_.links->send(root_, own.data, own.bytes));
    return cluster_.links->finish_messages();
  }

  Status expect_messages() {
    char* room = cluster_.room();
    return for_messages(
        [&](int n, size_t bytes) {
          void* to = joined(n) ? of(n, 0).data : room;
          room += joined(n) ? 0 : bytes;
          return cluster_.links->receive(place_.rank_at(n, 0), to, bytes, nullptr);
        },
        [&](int n, int l) {
          const int r = place_.rank_at(n, l);
          return cluster_.links->receive(r, of(n, l).data, of(n, l).bytes, &request_.gets[r].bytes);
        });
  }

  Status take_messages() {
    STRETTO_TRY(cluster_.links->finish_messages());
    const char* room = cluster_.room();
    return for_messages(
        [&](int n, size_t) {
          if (joined(n)) return Status::good();
          for (int l = 0; l < place_.ranks_on(n); room += of(n, l++).bytes)
            if (of(n, l).bytes > 0) memcpy(of(n, l).data, room, of(n, l).bytes);
          return Status::good();
        },
        [](int, int) { return Status::good(); });
  }

  const Request& request_;
};

}  // namespace

Status gather_leader(Cluster& cluster, const Request& request) {
  return ClusterGather(cluster, request).run();
}

}  // namespace stretto::collective
