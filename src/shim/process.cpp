#include "shim/process.hpp"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mutex>

#include "base/log.hpp"
#include "engine/identity.hpp"
#include "shim/hooks.hpp"
#include "shim/mpi.hpp"
#include "shim/wrap.hpp"

namespace stretto::shim {

std::atomic<bool> attached_now{false};
std::atomic<bool> taking_now{false};
constinit thread_local uint32_t in_fortran = 0;

namespace {

Settings process_settings;

// Where a library whose file name begins like one of these is loaded, it is asked for MPI. dlopen with RTLD_LOCAL, as
// Python modules are loaded, hides MPI from RTLD_NEXT.
constexpr const char* library_prefixes[] = {"libmpi.so",    "libmpi-",     "libmpich.so", "libmpich-",     "libmpi_abi",
                                            "libmpi_intel", "libmpi_cray", "libmpi_gnu_", "libmpi_nvidia", "libmpi_amd"};

const char* base_name(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

struct Candidate {
  char path[PATH_MAX] = {};
};

int look_at_object(dl_phdr_info* info, size_t, void* result) {
  if (!is_mpi_library(info->dlpi_name)) return 0;
  snprintf(static_cast<Candidate*>(result)->path, PATH_MAX, "%s", info->dlpi_name);
  return 1;
}

// A handle that reaches PMPI; null where no MPI is loaded.
void* find_handle() {
  if (dlsym(RTLD_NEXT, "PMPI_Init")) return RTLD_NEXT;
  Candidate candidate;
  if (!dl_iterate_phdr(look_at_object, &candidate)) return nullptr;
  return dlopen(candidate.path, RTLD_NOLOAD | RTLD_LAZY);
}

Flavor flavor_of_version(void* version_function) {
  if (!version_function) return Flavor::unknown;
  static char text[8192];  // the largest MPI_MAX_LIBRARY_VERSION_STRING of all
  int length = 0;
  reinterpret_cast<int (*)(char*, int*)>(version_function)(text, &length);
  for (const char* word : {"MPICH", "MVAPICH", "Intel(R) MPI", "ParaStation"}) {
    if (strstr(text, word)) return Flavor::mpich;
  }
  return Flavor::unknown;
}

Flavor flavor_of(const Library& found) {
  Dl_info info;
  void* version = found.find("PMPI_Get_library_version");
  if (version && dladdr(version, &info) && strncmp(base_name(info.dli_fname), "libmpi_abi", 10) == 0) return Flavor::standard;
  if (found.find("ompi_mpi_comm_world")) return Flavor::open_mpi;
  return flavor_of_version(version);
}

Level level_named(const char* word) {
  if (strcmp(word, "error") == 0) return Level::error;
  if (strcmp(word, "info") == 0) return Level::info;
  return strcmp(word, "debug") == 0 ? Level::debug : Level::warning;
}

void load_settings() {
  const char* offender = "";
  const Status status = read_settings(environ, &process_settings, &offender);
  set_log_level(level_named(process_settings.log));
  if (!status.ok()) process_settings.accelerate = false;  // attach() says why
}

// One rank per node speaks for all.
bool speaks() {
  return engine::locality().rank <= 0;
}

void open_process_record(bool right_mpi) {
  trace::Tables tables{};
  fill_record_tables(&tables);
  tables.functions = function_names;
  tables.function_count = wrapped_count;
  const char* directory = process_settings.record_dir;
  const Status status = trace::open_record(directory && *directory ? directory : nullptr, tables);
  if (!status.ok() && *process_settings.meeting == '\0' && speaks())  // else it is sent there
    log(Level::warning, "no record in %s: %s (%s): counting in memory only", directory, status.what, strerror(status.detail));
  if (right_mpi) profile::open_profile(process_settings, tables);
}

void in_fork_child() {
  taking_now.store(false, std::memory_order_relaxed);
  attached_now.store(false, std::memory_order_relaxed);  // MPI does not follow a fork
  trace::after_fork_child();
  profile::profile_in_fork_child();
}

void say_if_wrong(Flavor flavor) {
  if (flavor == own_flavor() || !speaks()) return;
  log(Level::error, "this is the preload for %s but the program uses %s: continuing with plain MPI", name(own_flavor()),
      name(flavor));
}

void begin(const Library& found) {
  load_settings();
  open_process_record(found.flavor == own_flavor());
  pthread_atfork(nullptr, nullptr, in_fork_child);
  say_if_wrong(found.flavor);
}

}  // namespace

const char* name(Flavor flavor) {
  switch (flavor) {
    case Flavor::open_mpi:
      return "Open MPI";
    case Flavor::mpich:
      return "MPICH";
    case Flavor::standard:
      return "the MPI standard ABI";
    case Flavor::unknown:
      return "an MPI unknown to Stretto";
    case Flavor::none:
      break;
  }
  return "no MPI";
}

Flavor own_flavor() {
#if defined(STRETTO_MPI_OMPI)
  return Flavor::open_mpi;
#elif defined(STRETTO_MPI_MPICH)
  return Flavor::mpich;
#else
  return Flavor::standard;
#endif
}

void* Library::find(const char* symbol) const {
  return handle ? dlsym(handle, symbol) : nullptr;
}

void* Library::find_data(const char* symbol) const {
  void* in_use = dlsym(RTLD_DEFAULT, symbol);
  return in_use ? in_use : find(symbol);
}

bool is_spawned() {
  MPI_Comm parent = comm_null();
  return mpi().Comm_get_parent(&parent) == MPI_SUCCESS && parent != comm_null();
}

bool is_mpi_library(const char* path) {
  for (const char* prefix : library_prefixes)
    if (strncmp(base_name(path), prefix, strlen(prefix)) == 0) return true;
  return false;
}

const Library& library() {
  static Library found;
  static std::mutex mutex;
  static std::atomic<bool> known{false};
  if (known.load(std::memory_order_acquire)) return found;
  const std::lock_guard<std::mutex> lock(mutex);
  if (known.load(std::memory_order_relaxed)) return found;
  found.handle = find_handle();
  if (!found.handle) return found;
  found.flavor = flavor_of(found);
  begin(found);
  known.store(true, std::memory_order_release);
  return found;
}

const Settings& settings() {
  library();
  return process_settings;
}

}  // namespace stretto::shim
