#include "transport/make.hpp"

#include <string_view>

#include "transport/cma/cma.hpp"
#include "transport/local/local.hpp"

namespace stretto::transport {

std::unique_ptr<Transport> make(const char* name, const Team& team) {
  std::string_view wanted = name;
  if (wanted == "local") return make_local();
  if (wanted == "shm") return make_shm(team.stage, team.rank);
  if (wanted == "cma") return make_cma(team.pids, team.size, team.rank);
  if (wanted == "arena") return make_arena(team.arenas, team.size, team.rank);
  return nullptr;
}

}  // namespace stretto::transport
