#include "shim/tools.hpp"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>

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

const void* own_base() {
  return object_of(tool_orders).base;
}

const char* file_name(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

bool is_named_stretto(const char* path) {
  return strncmp(file_name(path), "libstretto_", strlen("libstretto_")) == 0;
}

// "PMPI_X"
struct PmpiName {
  char text[64];
  explicit PmpiName(uint32_t index) { snprintf(text, sizeof text, "P%s", function_names[index]); }
};

// The symbols of a loaded object that it has from others come before those that it defines.
struct Symbols {
  const ElfW(Sym) * table = nullptr;
  const char* names = nullptr;
  uint32_t count = 0;
};

Symbols foreign_symbols(const void* function) {
  Dl_info info;
  void* map = nullptr;
  if (dladdr1(function, &info, &map, RTLD_DL_LINKMAP) == 0 || map == nullptr) return {};
  Symbols found;
  for (const ElfW(Dyn)* entry = static_cast<const link_map*>(map)->l_ld; entry->d_tag != DT_NULL; ++entry) {
    const auto address = entry->d_un.d_ptr;
    if (entry->d_tag == DT_SYMTAB) found.table = reinterpret_cast<const ElfW(Sym)*>(address);
    if (entry->d_tag == DT_STRTAB) found.names = reinterpret_cast<const char*>(address);
    if (entry->d_tag == DT_GNU_HASH || entry->d_tag == DT_HASH) {  // word 1: how many are not in it, or how many there are
      found.count = std::max(found.count, reinterpret_cast<const uint32_t*>(address)[1]);
    }
  }
  return found.table != nullptr && found.names != nullptr ? found : Symbols{};
}

bool uses(const void* function, const char* name) {
  const Symbols symbols = foreign_symbols(function);
  for (uint32_t i = 1; i < symbols.count; ++i) {
    const ElfW(Sym) & one = symbols.table[i];
    if (one.st_shndx == SHN_UNDEF && strcmp(symbols.names + one.st_name, name) == 0) return true;
  }
  return false;
}

const void* called_first(uint32_t index) {
  return dlsym(RTLD_DEFAULT, function_names[index]);
}
const void* called_behind(uint32_t index) {
  return dlsym(RTLD_NEXT, function_names[index]);
}

// Open MPI has parts of itself in files of their own.
bool lies_in_mpi(const void* caller) {
  const Object object = object_of(caller);
  return object.base != nullptr && (object.base == object_of(library().find("PMPI_Get_library_version")).base ||
                                    strncmp(file_name(object.path), "mca_", strlen("mca_")) == 0);
}

}  // namespace

bool is_of_tool(const void* found, const void* of_mpi) {
  const Object object = object_of(found);
  return object.base != nullptr && object.base != own_base() && object.base != object_of(of_mpi).base &&
         !is_mpi_library(object.path) && !is_named_stretto(object.path);
}

bool is_of_mpi(const void* caller) {
  static constinit thread_local struct {
    const void* caller;
    bool verdict;
  } last{};
  if (last.caller != caller) last = {caller, lies_in_mpi(caller)};
  return last.verdict;
}

Order find_tool(uint32_t index) {
  if (library().flavor == Flavor::none) return Order::alone;  // not kept: MPI may be loaded later
  const void* const of_mpi = library().find(PmpiName(index).text);
  Order found = Order::alone;
  if (const void* next = called_behind(index); is_of_tool(next, of_mpi)) {
    tools_behind[index].store(reinterpret_cast<AnyFunction>(const_cast<void*>(next)), std::memory_order_relaxed);
    found = Order::behind;
  } else if (is_of_tool(called_first(index), of_mpi)) {
    found = Order::before;
  }
  tool_orders[index].store(found, std::memory_order_release);
  return found;
}

AnyFunction look_for_tool_behind(uint32_t index) {
  if (tool_order(index) != Order::behind) return nullptr;
  if (called_by_tool == index + 1) return called_by_tool = 0, nullptr;
  return tools_behind[index].load(std::memory_order_relaxed);
}

const char* who_completes_requests() {
  for (const uint32_t index :
       {number::Wait, number::Waitall, number::Waitany, number::Waitsome, number::Test, number::Testall, number::Testany,
        number::Testsome, number::Start, number::Startall, number::Request_free, number::Cancel, number::Request_get_status,
        number::Request_get_status_all, number::Request_get_status_any, number::Request_get_status_some}) {
    const PmpiName name(index);
    const void* const of_mpi = library().find(name.text);
    for (const void* function : {called_first(index), called_behind(index)})
      if (is_of_tool(function, of_mpi) && !uses(function, name.text)) return object_of(function).path;
  }
  return nullptr;
}

bool is_second() {
  const Object first = object_of(dlsym(RTLD_DEFAULT, "stretto_version"));
  return first.base != nullptr && first.base != own_base() && is_named_stretto(first.path);
}

}  // namespace stretto::shim
