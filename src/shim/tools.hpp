// Other tools that take the program's calls: the program itself or a library has an MPI_X of its own, which goes on by PMPI_X.
// Stretto is the last: of one that is found before it Stretto takes the PMPI_X, and to one behind it its MPI_X hands the call.
#pragma once
#include <atomic>

#include "shim/mpi.hpp"

namespace stretto::shim {

enum class Order : uint8_t { unknown, alone, before, behind };  // where another tool's function stands; behind: and maybe before

extern std::atomic<Order> tool_orders[function_count];
Order find_tool(uint32_t index);
inline bool is_alone(uint32_t index) {  // false too where nobody has looked yet
  return tool_orders[index].load(std::memory_order_relaxed) == Order::alone;
}
inline Order tool_order(uint32_t index) {
  const Order known = tool_orders[index].load(std::memory_order_acquire);
  return __builtin_expect(known != Order::unknown, 1) ? known : find_tool(index);
}

// Which function (index + 1) a tool behind has called by its PMPI name, for which Stretto's MPI_X is called next.
extern constinit thread_local uint32_t called_by_tool;

// For Stretto's MPI_X: the function of a tool behind to which the program's call goes first. Null: none.
AnyFunction look_for_tool_behind(uint32_t index);
inline AnyFunction tool_behind(uint32_t index) {
  if (__builtin_expect(is_alone(index), 1)) return nullptr;
  return look_for_tool_behind(index);
}

// Whether the function `found` is neither Stretto's nor MPI's, whose PMPI_X is `of_mpi`.
bool is_of_tool(const void* found, const void* of_mpi);

// Whether code of the MPI library has called from there.
bool is_of_mpi(const void* caller);

// The file of a tool that has an MPI_Wait, or one of its kin, but does not call PMPI_Wait by name: it may go on past Stretto,
// whose requests would then never end. Null: none.
const char* who_completes_requests();

// Whether another Stretto stands before this one, which then does nothing.
bool is_second();

}  // namespace stretto::shim
