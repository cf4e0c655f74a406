// Bcast, chain: the message travels slice by slice from the root's node along a chain of all nodes (chain.hpp). A carrier passes
// a slice on, then gives it to its node, while later ones come in; where some rank of its node has not come, it passes on all
// that comes first, and gives that as one. m bytes leave each node but the last, which sends nothing.
#include "collective/hierarchy/chain.hpp"
#include "collective/hierarchy/pieces.hpp"
#include "collective/hierarchy/rows.hpp"

namespace stretto::collective {
namespace {

class BcastAlongChain {
 public:
  BcastAlongChain(Cluster& cluster, const Request& request)
      : cluster_(cluster),
        request_(request),
        chain_(cluster, request.root),
        data_(static_cast<char*>(cluster.place.rank == request.root ? const_cast<void*>(request.input) : request.output)),
        slice_(chain_slice(request.bytes(), cluster.place.nodes)),
        count_(uint32_t((request.bytes() + slice_ - 1) / slice_)) {}

  Status run() {
    for (uint32_t i = 0; i < Chain::window; ++i) STRETTO_TRY(expect(i));
    cluster_.come();
    for (uint32_t passed = 0, given = 0; given < count_;)
      if (chain_.carries() && passed < count_ && (passed == given || !cluster_.node_is_here()))
        STRETTO_TRY(pass_on(passed++));
      else
        STRETTO_TRY(give_pieces(cluster_, chain_.local_carrier(), {data_, request_.bytes(), slice_}, passed, &given));
    return chain_.all_sent();
  }

 private:
  char* data(uint32_t i) const { return data_ + i * slice_; }
  size_t bytes(uint32_t i) const { return std::min(slice_, request_.bytes() - i * slice_); }

  Status expect(uint32_t i) {
    if (i >= count_ || chain_.at_head() || !chain_.carries()) return Status::good();
    return chain_.receive(chain_.before(), i, data(i), bytes(i));
  }

  Status pass_on(uint32_t i) {
    if (!chain_.at_head()) STRETTO_TRY(chain_.received(i));
    if (!chain_.at_tail()) {
      STRETTO_TRY(chain_.reusable(i));
      STRETTO_TRY(chain_.send(chain_.after(), i, data(i), bytes(i)));
    }
    return expect(i + Chain::window);
  }

  Cluster& cluster_;
  const Request& request_;
  Chain chain_;
  char* const data_;
  const size_t slice_;  // bytes
  const uint32_t count_;
};

}  // namespace

Status bcast_chain(Cluster& cluster, const Request& request) {
  return BcastAlongChain(cluster, request).run();
}

}  // namespace stretto::collective
