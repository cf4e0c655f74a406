#include <string.h>

#include "kernels/dispatch.hpp"

namespace stretto::kernels {

void copy(void* to, const void* from, size_t bytes, Store store) {
  if (bytes == 0) return;
  if (store == Store::cached)
    memcpy(to, from, bytes);
  else
    current().stream(to, from, bytes);
}

}  // namespace stretto::kernels
