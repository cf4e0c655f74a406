#include <string.h>

#include "kernels/dispatch.hpp"
#include "kernels/watched.hpp"

namespace stretto::kernels {

void copy(void* to, const void* from, size_t bytes, Store store) {
  if (bytes == 0) return;
  if (store == Store::cached) {
    memcpy(to, from, bytes);
    return;
  }
  watch_read(from, bytes);
  watch_write(to, bytes);
  current().stream(to, from, bytes);
}

}  // namespace stretto::kernels
