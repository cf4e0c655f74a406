#include "platform/device_memory.hpp"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include <atomic>
#include <mutex>

#include "platform/kept_memory.hpp"

namespace stretto::platform {
namespace {

// The driver's functions and constants, as cuda.h has them.
using Result = int;
using DevicePointer = unsigned long long;
using CudaContext = void*;
using Device = int;
constexpr int attribute_context = 1;
constexpr int attribute_memory_type = 2;
constexpr int attribute_is_managed = 8;
constexpr int attribute_device_ordinal = 9;
constexpr unsigned type_device = 2;
constexpr unsigned for_all_contexts = 1;
constexpr unsigned memory_host = 1;
constexpr unsigned memory_device = 2;

// One side of a copy of rows, and the whole, as cuda.h has them (CUDA_MEMCPY2D).
struct Side {
  size_t x = 0, y = 0;
  unsigned memory = 0;
  const void* host = nullptr;
  DevicePointer device = 0;
  void* array = nullptr;
  size_t pitch = 0;
};
struct RowsCopy {
  Side from, to;
  size_t width = 0, height = 0;
};
static_assert(offsetof(Side, host) == 24 && offsetof(Side, pitch) == 48 && offsetof(RowsCopy, to) == 56);
static_assert(offsetof(RowsCopy, width) == 112 && sizeof(RowsCopy) == 128);
constexpr size_t most_pitch = INT_MAX;  // beyond it drivers refuse

struct Driver {
  Result (*get_attributes)(unsigned, const int*, void**, DevicePointer);
  Result (*copy_out)(void*, DevicePointer, size_t);
  Result (*copy_in)(DevicePointer, const void*, size_t);
  Result (*synchronize)(void*);
  Result (*push)(CudaContext);
  Result (*pop)(CudaContext*);
  Result (*retain_primary)(CudaContext*, Device);
  Result (*release_primary)(Device);
  // These may be missing.
  Result (*lock_pages)(void*, size_t, unsigned);
  Result (*start_copy_in)(DevicePointer, const void*, size_t, void*);
  Result (*start_copy_of_rows)(const RowsCopy*, void*);
  void* stream;  // of all copies

