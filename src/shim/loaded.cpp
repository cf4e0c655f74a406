#include "shim/loaded.hpp"

#include <dlfcn.h>
#include <link.h>

#include <string>

namespace stretto::shim {
namespace {

int note_name(dl_phdr_info* info, size_t, void* names) {
  if (info->dlpi_name != nullptr && *info->dlpi_name != '\0')  // the program has none, and stands for all that is not hidden
    static_cast<std::vector<std::string>*>(names)->emplace_back(info->dlpi_name);
  return 0;
}

// look(handle) for each library, until it says true.
template <typename Look>
void each_library(const Look& look) {
  std::vector<std::string> names;
  dl_iterate_phdr(note_name, &names);
  for (const std::string& name : names) {
    void* handle = dlopen(name.c_str(), RTLD_NOLOAD | RTLD_LAZY);
    if (handle == nullptr) continue;
    const bool enough = look(handle);
    dlclose(handle);
    if (enough) return;
  }
}

bool is_own(const void* address) {
  Dl_info here, there;
  return dladdr(reinterpret_cast<const void*>(&note_name), &here) && dladdr(address, &there) && here.dli_fbase == there.dli_fbase;
}

}  // namespace

void* find_hidden(const char* symbol) {
  void* found = nullptr;
  each_library([&](void* handle) {
    void* candidate = dlsym(handle, symbol);
    if (candidate != nullptr && !is_own(candidate)) found = candidate;
    return found != nullptr;
  });
  return found;
}

Variables variables_named(std::initializer_list<const char*> symbols) {
  Variables found;
  const auto look = [&](void* handle) {
    for (const char* symbol : symbols) {
      const void* variable = dlsym(handle, symbol);
      if (variable != nullptr && !contains(found, variable)) found.push_back(variable);
    }
    return false;
  };
  look(RTLD_DEFAULT);
  each_library(look);
  return found;
}

}  // namespace stretto::shim
