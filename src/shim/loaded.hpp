// Names in whatever libraries are loaded, also in those that dlopen hides (RTLD_LOCAL, as Python loads its modules): where MPI is
// among what such a library needs, dlsym finds it under RTLD_NEXT and RTLD_DEFAULT no more, and each has a copy of its own of
// the variables that stand for Fortran's MPI_IN_PLACE and the like. Looks at all libraries: to be called once for a name.
#pragma once
#include <initializer_list>
#include <vector>

namespace stretto::shim {

// The first function of that name that is not this library's; null: none.
void* find_hidden(const char* symbol);

// The variables of these names, each once.
using Variables = std::vector<const void*>;
Variables variables_named(std::initializer_list<const char*> symbols);
inline bool contains(const Variables& variables, const void* address) {
  for (const void* one : variables)
    if (one == address) return true;
  return false;
}

}  // namespace stretto::shim
