#include "shim/handles.hpp"

#include <mutex>

#include "shim/mpi.hpp"
#include "shim/named_types.hpp"
#include "shim/own_comm.hpp"
#include "trace/recorder.hpp"

namespace stretto::shim {

namespace {

// Open addressing, written once and then only read. No predefined handle is 0.
template <class Value, size_t size>
class HandleTable {
 public:
  void insert(uintptr_t key, const Value& value) {
    size_t at = slot(key);
    while (keys_[at] != 0 && keys_[at] != key) at = (at + 1) % size;
    if (keys_[at] == key) return;
    keys_[at] = key;
    values_[at] = value;
  }
  const Value* find(uintptr_t key) const {
    for (size_t at = slot(key); keys_[at] != 0; at = (at + 1) % size) {
      if (keys_[at] == key) return &values_[at];
    }
    return nullptr;
  }

 private:
  static size_t slot(uintptr_t key) { return size_t((uint64_t(key) * 0x9e3779b97f4a7c15u) >> 40u) % size; }
  uintptr_t keys_[size] = {};
  Value values_[size] = {};
};

HandleTable<TypeFacts, 512> types;
HandleTable<kernels::Op, 64> ops;
std::atomic<bool> prepared{false};

// Asks for types that an MPI build may lack, which must not end the program.
bool knows(MPI_Datatype type) {
  char element[64] = {};
  return own_comm() != comm_null() && mpi().Bcast(element, 1, type, 0, own_comm()) == MPI_SUCCESS;
}
bool reduces(MPI_Datatype type, MPI_Op op) {
  char element[64] = {}, result[64];
  return own_comm() != comm_null() && mpi().Allreduce(element, result, 1, type, op, own_comm()) == MPI_SUCCESS;
}

bool measure(MPI_Datatype type, TypeFacts* facts) {
  if (size_in_handle(key_of(type), &facts->size)) {
    facts->extent = facts->size;
    return true;
  }
  if (!knows(type)) return false;
  int size = 0;
  MPI_Aint low = 0;
  MPI_Aint extent = 0;
  if (mpi().Type_size(type, &size) != MPI_SUCCESS || size <= 0) return false;
  if (mpi().Type_get_extent(type, &low, &extent) != MPI_SUCCESS || extent < size) return false;
  facts->size = size_t(size);
  facts->extent = size_t(extent);
  return true;
}

struct QuadComplex {
  kernels::Quad real, imaginary;
  QuadComplex(double value) : real(value), imaginary(-value) {}
  bool operator==(const QuadComplex& other) const { return real == other.real && imaginary == other.imaginary; }
};

// Where there is no __float128, MPICH ends the job when it is to add quad numbers.
#if defined(__SIZEOF_FLOAT128__)
constexpr bool quads_add = true;
#else
constexpr bool quads_add = false;
#endif

// Whether the MPI library adds two numbers of this type as `Number` does. Says which 16-byte format REAL*16 and
// the parts of COMPLEX*32 have there.
template <class Number>
bool adds_like(MPI_Datatype type) {
  MPI_Op sum{};
  Number left = 1.5;
  Number right = 2.25;
  if (!predefined("MPI_SUM", &sum) || !reduces(type, sum)) return false;
  return mpi().Reduce_local(&left, &right, 1, type, sum) == MPI_SUCCESS && right == Number(3.75);
}

// Whether the MPI library has 1 for Fortran's true, as the kernels do; made for compilers of Intel's it may have -1.
bool true_is_one() {
  MPI_Datatype type{};
  MPI_Op either{};
  int64_t left = 1, right = 0;
  if (!predefined("MPI_LOGICAL", &type) || !predefined("MPI_LOR", &either) || !reduces(type, either)) return true;
  return mpi().Reduce_local(&left, &right, 1, type, either) != MPI_SUCCESS || right == 1;
}

kernels::Type type_of(const NamedType& named, MPI_Datatype handle, size_t size) {
  if (named.family == Family::complex && size == 32)
    return quads_add && adds_like<QuadComplex>(handle) ? kernels::Type::c128 : kernels::Type::opaque;
  if (named.family == Family::real16)
    return quads_add && adds_like<kernels::Quad>(handle) ? kernels::Type::f128 : kernels::Type::opaque;
  if (named.family == Family::logical) {
    static const bool one = true_is_one();
    if (!one) return kernels::Type::opaque;
  }
  return kernel_type(named.family, size);
}

void add_type(const NamedType& named) {
  MPI_Datatype handle{};
  TypeFacts facts;
  if (!predefined(named.name, &handle) || !measure(handle, &facts)) return;
  facts.type = type_of(named, handle, facts.size);
  if (kernels::size_of(facts.type) != facts.extent) facts.type = kernels::Type::opaque;
  types.insert(key_of(handle), facts);
}

void add_op(const NamedOp& named) {
  MPI_Op handle{};
  if (predefined(named.name, &handle)) ops.insert(key_of(handle), named.op);
}

}  // namespace

void prepare_handles() {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  if (prepared.load(std::memory_order_relaxed)) return;
  make_own_comm();
  for (const NamedType& named : named_types) add_type(named);
  for (const NamedOp& named : named_ops) add_op(named);
  prepared.store(true, std::memory_order_release);
}

bool named_type(MPI_Datatype type, TypeFacts* facts) {
  if (!prepared.load(std::memory_order_acquire)) return false;
  const TypeFacts* found = types.find(key_of(type));
  if (found) *facts = *found;
  return found != nullptr;
}

bool named_op(MPI_Op op, kernels::Op* which) {
  if (!prepared.load(std::memory_order_acquire)) return false;
  const kernels::Op* found = ops.find(key_of(op));
  if (found) *which = *found;
  return found != nullptr;
}

MPI_Comm comm_world() {
  static const MPI_Comm comm = named<MPI_Comm>("MPI_COMM_WORLD");
  return comm;
}

MPI_Comm comm_self() {
  static const MPI_Comm comm = named<MPI_Comm>("MPI_COMM_SELF");
  return comm;
}

MPI_Comm comm_null() {
  static const MPI_Comm comm = named<MPI_Comm>("MPI_COMM_NULL");
  return comm;
}

MPI_Datatype byte_type() {
  static const MPI_Datatype type = named<MPI_Datatype>("MPI_BYTE");
  return type;
}

bool has_one_process(MPI_Comm comm) {
  return comm == comm_self() || (comm == comm_world() && trace::header()->world_size == 1);
}

}  // namespace stretto::shim
