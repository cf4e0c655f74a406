// Anonymous memory that processes share: memfd, so neither bounded by /dev/shm nor left behind by a killed process.
#pragma once
#include <cstddef>

#include "base/status.hpp"

namespace stretto::platform {

// A sparse shared object of `bytes`: nothing is committed before it is touched. Close-on-exec. *fd owns it.
// Where memfd_create is refused: an unnamed file in /dev/shm, of at most 256 MiB and allocated in full, so that a small
// /dev/shm is a Status and no SIGBUS. A size beyond RLIMIT_FSIZE is refused, and raises no SIGXFSZ.
Status create_shared_object(const char* name, size_t bytes, int* fd);
bool is_memfd(int fd);  // as /proc tells

// Maps [offset, offset + bytes) of the object read-write; not inherited by fork (MADV_DONTFORK), not dumped (MADV_DONTDUMP).
// offset is a multiple of the page size.
Status map_shared_object(int fd, size_t offset, size_t bytes, void** address);
void unmap_shared_object(void* address, size_t bytes);

// The pages of a mapped range read as zero afterwards, and are given back to the system where it promises to let us have
// them again (not in /dev/shm). `address` and `bytes` are multiples of the page size. Best effort.
void discard_shared_pages(void* address, size_t bytes);

// The pages of a mapped range are there before they are touched, `address` and `bytes` being multiples of the page size. Best
// effort.
void populate_pages(void* address, size_t bytes);

size_t physical_memory();  // bytes of RAM, or of this process's cgroup limit when that is smaller

}  // namespace stretto::platform
