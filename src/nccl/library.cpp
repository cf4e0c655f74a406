#include "nccl/library.hpp"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "base/log.hpp"

namespace stretto::nccl {
namespace {

// A library whose file name begins like this is NCCL. Loaded with RTLD_LOCAL, as Python modules are, it is hidden from RTLD_NEXT.
constexpr char library_prefix[] = "libnccl.so";

std::atomic<AnyFunction> addresses[function_count];
std::atomic<bool> several{false};

const char* base_name(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

struct Search {
  char path[PATH_MAX] = {};
  int found = 0;
};

int look_at_object(dl_phdr_info* info, size_t, void* result) {
  Search& search = *static_cast<Search*>(result);
  if (strncmp(base_name(info->dlpi_name), library_prefix, strlen(library_prefix)) != 0) return 0;
  if (search.found++ == 0) snprintf(search.path, sizeof search.path, "%s", info->dlpi_name);
  return 0;
}

// Keeps the library loaded for good, since addresses of it are kept.
void* find_handle() {
  if (dlsym(RTLD_NEXT, "ncclGetVersion")) return RTLD_NEXT;
  Search search;
  dl_iterate_phdr(look_at_object, &search);
  return search.found ? dlopen(search.path, RTLD_NOLOAD | RTLD_LAZY) : nullptr;
}

Result no_function() {
  return invalid_usage;
}

// The NCCL that the caller's own library is linked with.
AnyFunction find_for(const void* caller, const char* symbol) {
  Dl_info info;
  if (!dladdr(const_cast<void*>(caller), &info) || !info.dli_fname) return nullptr;
  void* handle = dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_LAZY);
  if (!handle) return nullptr;  // the program itself: RTLD_NEXT is right for it
  void* found = dlsym(handle, symbol);
  dlclose(handle);
  Dl_info where;
  const bool nccl =
      found && dladdr(found, &where) && strncmp(base_name(where.dli_fname), library_prefix, strlen(library_prefix)) == 0;
  return nccl ? reinterpret_cast<AnyFunction>(found) : nullptr;
}

AnyFunction resolve(Function function) {
  AnyFunction found = find(name(function));
  if (!found) {
    log_once(Level::error, "%s was called, but no NCCL that has it is loaded in this process", name(function));
    return reinterpret_cast<AnyFunction>(no_function);  // not kept: NCCL may be loaded later
  }
  addresses[function].store(found, std::memory_order_relaxed);
  return found;
}

// What a function of the form ncclResult_t f(ncclComm_t, int*) tells.
int ask(const char* symbol, Comm comm, int otherwise) {
  auto function = reinterpret_cast<Result (*)(Comm, int*)>(find(symbol));
  int value = otherwise;
  return function && function(comm, &value) == success ? value : otherwise;
}

}  // namespace

AnyFunction real(Function function, const void* caller) {
  if (several.load(std::memory_order_relaxed))
    if (AnyFunction found = find_for(caller, name(function))) return found;
  AnyFunction known = addresses[function].load(std::memory_order_relaxed);
  return known ? known : resolve(function);
}

AnyFunction find(const char* symbol) {
  void* handle = find_handle();
  return handle ? reinterpret_cast<AnyFunction>(dlsym(handle, symbol)) : nullptr;
}

void look_for_libraries() {
  Search search;
  dl_iterate_phdr(look_at_object, &search);
  if (search.found > 1) several.store(true, std::memory_order_relaxed);
}

void describe_library(char* text, size_t bytes) {
  auto get_version = reinterpret_cast<Result (*)(int*)>(find("ncclGetVersion"));
  int code = 0;
  if (!get_version || get_version(&code) != success) {
    snprintf(text, bytes, "NCCL");
    return;
  }
  const int major = code < 10000 ? code / 1000 : code / 10000;  // 2708: 2.7.8; 22703: 2.27.3
  const int minor = (code < 10000 ? code % 1000 : code % 10000) / 100;
  snprintf(text, bytes, "NCCL %d.%d.%d", major, minor, code % 100);
}

int comm_size(Comm comm) {
  return ask("ncclCommCount", comm, 0);
}

int comm_rank(Comm comm) {
  return ask("ncclCommUserRank", comm, -1);
}

int comm_device(Comm comm) {
  return ask("ncclCommCuDevice", comm, -1);
}

int current_device() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
  if (!driver) return -1;
  auto get = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuCtxGetDevice"));
  int device = -1;
  if (get && get(&device) != 0) device = -1;
  dlclose(driver);
  return device;
}

}  // namespace stretto::nccl
