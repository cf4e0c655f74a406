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
};

// False: not usable (null, unknown to MPI).
bool describe(MPI_Datatype type, Layout* layout);

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

// count elements of `layout` to and from contiguous bytes. An MPI error code.
int pack(const Layout& layout, const void* from, size_t count, void* to);
int unpack(const Layout& layout, const void* from, size_t count, void* to);

// A user-defined MPI_Op applied by MPI_Reduce_local, on packed elements when the datatype is not dense.
class UserReduction {
 public:
  UserReduction(const Layout& layout, MPI_Op op) : layout_(layout), op_(op) {}
  collective::UserOp callback() { return {&UserReduction::apply, this}; }
  int error() const { return error_; }  // the first error met, or MPI_SUCCESS

 private:
  static void apply(void* self, const void* in, void* inout, size_t count);
  int apply_dense(const void* in, void* inout, size_t count);
  int apply_packed(const void* in, void* inout, size_t count);
  bool unfold(const void* packed, size_t count, Temporary& memory, char** origin);

  const Layout& layout_;
  MPI_Op op_;
  int error_ = MPI_SUCCESS;
  Temporary left_, right_;
};

}  // namespace stretto::shim
