#include "shim/kept_call.hpp"

#include <stdlib.h>
#include <string.h>

#include "shim/operands.hpp"

namespace stretto::shim {
namespace {

constexpr char side_of(const char* parts, int i) {
  return parts[2 * i];
}
constexpr char kind_of(const char* parts, int i) {
  return parts[2 * i + 1];
}

// Whether this rank sends, or receives, anything of its own buffer.
bool matters(const Plan& plan, char side, const Word* words, int rank) {
  const bool to_root = plan.kind == Kind::gather || plan.kind == Kind::gatherv;
  const bool from_root = plan.kind == Kind::scatter || plan.kind == Kind::scatterv;
  const bool at_root_only = side == 's' ? from_root : side == 'r' && to_root;
  for (int i = 0; plan.parts[2 * i] != '\0'; ++i) {
    if (at_root_only && kind_of(plan.parts, i) == 'o' && int(words[i]) != rank) return false;
    if (kind_of(plan.parts, i) == 'b' && side_of(plan.parts, i) == side && words[i] == reinterpret_cast<Word>(MPI_IN_PLACE))
      return false;
  }
  return true;
}

}  // namespace

KeptCall::~KeptCall() {
  while (type_count_ > 0) mpi().Type_free(&types_[--type_count_]);
  for (void* array : arrays_) free(array);
}

void* KeptCall::room(size_t bytes) {
  return array_count_ < most_arrays ? arrays_[array_count_++] = malloc(bytes) : nullptr;
}

bool KeptCall::keep(const Plan& plan, const Word* words, int rank, int size) {
  const int count = int(strlen(plan.parts) / 2);
  if (count > most_words) return false;
  memcpy(words_, words, size_t(count) * sizeof(Word));
  type_room_ = 2 * size;
  types_ = static_cast<MPI_Datatype*>(room(size_t(type_room_) * sizeof(MPI_Datatype)));
  if (types_ == nullptr) return false;
  for (const char side : {'s', 'r', '-'}) {
    if (!matters(plan, side, words, rank)) continue;
    counts_ = {};
    for (int i = 0; i < count; ++i)
      if (side_of(plan.parts, i) == side && !keep_word(kind_of(plan.parts, i), &words_[i], size)) return false;
  }
  return true;
}

bool KeptCall::keep_word(char kind, Word* word, int size) {
  const auto* array = reinterpret_cast<const void*>(*word);
  if (kind == 'D') {
    MPI_Datatype type;
    memcpy(static_cast<void*>(&type), word, sizeof(MPI_Datatype));
    if (!keep_type(&type)) return false;
    *word = 0;
    memcpy(word, static_cast<const void*>(&type), sizeof(MPI_Datatype));
    return true;
  }
  if (kind == 'T' || kind == 'F') return keep_types(array, kind == 'F', word, size);
  if (kind != 'i' && kind != 'n') return true;
  const size_t bytes = size_t(size) * (kind == 'i' ? sizeof(int) : sizeof(int64_t));
  void* copy = array != nullptr ? room(bytes) : nullptr;
  if (copy == nullptr) return false;
  memcpy(copy, array, bytes);
  if (!counts_.present())
    counts_ = kind == 'i' ? Numbers(static_cast<const int*>(copy)) : Numbers(static_cast<const int64_t*>(copy));
  *word = reinterpret_cast<Word>(copy);
  return true;
}

bool KeptCall::keep_types(const void* handles, bool fortran, Word* word, int size) {
  auto* types = handles != nullptr ? static_cast<MPI_Datatype*>(room(size_t(size) * sizeof(MPI_Datatype))) : nullptr;
  if (types == nullptr || !counts_.present()) return false;
  const Types given =
      fortran ? Types::of_fortran(static_cast<const MPI_Fint*>(handles)) : static_cast<const MPI_Datatype*>(handles);
  for (int r = 0; r < size; ++r) {
    types[r] = MPI_Datatype{};
    if (counts_[r] <= 0) {
      if (is_refused_for_nothing(given[r])) return false;
      continue;
    }
    types[r] = given[r];
    if (!keep_type(&types[r])) return false;
  }
  *word = reinterpret_cast<Word>(types);
  return true;
}

bool KeptCall::keep_type(MPI_Datatype* type) {
  Layout layout;
  if (!describe(*type, &layout) || !layout.committed) return false;
  if (layout.named) return true;
  if (type_count_ == type_room_ || copy_type(*type, &types_[type_count_]) != MPI_SUCCESS) return false;
  *type = types_[type_count_++];
  return true;
}

}  // namespace stretto::shim
