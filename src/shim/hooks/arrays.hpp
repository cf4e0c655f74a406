// Array arguments: counts and displacements of either width, datatypes of either language.
#pragma once
#include <type_traits>

#include "shim/abi.hpp"
#include "shim/mpi.hpp"

namespace stretto::shim {

class Numbers {
 public:
  Numbers() = default;
  template <class T>
  Numbers(const T* values) : values_(values), wide_(sizeof(T) == sizeof(int64_t)) {
    static_assert(std::is_integral_v<T> && (sizeof(T) == sizeof(int) || sizeof(T) == sizeof(int64_t)));
  }
  bool present() const { return values_ != nullptr; }
  int64_t operator[](int i) const {
    return wide_ ? static_cast<const int64_t*>(values_)[i] : static_cast<const int*>(values_)[i];
  }

 private:
  const void* values_ = nullptr;
  bool wide_ = false;
};

class Types {
 public:
  Types() = default;
  Types(const MPI_Datatype* types) : types_(types) {}
  static Types of_fortran(const MPI_Fint* handles) {
    Types types;
    types.handles_ = handles;
    return types;
  }
  bool present() const { return types_ != nullptr || handles_ != nullptr; }
  MPI_Datatype operator[](int i) const { return types_ ? types_[i] : mpi().Type_f2c(handles_[i]); }

 private:
  const MPI_Datatype* types_ = nullptr;
  const MPI_Fint* handles_ = nullptr;
};

}  // namespace stretto::shim
