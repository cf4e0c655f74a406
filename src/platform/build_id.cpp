#include "platform/build_id.hpp"

#include <link.h>
#include <string.h>

namespace stretto::platform {
namespace {

constexpr size_t aligned(size_t bytes) {
  return (bytes + 3) & ~size_t(3);
}

// Of the notes of one segment: name and contents follow each header.
uint64_t find_in_notes(const char* at, const char* end) {
  while (at + sizeof(ElfW(Nhdr)) <= end) {
    const auto& note = *reinterpret_cast<const ElfW(Nhdr)*>(at);
    const char* name = at + sizeof note;
    const char* content = name + aligned(note.n_namesz);
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(name, "GNU", 4) == 0 &&
        note.n_descsz >= sizeof(uint64_t)) {
      uint64_t id;
      memcpy(&id, content, sizeof id);
      return id;
    }
    at = content + aligned(note.n_descsz);
  }
  return 0;
}

struct Search {
  uintptr_t here;
  uint64_t found;
};

// Stops at the object that this function is in.
int look(dl_phdr_info* object, size_t, void* context) {
  Search& search = *static_cast<Search*>(context);
  bool ours = false;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr) & segment = object->dlpi_phdr[i];
    ours = ours || (segment.p_type == PT_LOAD && search.here - (object->dlpi_addr + segment.p_vaddr) < segment.p_memsz);
  }
  for (int i = 0; ours && search.found == 0 && i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr) & segment = object->dlpi_phdr[i];
    const char* begin = reinterpret_cast<const char*>(object->dlpi_addr + segment.p_vaddr);
    if (segment.p_type == PT_NOTE) search.found = find_in_notes(begin, begin + segment.p_memsz);
  }
  return ours;
}

}  // namespace

uint64_t build_id() {
  Search search{reinterpret_cast<uintptr_t>(&look), 0};
  dl_iterate_phdr(look, &search);
  return search.found;
}

}  // namespace stretto::platform