  bool complete() const {
    return get_attributes && copy_out && copy_in && synchronize && push && pop && retain_primary && release_primary;
  }
};

// All copies go by the calling thread's own stream, which every context has (CU_STREAM_PER_THREAD; "_ptds" of functions). It
// waits for what the program has under way on the legacy stream, as MPI libraries' streams do, but not for other streams, where
// an NCCL kernel may wait for a rank that waits in this very call. A stand-in for the driver that has no such functions has the
// legacy stream.
constexpr uintptr_t legacy_stream = 1, stream_of_thread = 2;

// Where the loader's count is not known: the two never agree, and the slow way asks the loader.
constexpr uint64_t never = UINT64_MAX;
constexpr uint64_t unknown_count = 0;

std::mutex mutex;
std::atomic<const Driver*> driver{nullptr};
std::atomic<uint64_t> searched_at{never};  // the loader's count at the last search

int count_added(dl_phdr_info* info, size_t, void* count) {
  *static_cast<uint64_t*>(count) = info->dlpi_adds;
  return 1;
}

uint64_t libraries_added() {
  uint64_t count = 0;
  dl_iterate_phdr(count_added, &count);
  return count;
}

int find_driver_library(dl_phdr_info* info, size_t, void* path) {
  const char* slash = strrchr(info->dlpi_name, '/');
  const char* name = slash ? slash + 1 : info->dlpi_name;
  if (strncmp(name, "libcuda.so", 10) != 0) return 0;
  snprintf(static_cast<char*>(path), PATH_MAX, "%s", info->dlpi_name);
  return 1;
}

template <class Signature>
void take(Signature** function, void* handle, const char* name) {
  *function = reinterpret_cast<Signature*>(dlsym(handle, name));
}

// The handle of the library by its usual name, or of whatever the program finds the functions in. It is kept: what is in use
// here must not be unloaded.
void* driver_handle() {
  char path[PATH_MAX];
  void* handle = dl_iterate_phdr(find_driver_library, path) ? dlopen(path, RTLD_NOLOAD | RTLD_LAZY) : nullptr;
  return handle ? handle : RTLD_DEFAULT;
}

const Driver* find_driver() {
  static Driver found{};
  void* handle = driver_handle();
  take(&found.get_attributes, handle, "cuPointerGetAttributes");
  if (found.get_attributes == nullptr) return nullptr;
  const bool of_thread = dlsym(handle, "cuMemcpyDtoH_v2_ptds") != nullptr && dlsym(handle, "cuMemcpyHtoD_v2_ptds") != nullptr;
  found.stream = reinterpret_cast<void*>(of_thread ? stream_of_thread : legacy_stream);
  take(&found.copy_out, handle, of_thread ? "cuMemcpyDtoH_v2_ptds" : "cuMemcpyDtoH_v2");
  take(&found.copy_in, handle, of_thread ? "cuMemcpyHtoD_v2_ptds" : "cuMemcpyHtoD_v2");
  take(&found.synchronize, handle, "cuStreamSynchronize");
  take(&found.push, handle, "cuCtxPushCurrent_v2");
  take(&found.pop, handle, "cuCtxPopCurrent_v2");
  take(&found.retain_primary, handle, "cuDevicePrimaryCtxRetain");
  take(&found.release_primary, handle, "cuDevicePrimaryCtxRelease_v2");
  take(&found.lock_pages, handle, "cuMemHostRegister_v2");
  take(&found.start_copy_in, handle, "cuMemcpyHtoDAsync_v2");
  take(&found.start_copy_of_rows, handle, "cuMemcpy2DAsync_v2");
  return found.complete() ? &found : nullptr;
}

// The count is read before the search: what is loaded meanwhile leads to another one.
const Driver* present_driver() {
  const Driver* known = driver.load(std::memory_order_acquire);
  if (known != nullptr) return known;
  uint64_t added = libraries_added();
  if (added == searched_at.load(std::memory_order_acquire)) return nullptr;
  const std::lock_guard<std::mutex> lock(mutex);
  known = driver.load(std::memory_order_relaxed);
  if (known == nullptr) driver.store(known = find_driver(), std::memory_order_release);
  searched_at.store(added, std::memory_order_release);
  __atomic_store_n(&loader_watch.without_driver, known ? never : added, __ATOMIC_RELAXED);
  return known;
}

// What the driver knows of an address. Of host memory it knows nothing, and every field stays 0.
struct Facts {
  CudaContext context = nullptr;
  unsigned type = 0;
  unsigned is_managed = 0;
  int ordinal = 0;
};

Facts facts_of(const Driver& cuda, const void* address) {
  static constexpr int attributes[] = {attribute_context, attribute_memory_type, attribute_is_managed, attribute_device_ordinal};
  Facts facts;
  void* places[] = {&facts.context, &facts.type, &facts.is_managed, &facts.ordinal};
  if (cuda.get_attributes(4, attributes, places, reinterpret_cast<DevicePointer>(address)) != 0) return {};
  return facts;
}

// The context that owns some device memory, current while this lives. Memory of pools has none: then the device's primary one.
class Current {
 public:
  Current(const Driver& cuda, const void* address) : cuda_(cuda), facts_(facts_of(cuda, address)) {
    CudaContext context = facts_.context;
    if (context == nullptr) {
      error_ = cuda_.retain_primary(&context, facts_.ordinal);
      retained_ = error_ == 0;
    }
    if (error_ == 0) error_ = cuda_.push(context);
    pushed_ = error_ == 0;
  }
  ~Current() {
    CudaContext former;
    if (pushed_) cuda_.pop(&former);
    if (retained_) cuda_.release_primary(facts_.ordinal);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  Result error() const { return error_; }

 private:
  const Driver& cuda_;
  const Facts facts_;
  Result error_ = 0;
  bool retained_ = false, pushed_ = false;
};

// Where the driver refuses, as it does beyond a limit of locked memory, it copies all the same.
void lock_kept(const Driver& cuda, const void* host) {
  if (cuda.lock_pages == nullptr) return;
  if (const Pages pages = not_yet_locked(host); pages.begin != nullptr)
    cuda.lock_pages(pages.begin, pages.bytes, for_all_contexts);
}

template <class Copy>
Status copy_in_context(const void* device, const void* host, Copy copy) {
  const Driver* cuda = present_driver();
  if (cuda == nullptr) return refused("there is no CUDA driver");
  Current current(*cuda, device);
  if (current.error() != 0) return refused("the CUDA driver gives no context", current.error());
  lock_kept(*cuda, host);
  if (Result error = copy(*cuda)) return refused("the CUDA driver cannot copy", error);
  return Status::good();
}

// Copies into device memory that need not have arrived before the stream has been waited for.
class Inward {
 public:
  Inward(const Driver& cuda, void* device, const void* host)
      : cuda_(cuda), device_(device), host_(static_cast<const char*>(host)) {}

  // Repetitions go together, as the rows of one copy.
  Result start(std::span<const Run> runs) const {
    while (!runs.empty()) {
      const Pattern pattern = pattern_of(runs);
      for (size_t place = 0; place < pattern.period; ++place)
        if (Result error = start_rows(runs[place], pattern.rows(place), pattern.distance)) return error;
      runs = runs.subspan(pattern.runs);
    }
    return 0;
  }

 private:
  Result start_rows(Run run, size_t rows, size_t distance) const {
    if (rows > 1 && distance <= most_pitch && cuda_.start_copy_of_rows != nullptr) return start_together(run, rows, distance);
    for (; rows > 0; --rows, run.offset += distance)
      if (Result error = start_one(run)) return error;
    return 0;
  }

  Result start_together(Run run, size_t rows, size_t distance) const {
    RowsCopy copy;
    copy.from.memory = memory_host;
    copy.from.host = host_ + run.offset;
    copy.to.memory = memory_device;
    copy.to.device = device(run);
    copy.from.pitch = copy.to.pitch = distance;
    copy.width = run.bytes;
    copy.height = rows;
    return cuda_.start_copy_of_rows(&copy, cuda_.stream);
  }

