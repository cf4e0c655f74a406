#include "user_operation.hpp"

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>

namespace differential {
namespace {

std::mutex guard;
std::map<MPI_Datatype, const Layout*> known;
std::atomic<long> unknown{0};

const Layout* layout_of(MPI_Datatype type) {
  static const Layout plain(base_type("MPI_UINT32_T"));
  if (type == plain.type()) return &plain;
  std::lock_guard<std::mutex> lock(guard);
  auto found = known.find(type);
  if (found != known.end()) return found->second;
  ++unknown;
  return nullptr;
}

using Group = uint32_t[4];
using Combine = void (*)(const Group left, Group right_and_result);

// All are associative, modulo 2^32; the operands are in rank order: result = left o right.
void add(const Group left, Group right) {
  right[0] += left[0];
}
// x -> a x + b, stored {a, b}, `left` applied first: what a string of such maps composes to depends on their order.
void compose(const Group left, Group right) {
  uint32_t a = right[0] * left[0], b = right[0] * left[1] + right[1];
  right[0] = a;
  right[1] = b;
}
void multiply_matrices(const Group left, Group right) {
  Group r = {left[0] * right[0] + left[1] * right[2], left[0] * right[1] + left[1] * right[3],
             left[2] * right[0] + left[3] * right[2], left[2] * right[1] + left[3] * right[3]};
  memcpy(right, r, sizeof(Group));
}
void keep_left(const Group left, Group right) {
  right[0] = left[0];
}

// Applies `combine` to consecutive groups of `size` elements, wherever the layout puts them.
void apply(void* in, void* inout, int length, MPI_Datatype type, int size, Combine combine) {
  const Layout* layout = layout_of(type);
  if (!layout) return;
  const std::vector<Leaf>& leaves = layout->leaves();
  size_t elements = leaves.size() * size_t(length);
  auto at = [&](void* base, size_t i) {
    return static_cast<char*>(base) + MPI_Aint(i / leaves.size()) * layout->extent() + leaves[i % leaves.size()].offset;
  };
  for (size_t i = 0; i < elements; i += size_t(size)) {
    Group left{}, right{};
    for (int j = 0; j < size; ++j) {
      memcpy(&left[j], at(in, i + j), 4);
      memcpy(&right[j], at(inout, i + j), 4);
    }
    combine(left, right);
    for (int j = 0; j < size; ++j) memcpy(at(inout, i + j), &right[j], 4);
  }
}

template <int size, Combine combine>
void function(void* in, void* inout, int* length, MPI_Datatype* type) {
  apply(in, inout, *length, *type, size, combine);
}

template <int size, Combine combine>
UserOperation make(const char* name, bool commutative) {
  MPI_Op op;
  PMPI_Op_create(function<size, combine>, commutative, &op);
  return {{name, op, commutative}, size};
}

std::vector<UserOperation>& table() {
  static std::vector<UserOperation> rows;
  return rows;
}

}  // namespace

Registered::Registered(const Layout& layout) : key_(layout.plain() ? MPI_DATATYPE_NULL : layout.type()) {
  if (layout.plain()) return;
  std::lock_guard<std::mutex> lock(guard);
  known[key_] = &layout;
}

Registered::~Registered() {
  if (key_ == MPI_DATATYPE_NULL) return;
  std::lock_guard<std::mutex> lock(guard);
  known.erase(key_);
}

const std::vector<UserOperation>& user_operations() {
  static std::once_flag once;
  std::call_once(once, [] {
    table() = {make<1, add>("user sum (commutative)", true), make<2, compose>("user affine composition", false),
               make<4, multiply_matrices>("user 2x2 matrix product", false), make<1, keep_left>("user keep-left", false)};
  });
  return table();
}

void free_user_operations() {
  for (UserOperation& row : table()) PMPI_Op_free(&row.operation.handle);
  table().clear();
}

long unknown_datatypes() {
  return unknown;
}

}  // namespace differential
