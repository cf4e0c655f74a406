// Sizes of datatypes, and the places of datatypes and operations in the trace's tables.
#pragma once
#include "shim/profile/words.hpp"

namespace stretto::shim::profile {

struct TypeInfo {
  uint64_t size = 0;  // bytes of data in one element; 0 where MPI does not tell
  uint16_t index = 0xffff;
};

// What a thread remembers of handles. A derived type may be freed and its handle used again: then size or extent differ, or
// nobody can tell the difference.
struct RememberedType {
  uintptr_t key = 0;
  bool named = false;
  uint64_t size = 0, extent = 0;
  uint16_t index = 0;
};
inline constexpr size_t remembered_types = 32;
extern constinit thread_local RememberedType known_types[remembered_types];

TypeInfo look_up_type(MPI_Datatype type, RememberedType& slot);

inline TypeInfo type_info(MPI_Datatype type) {
  const uintptr_t key = key_of(type);
  RememberedType& slot = known_types[(key ^ (key >> 7u) ^ (key >> 14u)) % remembered_types];
  return __builtin_expect(slot.key == key && slot.named, 1) ? TypeInfo{slot.size, slot.index} : look_up_type(type, slot);
}

uint8_t operation_index(MPI_Op op);

// After MPI_Init.
void prepare_datatypes();

}  // namespace stretto::shim::profile
