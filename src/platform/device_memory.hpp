// Where a buffer is: in memory that this process may load and store, or on a GPU that only its driver can reach.
//
// Asking costs nothing while no CUDA driver is in the process, and the driver is never loaded for it. Device addresses exist
// only once the program has loaded libcuda.so.1, which may be long after MPI_Init; so what is looked at in every call is
// whether the dynamic loader has added anything since the last search for the driver: one load and one comparison.
// Not seen: drivers in other link namespaces (dlmopen), and the run-times of other makers (HIP, Level Zero).
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/status.hpp"
#include "platform/runs.hpp"

namespace stretto::platform {

inline constexpr uint8_t on_host = 0;
inline constexpr uint8_t last_device = 13;  // of device 12 and all above
inline constexpr uint8_t managed = 14;      // the driver moves it to whoever touches it: usable like host memory

// The loader's own count of libraries ever added (dlpi_adds of dl_iterate_phdr) and what it was when there was no driver.
struct LoaderWatch {
  const uint64_t* added;
  uint64_t without_driver;
};
extern LoaderWatch loader_watch;

// True: no driver is in the process, so every address is on the host.
inline bool no_device_memory() {
  return __atomic_load_n(loader_watch.added, __ATOMIC_RELAXED) == __atomic_load_n(&loader_watch.without_driver, __ATOMIC_RELAXED);
}

// Finds the loader's count, by loading and unloading a small library of libc's. To be called from one thread, before
// the first use of the rest (again: nothing happens); where the count is not found everything works, at some tens of nanoseconds
// a call.
void watch_loader();

uint8_t ask_driver(const void* address);

// on_host, the device's number + 1, or managed. Null is on the host.
inline uint8_t memory_place(const void* address) {
  return no_device_memory() ? on_host : ask_driver(address);
}

inline bool is_device(uint8_t place) {
  return place != on_host && place != managed;
}

// Whether the CPU can load and store at both addresses.
inline bool reachable(const void* a, const void* b) {
  return no_device_memory() || !(is_device(ask_driver(a)) || is_device(ask_driver(b)));
}

// Copies that are complete on return. They run in the context that owns the device memory, and leave the current one as it
// was. refused, with the driver's error number: nothing can be said of the target's bytes.
Status copy_from_device(void* host, const void* device, size_t bytes);
Status copy_to_device(void* device, const void* host, size_t bytes);
// The same of runs alone, whose offsets count from both addresses: what lies between them on the device is not touched.
Status copy_runs_to_device(void* device, const void* host, Runs& runs);

}  // namespace stretto::platform
