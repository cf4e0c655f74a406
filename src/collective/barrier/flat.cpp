// Barrier, flat: everybody announces an exchange without payload and waits for everybody's.
#include "collective/algorithms.hpp"
#include "collective/patterns/exchange.hpp"

namespace stretto::collective {

Status barrier_flat(Team& team, const Request&) {
  Exchange exchange(team);
  void* unused;
  STRETTO_TRY(exchange.claim(&unused));
  exchange.post();
  for (int r = 0; r < team.size; ++r) {
    const void* nothing;
    STRETTO_TRY(exchange.read(r, &nothing));
  }
  exchange.fetch_next();
  return Status::good();
}

}  // namespace stretto::collective
