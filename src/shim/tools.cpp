#include "shim/tools.hpp"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>

#include "shim/process.hpp"

namespace stretto::shim {

std::atomic<Order> tool_orders[function_count];
constinit thread_local uint32_t called_by_tool = 0;

namespace {

std::atomic<AnyFunction> tools_behind[function_count];

struct Object {
  const void* base = nullptr;
  const char* path = "";
};

// What defines a function. A program that is not position-independent and takes its address has a stub of it, which is none.
Object object_of(const void* function) {
  Dl_info info;
  void* symbol = nullptr;
  if (function == nullptr || dladdr1(function, &info, &symbol, RTLD_DL_SYMENT) == 0) return {};
  if (symbol != nullptr && static_cast<const ElfW(Sym)*>(symbol)->st_shndx == SHN_UNDEF) return {};
  return {info.dli_fbase, info.dli_fname};
}

}  // namespace

bool is_of_tool(const void* found, const void* of_mpi) {
  const Object object = object_of(found);
  return object.base != nullptr && object.base != object_of(tool_orders).base && object.base != object_of(of_mpi).base &&
         !is_mpi_library(object.path);
}

Order find_tool(uint32_t index) {
  if (library().flavor == Flavor::none) return Order::alone;  // not kept: MPI may be loaded later
  char pmpi_name[64];
  snprintf(pmpi_name, sizeof pmpi_name, "P%s", function_names[index]);
  const void* const of_mpi = library().find(pmpi_name);
  Order found = Order::alone;
  if (is_of_tool(dlsym(RTLD_DEFAULT, function_names[index]), of_mpi)) {
    found = Order::before;
  } else if (void* next = dlsym(RTLD_NEXT, function_names[index]); is_of_tool(next, of_mpi)) {
    tools_behind[index].store(reinterpret_cast<AnyFunction>(next), std::memory_order_relaxed);
    found = Order::behind;
  }
  tool_orders[index].store(found, std::memory_order_release);
  return found;
}

AnyFunction look_for_tool_behind(uint32_t index) {
  if (tool_order(index) != Order::behind) return nullptr;
  if (called_by_tool == index + 1) return called_by_tool = 0, nullptr;
  return tools_behind[index].load(std::memory_order_relaxed);
}

}  // namespace stretto::shim
