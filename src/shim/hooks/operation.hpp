// Operation and datatype of a reduction in neutral terms.
#pragma once
#include "shim/hooks/entry.hpp"
#include "shim/operands.hpp"

namespace stretto::shim {

// Fills in op, type and element size. False: MPI knows of no such type, or it is not committed. *reason says whether the
// reduction can be done; that is equal on all ranks, as op and datatype are.
bool describe_operands(MPI_Datatype type, MPI_Op op, Layout* layout, Request* request, Reason* reason);

// The same elements for a predefined operation, which works on them with their gaps, if any: they are bytes like others.
inline Layout with_gaps(const Layout& layout) {
  Layout bytes = layout;
  bytes.size = layout.extent;
  bytes.dense = true;
  return bytes;
}

}  // namespace stretto::shim
