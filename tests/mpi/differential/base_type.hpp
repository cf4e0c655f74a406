// The predefined MPI types of the loaded library, as this test sees them: how to draw values, which bytes carry them and
// how a result may differ from the oracle's.
#pragma once
#include <mpi.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "random.hpp"

namespace differential {

enum class Family { integer, logical, byte, floating, complex, pair, opaque };

struct BaseType {
  const char* name;
  MPI_Datatype handle;
  size_t size;  // distance between neighbours in an array
  Family family;
  std::vector<std::pair<size_t, size_t>> significant;  // {offset, length}: the other bytes are padding
  // Draws one value; product: one whose repeated product neither overflows nor vanishes.
  void (*draw)(Random&, bool product, unsigned char* to);
  // Whether a result is the oracle's, given `slack` roundings and |scale| = sum of the magnitudes (null: the oracle's own).
  bool (*close)(const unsigned char* result, const unsigned char* oracle, const unsigned char* scale, double slack);
  // Writes the magnitude of `from` as a value of the same type; null for exact families.
  void (*magnitude)(const unsigned char* from, unsigned char* to);
  // inout = the larger (or smaller) of both by C's comparison; null where there is no order of integers.
  void (*choose)(bool larger, const unsigned char* in, unsigned char* inout);
};

struct Operation {
  const char* name;
  MPI_Op handle;
  bool commutative;
  // False where the library computes it wrongly: MPICH 4.0 compares unsigned integers as signed, Open MPI takes MPI_OFFSET
  // for unsigned. The oracle is then C's comparison.
  bool trusted = true;
};

// All types that the library has, MPI_CHAR and MPI_WCHAR included (family opaque: Bcast only).
const std::vector<BaseType>& base_types();
const BaseType& base_type(const char* name);

// The predefined operations that MPI allows on the type and that this library really implements.
std::vector<Operation> operations_on(const BaseType& type);

}  // namespace differential
