// The public C interface (include/stretto/stretto.h).
#include "shim/hooks.hpp"
#include "shim/process.hpp"
#include "stretto/stretto.h"

#define STRETTO_PUBLIC __attribute__((visibility("default")))

extern "C" {

STRETTO_PUBLIC const char* stretto_version(void) {
  return STRETTO_VERSION;
}

STRETTO_PUBLIC const char* stretto_settings(void) {
  return stretto::settings_text();
}

STRETTO_PUBLIC int stretto_accelerating(const char** why) {
  const char* reason = "MPI is not running, or this preload is for another MPI";
  const bool yes = stretto::shim::attached() && stretto::shim::accelerating(&reason);
  if (why) *why = reason;
  return yes;
}

}  // extern "C"
