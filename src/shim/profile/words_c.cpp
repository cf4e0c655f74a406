// A preload without Fortran names sees no words of Fortran calls.
#include "shim/profile/words.hpp"

namespace stretto::shim::profile {

void words_from_fortran(const char*, const Word*, Word*) {}

bool fortran_ignores_status(const void*) {
  return false;
}

}  // namespace stretto::shim::profile
