// Where the buffers of a call lie.
#include "platform/device_memory.hpp"
#include "shim/profile/call.hpp"

namespace stretto::shim::profile {

namespace {
constexpr uint8_t nowhere = 15;
}  // namespace

uint8_t place_of(const void* buffer) {
  if (buffer == nullptr || buffer == MPI_IN_PLACE || buffer == MPI_BOTTOM) return nowhere;
  return platform::memory_place(buffer);
}

void set_places(Call& call, const void* send, const void* receive) {
  call.facts.location = uint8_t(place_of(send) | place_of(receive) << 4);
}

}  // namespace stretto::shim::profile
