#include "shim/operands.hpp"

#include <stdlib.h>

#include <algorithm>
#include <atomic>

#include "shim/mpi.hpp"
#include "shim/own_comm.hpp"
#include "shim/process.hpp"
#include "shim/wrap.hpp"

namespace stretto::shim {
namespace {

// These follow NAMED in every ABI.
constexpr int combiner_dup = MPI_COMBINER_NAMED + 1;
constexpr int combiner_contiguous = MPI_COMBINER_NAMED + 2;
constexpr int deepest_nesting = 16;
constexpr size_t largest_pack = size_t(1) << 30;  // bytes per call of MPI_Pack, whose sizes are ints
constexpr size_t largest_block = 256 << 10;       // bytes laid out at a time for a user's operation

bool is_dense(MPI_Datatype type, int depth);

// Functions for datatypes beyond the range of int: MPI-3's _x forms, and the one that MPI-4 demands for types made by large
// counts.
struct LargeTypes {
  int (*size)(MPI_Datatype, MPI_Count*);
  int (*extent)(MPI_Datatype, MPI_Count*, MPI_Count*);
  int (*envelope)(MPI_Datatype, MPI_Count*, MPI_Count*, MPI_Count*, MPI_Count*, int*);
};

template <class Signature>
void find_either(Signature** function, const char* first, const char* second) {
  void* found = library().find(first);
  *function = reinterpret_cast<Signature*>(found != nullptr ? found : library().find(second));
}

const LargeTypes& large_types() {
  static const LargeTypes found = [] {
    LargeTypes f{};
    find_either(&f.size, "PMPI_Type_size_c", "PMPI_Type_size_x");
    find_either(&f.extent, "PMPI_Type_get_extent_c", "PMPI_Type_get_extent_x");
    find_either(&f.envelope, "PMPI_Type_get_envelope_c", "PMPI_Type_get_envelope_c");
    return f;
  }();
  return found;
}

// Whether the type was made with counts that only the _c forms can tell of; false where there are none.
bool has_large_counts(MPI_Datatype type) {
  MPI_Count integers, addresses, large = 0, types;
  int combiner;
  const LargeTypes& f = large_types();
  return f.envelope != nullptr &&
         (f.envelope(type, &integers, &addresses, &large, &types, &combiner) != MPI_SUCCESS || large > 0);
}

// Those that MPI_Type_create_f90_real and its kin give are predefined too, and nobody may free them.
bool is_predefined(MPI_Datatype type) {
  int integers, addresses, types, combiner;
  if (has_large_counts(type)) return false;
  if (mpi().Type_get_envelope(type, &integers, &addresses, &types, &combiner) != MPI_SUCCESS) return true;
  return combiner == MPI_COMBINER_NAMED || (combiner >= MPI_COMBINER_F90_REAL && combiner <= MPI_COMBINER_F90_INTEGER);
}

// A duplicate or contiguous type is as dense as the type it is made of.
bool inner_is_dense(MPI_Datatype type, int integers, int depth) {
  int count[1] = {0};
  MPI_Aint addresses[1];
  MPI_Datatype inner[1];
  if (mpi().Type_get_contents(type, integers, 0, 1, count, addresses, inner) != MPI_SUCCESS) return false;
  bool dense = is_dense(inner[0], depth + 1);
  if (!is_predefined(inner[0])) mpi().Type_free(&inner[0]);  // get_contents made a handle of it
  return dense;
}

// True only where certain; what is not dense is packed.
bool is_dense(MPI_Datatype type, int depth) {
  TypeFacts facts;
  if (named_type(type, &facts)) return facts.size == facts.extent;
  int integers, addresses, types, combiner;
  if (depth > deepest_nesting || has_large_counts(type) ||
      mpi().Type_get_envelope(type, &integers, &addresses, &types, &combiner) != MPI_SUCCESS)
    return false;
  bool looks_through = (combiner == combiner_dup && integers == 0) || (combiner == combiner_contiguous && integers == 1);
  return looks_through && addresses == 0 && types == 1 && inner_is_dense(type, integers, depth);
}

bool is_null(MPI_Datatype type) {
  static const auto null = named<MPI_Datatype>("MPI_DATATYPE_NULL");
  return type == null;
}

// Which of a collective's datatypes must be committed. MPICH looks at all, Open MPI at some of them (hooks/blocks.cpp).
#if defined(STRETTO_MPI_OMPI)
constexpr bool looks_at_all = false;
#else
constexpr bool looks_at_all = true;
#endif

bool look_up(MPI_Datatype type, Layout* layout) {
  layout->type = type;
  layout->committed = takes_type(type);
  if (looks_at_all && !layout->committed) return false;
  MPI_Count size, lb, extent;
  if (large_types().size(type, &size) != MPI_SUCCESS || size < 0) return false;
  if (large_types().extent(type, &lb, &extent) != MPI_SUCCESS) return false;
  layout->size = size_t(size);
  layout->extent = size_t(extent);
  layout->dense = lb == 0 && extent == size && is_dense(type, 0);
  return true;
}

// What this thread remembers of derived datatypes. Of one that is freed MPI calls `type_freed`: its handle may come to mean
// another, so nothing is remembered any more.
struct Remembered {
  uintptr_t key = 0;
  uint64_t generation = 0;
  Layout layout;
};
constexpr size_t remembered_slots = 8;
__attribute__((tls_model("initial-exec"))) constinit thread_local Remembered remembered_types[remembered_slots];
constinit std::atomic<uint64_t> types_freed{1};

Remembered& slot_of(uintptr_t key) {
  return remembered_types[(key ^ (key >> 8)) % remembered_slots];
}

int type_freed(MPI_Datatype, int, void*, void*) {
  types_freed.fetch_add(1, std::memory_order_acq_rel);
  return MPI_SUCCESS;
}

int type_copied(MPI_Datatype, int, void*, void*, void*, int* copy_made) {
  *copy_made = 0;
  return MPI_SUCCESS;
}

// Whether MPI will tell when the datatype is freed.
bool is_watched(MPI_Datatype type) {
  static const int keyval = [] {
    int made;
    return mpi().Type_create_keyval(type_copied, type_freed, &made, nullptr) == MPI_SUCCESS ? made : int(MPI_KEYVAL_INVALID);
  }();
  void* value;
  int found = 0;
  if (keyval == MPI_KEYVAL_INVALID || mpi().Type_get_attr(type, keyval, &value, &found) != MPI_SUCCESS) return false;
  return found || mpi().Type_set_attr(type, keyval, &remembered_types) == MPI_SUCCESS;
}

// Datatypes never cease to be committed; one that is not may be soon.
[[gnu::noinline, gnu::cold]] bool look_up_and_remember(MPI_Datatype type, Layout* layout) {
  const uint64_t generation = types_freed.load(std::memory_order_acquire);
  if (!look_up(type, layout)) return false;
  if (layout->committed && is_watched(type)) slot_of(key_of(type)) = {key_of(type), generation, *layout};
  return true;
}

// Calls `move(element offset, elements)` for blocks of elements that MPI_Pack's ints can count.
template <typename Move>
int in_blocks(const Layout& layout, size_t count, Move move) {
  size_t block = std::max<size_t>(largest_pack / std::max<size_t>(layout.size, 1), 1);
  for (size_t done = 0; done < count; done += block)
    if (int code = move(done, int(std::min(block, count - done)))) return code;
  return MPI_SUCCESS;
}

// Elements in the program's memory, as MPI_Pack may be told of them. MPI_BOTTOM is the null address, which that of MPICH 4 takes
// for a mistake: seen from elsewhere, through a datatype of their own, they are the same.
class Elements {
 public:
  explicit Elements(const Layout& layout) : type_(layout.type) {}
  ~Elements() {
    if (moved_) mpi().Type_free(&type_);
  }
  int find(const void* address, int count) {
    at_ = const_cast<void*>(address);
    count_ = count;
    if (address != nullptr || null_is_bottom) return MPI_SUCCESS;
    const MPI_Aint back = -MPI_Aint(reinterpret_cast<intptr_t>(this));
    at_ = this;
    count_ = 1;
    const MPI_Datatype type = type_;
    if (int code = mpi().Type_create_hindexed(1, &count, &back, type, &type_)) return code;
    moved_ = true;
    return mpi().Type_commit(&type_);
  }
  void* at() const { return at_; }
  int count() const { return count_; }
  MPI_Datatype type() const { return type_; }

