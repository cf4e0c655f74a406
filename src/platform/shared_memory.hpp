// Anonymous memory that processes share: memfd, so neither bounded by /dev/shm nor left behind by a killed process.
#pragma once
#include <cstddef>

#include "base/status.hpp"

namespace stretto::platform {

// A sparse shared object of `bytes`: nothing is committed before it is touched. Close-on-exec. *fd owns it.
Status create_shared_object(const char* name, size_t bytes, int* fd);

// Maps [offset, offset + bytes) of the object read-write; not inherited by fork (MADV_DONTFORK), not dumped (MADV_DONTDUMP).
// offset is a multiple of the page size.
Status map_shared_object(int fd, size_t offset, size_t bytes, void** address);
void unmap_shared_object(void* address, size_t bytes);

// Gives the pages of a mapped range back to the system; they read as zero afterwards. Best effort.
void discard_shared_pages(void* address, size_t bytes);

size_t physical_memory();  // bytes of RAM, or of this process's cgroup limit when that is smaller

}  // namespace stretto::platform
