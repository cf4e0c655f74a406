// A large range of addresses over a sparse shared object: reserved once, filled with memory page by page as it is touched.
#pragma once
#include <cstddef>

#include "base/status.hpp"

namespace stretto::platform {

inline constexpr size_t huge_page = size_t(2) << 20;

// A sparse memfd; never one that takes its memory at once. refused where there is none, or where a file of this size would pass a
// limit (ulimit -f, whose breach is a deadly signal). The descriptor is a high one, out of the way of the program's.
Status create_sparse_object(const char* name, size_t bytes, int* fd);

enum class Inherited : bool { no, yes };  // by forked children

// Maps all of it at a multiple of the huge page, in huge pages where the system allows.
Status map_sparse_object(int fd, size_t bytes, Inherited inherited, char** address);

// The device and inode behind a descriptor, so that a number that the program closed and opened again is noticed.
struct ObjectId {
  unsigned long device = 0, inode = 0;
  bool operator==(const ObjectId&) const = default;
};
ObjectId object_of(int fd);

// Whether the process may reserve far more addresses than memory: no limit on its address space (ulimit -v), and no strict
// accounting of memory (vm.overcommit_memory=2), under which touching unreserved memory can be deadly.
Status may_reserve();

}  // namespace stretto::platform