 private:
#if defined(STRETTO_MPI_OMPI)
  static constexpr bool null_is_bottom = true;
#else
  static constexpr bool null_is_bottom = false;
#endif
  MPI_Datatype type_;
  void* at_ = nullptr;
  int count_ = 0;
  bool moved_ = false;
};

// So many bytes, as an element of one datatype.
int make_bytes(size_t bytes, MPI_Datatype* made) {
  constexpr int chunk_bytes = 1 << 30;
  MPI_Datatype chunk;
  if (int code = mpi().Type_contiguous(chunk_bytes, byte_type(), &chunk)) return code;
  const int lengths[] = {int(bytes / chunk_bytes), int(bytes % chunk_bytes)};
  const MPI_Aint places[] = {0, MPI_Aint(lengths[0]) * chunk_bytes};
  const MPI_Datatype types[] = {chunk, byte_type()};
  const int code = mpi().Type_create_struct(2, lengths, places, types, made);
  mpi().Type_free(&chunk);
  return code != MPI_SUCCESS ? code : mpi().Type_commit(made);
}

// Packs, or unpacks, an element of more bytes than MPI_Pack can count, for an MPI without MPI_Pack_c: as a message of this
// process to itself.
int move_large(const Elements& elements, char* bytes, size_t size, bool packs) {
  MPI_Datatype whole;
  if (own_comm() == comm_null()) return MPI_ERR_COUNT;
  if (int code = make_bytes(size, &whole)) return code;
  const int code = packs ? mpi().Sendrecv(elements.at(), elements.count(), elements.type(), 0, 0, bytes, 1, whole, 0, 0,
                                          own_comm(), MPI_STATUS_IGNORE)
                         : mpi().Sendrecv(bytes, 1, whole, 0, 0, elements.at(), elements.count(), elements.type(), 0, 0,
                                          own_comm(), MPI_STATUS_IGNORE);
  mpi().Type_free(&whole);
  return code;
}

}  // namespace

bool describe(MPI_Datatype type, Layout* layout) {
  TypeFacts facts;
  if (named_type(type, &facts)) {
    *layout = {type, facts.size, facts.size == facts.extent, true, facts.type, facts.extent};
    return true;
  }
  const Remembered& known = slot_of(key_of(type));
  if (known.key == key_of(type) && known.generation == types_freed.load(std::memory_order_acquire)) {
    *layout = known.layout;
    return true;
  }
  return !is_null(type) && look_up_and_remember(type, layout);
}

int copy_type(MPI_Datatype type, MPI_Datatype* copy) {
  const int code = mpi().Type_contiguous(1, type, copy);
  return code != MPI_SUCCESS ? code : mpi().Type_commit(copy);
}

bool is_refused_for_nothing(MPI_Datatype type) {
  return !looks_at_all && is_null(type);
}

Temporary::~Temporary() {
  free(data_);
}

bool Temporary::reserve(size_t bytes) {
  if (data_ != nullptr && bytes <= bytes_) return true;
  free(data_);
  data_ = static_cast<char*>(malloc(bytes ? bytes : 1));
  bytes_ = data_ ? bytes : 0;
  return data_ != nullptr;
}

bool extent_of(const Layout& layout, size_t count, Extent* extent) {
  MPI_Aint true_lb, true_extent;
  if (count == 0 || mpi().Type_get_true_extent(layout.type, &true_lb, &true_extent) != MPI_SUCCESS) return false;
  ptrdiff_t span = ptrdiff_t(layout.extent) * ptrdiff_t(count - 1);
  extent->lowest = std::min<ptrdiff_t>(0, span) + true_lb;
  extent->highest = std::max<ptrdiff_t>(0, span) + true_lb + true_extent;
  return true;
}

int pack(const Layout& layout, const void* from, size_t count, void* to) {
  return in_blocks(layout, count, [&](size_t done, int elements) {
    Elements source(layout);
    if (int code = source.find(static_cast<const char*>(from) + ptrdiff_t(done) * ptrdiff_t(layout.extent), elements))
      return code;
    char* target = static_cast<char*>(to) + done * layout.size;
    MPI_Count large_position = 0, large_room = MPI_Count(elements) * MPI_Count(layout.size);
    if (mpi().Pack_c.present())
      return mpi().Pack_c(source.at(), source.count(), source.type(), target, large_room, &large_position, comm_self());
    if (large_room > INT32_MAX) return move_large(source, target, layout.size, true);
    int position = 0, room = int(large_room);
    return mpi().Pack(source.at(), source.count(), source.type(), target, room, &position, comm_self());
  });
}

int unpack(const Layout& layout, const void* from, size_t count, void* to) {
  return in_blocks(layout, count, [&](size_t done, int elements) {
    const char* source = static_cast<const char*>(from) + done * layout.size;
    Elements target(layout);
    if (int code = target.find(static_cast<char*>(to) + ptrdiff_t(done) * ptrdiff_t(layout.extent), elements)) return code;
    MPI_Count large_position = 0, large_room = MPI_Count(elements) * MPI_Count(layout.size);
    if (mpi().Unpack_c.present())
      return mpi().Unpack_c(source, large_room, &large_position, target.at(), target.count(), target.type(), comm_self());
    if (large_room > INT32_MAX) return move_large(target, const_cast<char*>(source), layout.size, false);
    int position = 0, room = int(large_room);
    return mpi().Unpack(source, room, &position, target.at(), target.count(), target.type(), comm_self());
  });
}

void UserReduction::apply(void* self, const void* in, void* inout, size_t count) {
  auto* reduction = static_cast<UserReduction*>(self);
  count *= reduction->together_;
  int code = reduction->layout_.dense ? reduction->apply_dense(in, inout, count) : reduction->apply_packed(in, inout, count);
  if (code != MPI_SUCCESS && reduction->error_ == MPI_SUCCESS) reduction->error_ = code;
}

int UserReduction::apply_dense(const void* in, void* inout, size_t count) {
  return mpi().Reduce_local(in, inout, int(count), layout_.type, op_);
}

bool UserReduction::prepare(size_t count) {
  if (layout_.dense) return true;
  const size_t enough = together_ > 1 ? together_ : largest_block / std::max<size_t>(layout_.extent, 1) + 1;
  for (block_ = std::min(count * together_, enough); block_ > 0; block_ /= 2) {
    Extent extent;
    if (!extent_of(layout_, block_, &extent)) return false;
    size_t bytes = size_t(extent.highest - extent.lowest);
    if (left_.reserve(bytes) && right_.reserve(bytes)) return true;
  }
  return false;
}

int UserReduction::apply_packed(const void* in, void* inout, size_t count) {
  const char* left = static_cast<const char*>(in);
  char* right = static_cast<char*>(inout);
  for (size_t done = 0; done < count; done += block_) {
    size_t n = std::min(block_, count - done), at = done * layout_.size;
    if (int code = apply_block(left + at, right + at, n)) return code;
  }
  return MPI_SUCCESS;
}

// Packed elements are laid out as the datatype says, combined, and packed again.
int UserReduction::apply_block(const char* in, char* inout, size_t count) {
  Extent extent;
  if (!extent_of(layout_, count, &extent)) return MPI_ERR_OTHER;
  char *left = left_.data() - extent.lowest, *right = right_.data() - extent.lowest;
  if (int code = unpack(layout_, in, count, left)) return code;
  if (int code = unpack(layout_, inout, count, right)) return code;
  if (int code = mpi().Reduce_local(left, right, int(count), layout_.type, op_)) return code;
  return pack(layout_, right, count, inout);
}

namespace {

// Callbacks of the program's attributes may use a datatype after `type_freed` has been called for it.
int free_type(MPI_Datatype* type) {
  const int code = mpi().Type_free(type);
  types_freed.fetch_add(1, std::memory_order_acq_rel);
  return code;
}

}  // namespace

}  // namespace stretto::shim

using namespace stretto::shim;

extern "C" {

// Not in the table of functions.
STRETTO_WRAPPER int MPI_Type_free(MPI_Datatype* type) {
  if (const AnyFunction tool = tool_behind(number::Type_free)) return int(forward(tool, reinterpret_cast<Word>(type)));
  return free_type(type);
}
STRETTO_WRAPPER int PMPI_Type_free(MPI_Datatype* type) {
  return free_type(type);
}

}  // extern "C"
