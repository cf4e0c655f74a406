// Stands in for libxpmem.so, in one process: a segment is the address space, and attaching gives the address itself. Counts, so
// that a test sees what was attached and detached, and refuses from a given address on.
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>

struct address {
  int64_t apid;
  off_t offset;
};
__attribute__((visibility("default"))) int standin_attached, standin_most, standin_refuse, standin_calls;

__attribute__((visibility("default"))) int64_t xpmem_make(void* address, size_t bytes, int type, void* value) {
  return address == NULL && bytes == SIZE_MAX && type == 1 && value == (void*)(uintptr_t)0600 ? 4711 : -1;
}
__attribute__((visibility("default"))) int64_t xpmem_get(int64_t segid, int flags, int type, void* value) {
  return segid == 4711 && flags == 2 && type == 1 && value == (void*)(uintptr_t)0600 ? 12 : -1;
}
__attribute__((visibility("default"))) void* xpmem_attach(struct address address, size_t bytes, void* at) {
  ++standin_calls;
  if (address.apid != 12 || bytes == 0 || at != NULL || standin_refuse) return (void*)-1;
  if (++standin_attached > standin_most) standin_most = standin_attached;
  return (void*)(uintptr_t)address.offset;
}
__attribute__((visibility("default"))) int xpmem_detach(void* address) {
  (void)address;
  return --standin_attached < 0 ? -1 : 0;
}
