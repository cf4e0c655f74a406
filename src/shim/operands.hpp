// The buffers and the operation of a call in neutral terms: plain memory, with what MPI alone can do (derived datatypes,
// user-defined operations) done here.
#pragma once
#include "collective/request.hpp"
#include "select/reason.hpp"
#include "shim/abi.hpp"
#include "shim/handles.hpp"

namespace stretto::shim {

// A datatype as far as moving and reducing need it.
struct Layout {
  MPI_Datatype type{};
  size_t size = 0;     // bytes of data in one element
  bool dense = false;  // elements are those bytes, in order, without gaps
  bool named = false;
  kernels::Type kernel = kernels::Type::opaque;
  size_t extent = 0;
  bool committed = true;  // as far as MPI looks
};

// False: not usable (null, unknown to MPI; not committed, in the MPIs that look at every datatype of a collective).
bool describe(MPI_Datatype type, Layout* layout);

// Another handle of the same elements, committed; whoever has it frees it. Not by MPI_Type_dup, which calls what the program has
// for its attributes. An MPI error code.
int copy_type(MPI_Datatype type, MPI_Datatype* copy);

// What MPI refuses of a block in which there is nothing: Open MPI the null datatype; else programs pass any.
bool is_refused_for_nothing(MPI_Datatype type);

// Whether `count` elements are said to stand where none can: in place of nothing or, of a predefined type, at the null address.
// (Of others that is MPI_BOTTOM.)
inline bool stand_nowhere(const void* data, MPI_Count count, const Layout& layout) {
  return count > 0 && (data == MPI_IN_PLACE || (data == nullptr && layout.named));
}

// Memory from malloc, freed at the end of the call.
class Temporary {
 public:
  Temporary() = default;
  ~Temporary();
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  bool reserve(size_t bytes);
  char* data() const { return data_; }

 private:
  char* data_ = nullptr;
  size_t bytes_ = 0;
};

// From an address in the program's terms to its elements' bytes: [lowest, highest).
struct Extent {
  ptrdiff_t lowest = 0, highest = 0;
};
bool extent_of(const Layout& layout, size_t count, Extent* extent);

// count elements of `layout` to and from contiguous bytes. An MPI error code.
int pack(const Layout& layout, const void* from, size_t count, void* to);
int unpack(const Layout& layout, const void* from, size_t count, void* to);

// A user-defined MPI_Op applied by MPI_Reduce_local, on packed elements when the datatype is not dense.
class UserReduction {
 public:
  // `together`: so many elements count as one of the collective's.
  UserReduction(const Layout& layout, MPI_Op op, size_t together = 1) : layout_(layout), op_(op), together_(together) {}
  collective::UserOp callback() { return {&UserReduction::apply, this}; }
  int error() const { return error_; }  // the first error met, or MPI_SUCCESS
  // Takes the memory that apply() works in; before the collective starts, as there is no way back in its middle. False: there
  // is not even memory for one element.
  bool prepare(size_t count);

 private:
  static void apply(void* self, const void* in, void* inout, size_t count);
  int apply_dense(const void* in, void* inout, size_t count);
  int apply_packed(const void* in, void* inout, size_t count);
  int apply_block(const char* in, char* inout, size_t count);

  const Layout& layout_;
  MPI_Op op_;
  const size_t together_;
  int error_ = MPI_SUCCESS;
  size_t block_ = 0;  // elements that left_ and right_ have room for
  Temporary left_, right_;
};

}  // namespace stretto::shim