  Result start_one(Run run) const {
    if (cuda_.start_copy_in == nullptr) return cuda_.copy_in(device(run), host_ + run.offset, run.bytes);
    return cuda_.start_copy_in(device(run), host_ + run.offset, run.bytes, cuda_.stream);
  }

  DevicePointer device(Run run) const { return reinterpret_cast<DevicePointer>(device_) + run.offset; }

  const Driver& cuda_;
  void* const device_;
  const char* const host_;
};

// So many at a time, for which there is room on the stack.
constexpr size_t runs_together = 512;

Result start_all(const Inward& copies, Runs& runs) {
  Run batch[runs_together];
  for (size_t count = runs_together; count == runs_together;) {
    count = 0;
    while (count < runs_together && (batch[count] = runs.next()).bytes > 0) ++count;
    if (Result error = copies.start({batch, count})) return error;
  }
  return 0;
}

// The words of the loader's variables; none where it does not tell where they are.
struct Words {
  const uint64_t* first = nullptr;
  size_t count = 0;
};

Words loader_variables() {
  void* start = dlvsym(RTLD_DEFAULT, "_rtld_global", "GLIBC_PRIVATE");
  Dl_info info;
  const ElfW(Sym)* symbol = nullptr;
  if (start == nullptr || !dladdr1(start, &info, reinterpret_cast<void**>(const_cast<ElfW(Sym)**>(&symbol)), RTLD_DL_SYMENT))
    return {};
  if (symbol == nullptr || info.dli_saddr != start || reinterpret_cast<uintptr_t>(start) % 8 != 0) return {};
  return {static_cast<const uint64_t*>(start), symbol->st_size / 8};
}

// Narrows down `words`, marked in `same`, to those that agree with the loader's count now.
size_t agreeing(const Words& words, bool* same) {
  uint64_t added = libraries_added();
  size_t last = words.count, found = 0;
  for (size_t i = 0; i < words.count; ++i) {
    same[i] = same[i] && __atomic_load_n(&words.first[i], __ATOMIC_RELAXED) == added;
    if (same[i]) last = i, ++found;
  }
  return found == 1 ? last : words.count;
}

}  // namespace

LoaderWatch loader_watch{&unknown_count, never};

namespace {
bool loader_watched = false;
}

// glibc tells its count through dl_iterate_phdr alone, which visits every library. The word it reads is among the variables of
// the loader: the one that equals the count before, during and after the visit of a library. A count of libraries present, or
// a chance, would not; where anything but one word remains, the slow way stays.
void watch_loader() {
  if (loader_watched) return;
  loader_watched = true;
  constexpr size_t most_words = 2048;
  bool same[most_words];
  Words words = loader_variables();
  if (words.count == 0 || words.count > most_words) return;
  memset(same, true, sizeof same);
  agreeing(words, same);
  void* visitor = nullptr;
  for (const char* name : {"libBrokenLocale.so.1", "libanl.so.1", "libthread_db.so.1"}) {
    if (void* present = dlopen(name, RTLD_NOLOAD | RTLD_LAZY)) {
      dlclose(present);
      continue;
    }
    if ((visitor = dlopen(name, RTLD_LAZY | RTLD_LOCAL))) break;
  }
  if (visitor == nullptr) return;
  agreeing(words, same);
  dlclose(visitor);
  size_t found = agreeing(words, same);
  if (found < words.count) __atomic_store_n(&loader_watch.added, &words.first[found], __ATOMIC_RELEASE);
}

uint8_t ask_driver(const void* address) {
  const Driver* cuda = present_driver();
  if (cuda == nullptr || address == nullptr) return on_host;
  Facts facts = facts_of(*cuda, address);
  if (facts.is_managed) return managed;
  if (facts.type != type_device) return on_host;
  return facts.ordinal >= last_device ? last_device : uint8_t(facts.ordinal + 1);
}

Status copy_from_device(void* host, const void* device, size_t bytes) {
  return copy_in_context(device, host,
                         [=](const Driver& cuda) { return cuda.copy_out(host, reinterpret_cast<DevicePointer>(device), bytes); });
}

// From pageable memory the driver may return before the last bytes have arrived: the stream is waited for.
Status copy_to_device(void* device, const void* host, size_t bytes) {
  return copy_in_context(device, host, [=](const Driver& cuda) {
    Result error = cuda.copy_in(reinterpret_cast<DevicePointer>(device), host, bytes);
    return error != 0 ? error : cuda.synchronize(cuda.stream);
  });
}

// What has been started reads host memory until it has been waited for, also after an error.
Status copy_runs_to_device(void* device, const void* host, Runs& runs) {
  return copy_in_context(device, host, [&](const Driver& cuda) {
    Result error = start_all(Inward(cuda, device, host), runs);
    Result late = cuda.synchronize(cuda.stream);
    return error != 0 ? error : late;
  });
}

}  // namespace stretto::platform
