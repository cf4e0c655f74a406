// A datatype together with this test's own account of where its elements lie, built side by side: MPI's constructors make
// the handle, the same steps here make the list of leaves.
#pragma once
#include <mpi.h>

#include <string>
#include <vector>

#include "base_type.hpp"

namespace differential {

struct Leaf {
  MPI_Aint offset;
  const BaseType* base;
};

class Layout {
 public:
  // The predefined type itself.
  explicit Layout(const BaseType& base);
  // `blocks` copies of `child`: each {byte displacement, number of children}; `handle` is MPI's type for it, taken over.
  struct Block {
    MPI_Aint displacement;
    int length;
  };
  Layout(std::string name, MPI_Datatype handle, const Layout& child, const std::vector<Block>& blocks);
  Layout(Layout&&) noexcept;
  Layout& operator=(Layout&&) noexcept;
  ~Layout();

  // The same leaves under another handle, which is taken over (dup, resized).
  Layout renamed(std::string name, MPI_Datatype handle) const;
  void add_leaves_of(const Layout& child, MPI_Aint displacement);

  const std::string& name() const { return name_; }
  MPI_Datatype type() const { return handle_; }
  const std::vector<Leaf>& leaves() const { return leaves_; }
  MPI_Aint extent() const { return extent_; }
  bool plain() const { return !owned_; }
  // Bytes touched by `count` instances, relative to the buffer address: [low, high).
  void span(size_t count, MPI_Aint* low, MPI_Aint* high) const;

 private:
  Layout() = default;
  void commit();

  std::string name_;
  MPI_Datatype handle_ = MPI_DATATYPE_NULL;
  bool owned_ = false;
  std::vector<Leaf> leaves_;
  MPI_Aint extent_ = 0;
};

Layout contiguous(const Layout& child, int n);

// A random layout of exactly `leaves` elements of `base`: contiguous, vector (also backwards), indexed in permuted order,
// by bytes, struct with gaps, subarray, resized with a negative lower bound, duplicated, nested.
Layout random_layout(Random& random, const BaseType& base, int leaves);

// One column of a matrix with `columns` columns: `rows` elements per instance, instances interleaved.
Layout column_layout(const BaseType& base, int rows, int columns);

// Whether this MPI handles any record of these types: MPICH 5.0 does not where MPI_REAL16 is among them.
bool has_record_layout(Random agreed, const BaseType& a, const BaseType& b, int repeats);

// `repeats` times the sequence (a, b, b) with random gaps: different gaps, same signature.
Layout record_layout(Random& random, const BaseType& a, const BaseType& b, int repeats);

}  // namespace differential
