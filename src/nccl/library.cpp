#include "nccl/library.hpp"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>

#include <string>
#include <vector>

#include "base/log.hpp"

namespace stretto::nccl {
namespace {

// A function of every NCCL, and none that is wrapped here.
constexpr char mark_of_nccl[] = "ncclGetVersion";

std::atomic<AnyFunction> addresses[function_count];
std::atomic<void*> kept_handle{nullptr};
std::atomic<bool> several{false};
constinit thread_local const void* asked = nullptr;

struct Loaded {
  std::vector<std::string> paths;
  uint64_t additions = 0;  // libraries that were ever loaded
};

int note_object(dl_phdr_info* info, size_t, void* result) {
  Loaded& loaded = *static_cast<Loaded*>(result);
  loaded.additions = info->dlpi_adds;
  if (*info->dlpi_name) loaded.paths.emplace_back(info->dlpi_name);  // the program has none
  return 0;
}

// Where the library begins that an address lies in; null: in none.
const void* library_at(const void* address) {
  Dl_info info;
  return address && dladdr(address, &info) ? info.dli_fbase : nullptr;
}

// Asks every loaded library for NCCL: it may have any name (librccl.so.1, libnccl-<hash>.so.2) or be linked into another library,
// and loaded with RTLD_LOCAL, as Python modules are, it is hidden from RTLD_NEXT. The first one's handle stays open, since
// addresses of it are kept.
void look_at_all(const Loaded& loaded) {
  const void* first = nullptr;
  for (const std::string& path : loaded.paths) {
    void* handle = dlopen(path.c_str(), RTLD_NOLOAD | RTLD_LAZY);
    if (!handle) continue;
    const void* found = library_at(dlsym(handle, mark_of_nccl));
    void* none = nullptr;
    if (found && first && found != first) several.store(true, std::memory_order_relaxed);
    if (!first) first = found;
    if (!found || !kept_handle.compare_exchange_strong(none, handle)) dlclose(handle);
  }
}

void* first_library() {
  if (!kept_handle.load(std::memory_order_acquire)) look_for_libraries();
  return kept_handle.load(std::memory_order_acquire);
}

Result no_function() {
  return invalid_usage;
}

// Of the NCCL that the library in which this address lies is, has in itself, or is linked with.
AnyFunction find_for(const void* address, const char* symbol) {
  Dl_info info;
  if (!dladdr(address, &info) || !info.dli_fname) return nullptr;
  void* handle = dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_LAZY);
  if (!handle) return nullptr;  // the program itself: RTLD_NEXT is right for it
  void* found = dlsym(handle, symbol);
  dlclose(handle);
  const bool own = library_at(found) == library_at(reinterpret_cast<const void*>(&note_object));
  return own ? nullptr : reinterpret_cast<AnyFunction>(found);
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
int ask(const char* symbol, Comm comm, const void* nccl, int otherwise) {
  auto function = reinterpret_cast<Result (*)(Comm, int*)>(nccl ? find_for(nccl, symbol) : find(symbol));
  int value = otherwise;
  return function && function(comm, &value) == success ? value : otherwise;
}

}  // namespace

AnyFunction real(Function function, const void* caller) {
  const bool choose = first_library() && several.load(std::memory_order_relaxed);
  AnyFunction found = choose ? find_for(caller, name(function)) : nullptr;
  asked = reinterpret_cast<const void*>(found);
  if (found) return found;
  AnyFunction known = addresses[function].load(std::memory_order_relaxed);
  return known ? known : resolve(function);
}

const void* library_asked() {
  return asked;
}

AnyFunction find(const char* symbol) {
  void* handle = first_library();
  return handle ? reinterpret_cast<AnyFunction>(dlsym(handle, symbol)) : nullptr;
}

void look_for_libraries() {
  static std::atomic<uint64_t> additions{0};  // when all were last looked at
  void* known = kept_handle.load(std::memory_order_acquire);
  if (!known && dlsym(RTLD_NEXT, mark_of_nccl)) kept_handle.compare_exchange_strong(known, RTLD_NEXT);
  if (kept_handle.load(std::memory_order_acquire) == RTLD_NEXT)
    return;  // which hides all others, also from those linked with them
  Loaded loaded;
  dl_iterate_phdr(note_object, &loaded);
  if (additions.load(std::memory_order_acquire) == loaded.additions) return;
  look_at_all(loaded);
  additions.store(loaded.additions, std::memory_order_release);
}

void describe_library(char* text, size_t bytes) {
  auto get_version = reinterpret_cast<Result (*)(int*)>(find(mark_of_nccl));
  int code = 0;
  if (!get_version || get_version(&code) != success) {
    snprintf(text, bytes, "NCCL");
    return;
  }
  const int major = code < 10000 ? code / 1000 : code / 10000;  // 2708: 2.7.8; 22703: 2.27.3
  const int minor = (code < 10000 ? code % 1000 : code % 10000) / 100;
  snprintf(text, bytes, "NCCL %d.%d.%d", major, minor, code % 100);
}

int comm_size(Comm comm, const void* nccl) {
  return ask("ncclCommCount", comm, nccl, 0);
}

int comm_rank(Comm comm, const void* nccl) {
  return ask("ncclCommUserRank", comm, nccl, -1);
}

int comm_device(Comm comm, const void* nccl) {
  return ask("ncclCommCuDevice", comm, nccl, -1);
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
