#include "calls.hpp"

#include <algorithm>

namespace differential {

size_t draw_elements(Random& random, const BaseType& base, size_t largest) {
  switch (random.below(20)) {
    case 0:
      return 0;
    case 1:
      return 1 + random.below(std::max<size_t>(largest / base.size, 1));
    case 2:
    case 3:
    case 4:
      return 1 + random.below(std::min<size_t>(largest, 65536) / base.size + 1);
    case 5:
    case 6:
    case 7:
    case 8:
      return 1 + random.below(600);
    default:
      return 1 + random.below(16);
  }
}

size_t draw_misalignment(Random& random, const Layout& layout) {
  constexpr size_t strictest = 16;
  size_t element = layout.leaves()[0].base->size;
  if (random.one_in(2)) return 0;
  if (element >= strictest || random.one_in(2)) return (1 + random.below(3)) * std::max(element, strictest) % 64;
  return random.below(64);
}

std::string describe(const char* call, const Layout& layout, size_t count, const Operation* op, int root, bool in_place) {
  std::string text = std::string(call) + " of " + std::to_string(count) + " x " + layout.name();
  if (op) text += std::string(", ") + op->name;
  if (root >= 0) text += ", root " + std::to_string(root);
  return in_place ? text + ", in place" : text;
}

std::string wrong_outside(const Buffer& buffer, const char* whose) {
  MPI_Aint where = 0;
  if (buffer.surroundings_intact(&where)) return "";
  return std::string("wrote outside the elements of the ") + whose + " buffer, at byte " + std::to_string(where);
}

}  // namespace differential
