#include <algorithm>

#include "buffer.hpp"
#include "layout.hpp"

namespace differential {
namespace {

using Block = Layout::Block;

// As in "3@-4,2@20": three children at byte -4, two at byte 20.
std::string shape(const std::vector<Block>& blocks) {
  std::string text;
  for (const Block& block : blocks)
    text += (text.empty() ? "" : ",") + std::to_string(block.length) + "@" + std::to_string(block.displacement);
  return text;
}

int random_divisor(Random& random, int n) {
  std::vector<int> divisors;
  for (int d = 1; d <= n; ++d)
    if (n % d == 0) divisors.push_back(d);
  return divisors[random.below(divisors.size())];
}

Layout vector(Random& random, const Layout& child, int n) {
  int length = random_divisor(random, n), stride = length + int(random.below(4));
  if (random.one_in(4)) stride = -stride;  // backwards: a negative lower bound
  MPI_Datatype type;
  PMPI_Type_vector(n / length, length, stride, child.type(), &type);
  std::vector<Block> blocks;
  for (int i = 0; i < n / length; ++i) blocks.push_back({i * stride * child.extent(), length});
  std::string pattern = std::to_string(n / length) + "x" + std::to_string(length) + " every " + std::to_string(stride);
  return {"vector " + pattern + " of " + child.name(), type, child, blocks};
}

std::vector<int> permuted_places(Random& random, int n) {
  std::vector<int> places(n);
  int place = int(random.between(-3, 3)), step = int(random.between(1, 3));
  for (int& p : places) p = place += step;
  if (random.one_in(2)) random.shuffle(places);
  return places;
}

Layout indexed(Random& random, const Layout& child, int n) {
  std::vector<int> places = permuted_places(random, n), lengths(n, 1);
  MPI_Datatype type;
  if (random.one_in(2))
    PMPI_Type_indexed(n, lengths.data(), places.data(), child.type(), &type);
  else
    PMPI_Type_create_indexed_block(n, 1, places.data(), child.type(), &type);
  std::vector<Block> blocks;
  for (int place : places) blocks.push_back({place * child.extent(), 1});
  return {"indexed of " + child.name(), type, child, blocks};
}

// Blocks at arbitrary byte distances, through the struct or the hindexed constructor.
Layout by_bytes(Random& random, const Layout& child, int n) {
  int parts = std::min(n, int(random.between(1, 4)));
  std::vector<int> lengths(parts, n / parts);
  lengths.back() += n % parts;
  std::vector<MPI_Aint> places;
  std::vector<Block> blocks;
  MPI_Aint place = random.between(-16, 16);
  for (int length : lengths) {
    places.push_back(place);
    blocks.push_back({place, length});
    place += (length - 1) * child.extent() + std::max<MPI_Aint>(child.extent(), 1) + random.between(0, 24);
  }
  std::vector<MPI_Datatype> types(parts, child.type());
  MPI_Datatype type;
  bool as_struct = random.one_in(2);
  if (as_struct)
    PMPI_Type_create_struct(parts, lengths.data(), places.data(), types.data(), &type);
  else
    PMPI_Type_create_hindexed(parts, lengths.data(), places.data(), child.type(), &type);
  return {(as_struct ? "struct " : "hindexed ") + shape(blocks) + " of " + child.name(), type, child, blocks};
}

Layout subarray(Random& random, const Layout& child, int n) {
  int columns = random_divisor(random, n), rows = n / columns;
  int start[2] = {int(random.below(3)), int(random.below(3))};
  int part[2] = {rows, columns};
  int whole[2] = {rows + start[0] + int(random.below(2)), columns + start[1] + int(random.below(2))};
  MPI_Datatype type;
  PMPI_Type_create_subarray(2, whole, part, start, MPI_ORDER_C, child.type(), &type);
  std::vector<Block> blocks;
  for (int i = 0; i < rows; ++i) blocks.push_back({((start[0] + i) * whole[1] + start[1]) * child.extent(), columns});
  return {"subarray of " + child.name(), type, child, blocks};
}

Layout one_step(Random& random, const Layout& child, int n) {
  switch (random.below(5)) {
    case 0:
      return contiguous(child, n);
    case 1:
      return vector(random, child, n);
    case 2:
      return indexed(random, child, n);
    case 3:
      return by_bytes(random, child, n);
    default:
      return subarray(random, child, n);
  }
}

Layout resized(Random& random, const Layout& layout) {
  MPI_Aint lower, extent;
  PMPI_Type_get_extent(layout.type(), &lower, &extent);
  MPI_Aint more_below = random.between(0, 32), more_above = random.between(0, 32);
  MPI_Datatype type;
  PMPI_Type_create_resized(layout.type(), lower - more_below, extent + more_below + more_above, &type);
  return layout.renamed("resized " + layout.name(), type);
}

Layout duplicated(const Layout& layout) {
  MPI_Datatype type;
  PMPI_Type_dup(layout.type(), &type);
  return layout.renamed("dup of " + layout.name(), type);
}

Layout any_layout(Random& random, const BaseType& base, int leaves) {
  Layout layout(base);
  if (leaves == 1 && random.one_in(2)) return random.one_in(2) ? std::move(layout) : duplicated(layout);
  int inner = random.one_in(3) ? random_divisor(random, leaves) : 1;  // nested when more than 1
  if (inner > 1) layout = one_step(random, layout, inner);
  layout = one_step(random, layout, leaves / inner);
  if (random.one_in(4)) layout = resized(random, layout);
  if (random.one_in(8)) layout = duplicated(layout);
  return layout;
}

Layout any_record(Random& random, const BaseType& a, const BaseType& b, int repeats) {
  std::vector<int> lengths;
  std::vector<MPI_Aint> places;
  std::vector<MPI_Datatype> types;
  std::vector<const BaseType*> bases;
  MPI_Aint place = random.between(-20, 20);
  for (int i = 0; i < 2 * repeats; ++i) {
    const BaseType& base = i % 2 ? b : a;
    lengths.push_back(i % 2 ? 2 : 1);
    places.push_back(place);
    types.push_back(base.handle);
    bases.push_back(&base);
    place += lengths.back() * MPI_Aint(base.size) + random.between(0, 12);
  }
  MPI_Datatype type;
  PMPI_Type_create_struct(2 * repeats, lengths.data(), places.data(), types.data(), &type);
  std::vector<Block> blocks;
  for (size_t i = 0; i < places.size(); ++i) blocks.push_back({places[i], lengths[i]});
  Layout result("record " + shape(blocks) + " of " + a.name + ", " + b.name, type, Layout(a), {});
  for (int i = 0; i < 2 * repeats; ++i)
    for (int j = 0; j < lengths[i]; ++j) result.add_leaves_of(Layout(*bases[i]), places[i] + j * MPI_Aint(bases[i]->size));
  return result;
}

// Whether the packed bytes are the elements in order; not told for pairs, whose padding is packed as the library likes.
bool in_order(const Buffer& source, const std::vector<unsigned char>& packed) {
  size_t at = 0;
  for (size_t i = 0; i < source.elements(); at += source.base(i++).size) {
    if (source.base(i).family == Family::pair) return true;
    for (auto [offset, length] : source.base(i).significant) {
      const unsigned char* value = source.element(i) + offset;
      if (!std::equal(value, value + length, packed.begin() + ptrdiff_t(at + offset))) return false;
    }
  }
  return true;
}

// Whether MPI_Pack finds the values, and MPI_Unpack puts them, where the layout says. Open MPI 5.0 fails for irregularly
// spaced complex numbers and for backward vectors without gaps, MPICH 5.0 for MPI_REAL16, in every communication call; such
// layouts can serve neither as input nor as oracle.
bool handled(const Layout& layout) {
  constexpr size_t count = 3;
  Buffer source(layout, count, 0), target(layout, count, 0);
  Random random(3);
  source.draw_values(random, false);
  int room = 0, position = 0;
  PMPI_Pack_size(count, layout.type(), MPI_COMM_SELF, &room);
  std::vector<unsigned char> packed(static_cast<size_t>(room));
  PMPI_Pack(source.data(), count, layout.type(), packed.data(), room, &position, MPI_COMM_SELF);
  int end = position;
  position = 0;
  PMPI_Unpack(packed.data(), end, &position, target.data(), count, layout.type(), MPI_COMM_SELF);
  MPI_Aint where;
  return target.hash() == source.hash() && target.surroundings_intact(&where) && in_order(source, packed);
}

template <class Make>
Layout first_handled(Make make) {
  for (;;)
    if (Layout layout = make(); handled(layout)) return layout;
}

}  // namespace

Layout contiguous(const Layout& child, int n) {
  MPI_Datatype type;
  PMPI_Type_contiguous(n, child.type(), &type);
  return {"contiguous of " + child.name(), type, child, {{0, n}}};
}

Layout random_layout(Random& random, const BaseType& base, int leaves) {
  return first_handled([&] { return any_layout(random, base, leaves); });
}

Layout column_layout(const BaseType& base, int rows, int columns) {
  Layout element(base);
  MPI_Datatype column, narrow;
  PMPI_Type_vector(rows, 1, columns, base.handle, &column);
  PMPI_Type_create_resized(column, 0, MPI_Aint(base.size), &narrow);
  PMPI_Type_free(&column);
  std::vector<Block> blocks;
  for (int i = 0; i < rows; ++i) blocks.push_back({MPI_Aint(i) * columns * MPI_Aint(base.size), 1});
  Layout result(std::string("column of ") + base.name, narrow, element, blocks);
  return handled(result) ? std::move(result) : contiguous(element, rows);
}

bool has_record_layout(Random agreed, const BaseType& a, const BaseType& b, int repeats) {
  for (int tries = 0; tries < 50; ++tries)
    if (handled(any_record(agreed, a, b, repeats))) return true;
  return false;
}

Layout record_layout(Random& random, const BaseType& a, const BaseType& b, int repeats) {
  return first_handled([&] { return any_record(random, a, b, repeats); });
}

}  // namespace differential
