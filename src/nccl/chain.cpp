#include "nccl/chain.hpp"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/log.hpp"
#include "nccl/session.hpp"

namespace stretto::nccl {
namespace {

using profiler::Descriptor4;
using profiler::Descriptor6;

// The interface of the next plugin that is used: the newest that it has and that NCCL's events can be given in. 5 and 6 agree in
// all that both have.
struct Next {
  const profiler::Plugin6* six = nullptr;
  const profiler::Plugin4* four = nullptr;
};

// NCCL has one mask for all communicators of a process, and so has the next plugin, which may keep its address and set it once.
constinit int next_mask = 0;

// What NCCL looks for where no plugin is named. `stretto profile` names it then: nobody has asked for it.
constexpr char default_plugin[] = "libnccl-profiler.so";

void* open_plugin(const char* given) {
  if (void* handle = dlopen(given, RTLD_NOW | RTLD_LOCAL)) return handle;
  if (strchr(given, '/')) return nullptr;
  char path[PATH_MAX];
  snprintf(path, sizeof path, "libnccl-profiler-%s.so", given);
  return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

bool is_own(const void* symbol) {
  Dl_info own, its;
  return dladdr(reinterpret_cast<void*>(&chain_init), &own) && dladdr(symbol, &its) && own.dli_fbase == its.dli_fbase;
}

Next load() {
  Next next;
  const char* given = settings().nccl_next_plugin;
  if (!*given || strcasecmp(given, "none") == 0) return next;
  void* library = open_plugin(given);
  if (!library) {
    if (speaks() && strcmp(given, default_plugin) != 0) log(Level::warning, "STRETTO_NCCL_NEXT_PLUGIN=%s: %s", given, dlerror());
    return next;
  }
  next.six = static_cast<const profiler::Plugin6*>(dlsym(library, "ncclProfiler_v6"));
  if (!next.six) next.six = static_cast<const profiler::Plugin6*>(dlsym(library, "ncclProfiler_v5"));
  next.four = static_cast<const profiler::Plugin4*>(dlsym(library, "ncclProfiler_v4"));
  if ((next.six && is_own(next.six)) || (next.four && is_own(next.four))) next = {};  // itself, by some other name
  if (!next.six && !next.four && speaks())
    log(Level::warning, "STRETTO_NCCL_NEXT_PLUGIN=%s: not a profiler plugin of version 4, 5 or 6", given);
  return next;
}

const Next& next_plugin() {
  static const Next next = load();
  return next;
}

// NCCL starts an event also where only those below it are wanted.
uint64_t with_those_above(uint64_t mask) {
  using namespace profiler;
  const uint64_t steps = proxy_step | net_plugin, proxies = proxy_operation | steps;
  const uint64_t work = collective | point_to_point | kernel_channel | proxies;
  const uint64_t copies = copy_collective | copy_sync | copy_batch;
  uint64_t all = mask;
  if (mask & steps) all |= proxy_operation | proxy_step;
  if (mask & (proxies | kernel_channel)) all |= collective | point_to_point;
  if (mask & work) all |= group | collective_call | point_to_point_call;
  if (mask & copies) all |= copy_collective | collective_call;
  if (mask & (work | copies | collective_call | point_to_point_call | kernel_launch | group)) all |= group_call;
  return all;
}

// The next plugin's handle of a parent. That of a proxy operation may be of another process: its pid says so.
void* translated(void* parent, uint64_t type, int pid) {
  if (type == profiler::proxy_operation && pid != getpid()) return parent;
  return parent ? static_cast<Handle*>(parent)->chained : nullptr;
}

// Version 4 has no calls: a task's parent is the group of tasks.
bool to_version_4(const Descriptor6& from, Descriptor4* to) {
  using namespace profiler;
  if (from.type > net_plugin) return false;
  to->type = uint8_t(from.type);
  to->parent = from.parent;
  to->rank = from.rank;
  switch (from.type) {
    case collective:
      to->parent = from.collective.group;
      memcpy(static_cast<void*>(&to->collective), &from.collective, sizeof to->collective);
      break;
    case point_to_point:
      to->parent = from.point_to_point.group;
      memcpy(static_cast<void*>(&to->point_to_point), &from.point_to_point, sizeof to->point_to_point);
      break;
    default:
      memcpy(static_cast<void*>(&to->proxy_operation), &from.proxy_operation, sizeof to->proxy_operation);
  }
  return true;
}
static_assert(sizeof(Descriptor4::proxy_operation) >= sizeof(Descriptor4::kernel_channel));

void* start_4(Context* context, Descriptor4& descriptor) {
  void* handle = nullptr;
  if (next_plugin().four) next_plugin().four->start(context->chained_context, &handle, &descriptor);
  return handle;
}

int wanted_by_next() {
  return __atomic_load_n(&next_mask, __ATOMIC_RELAXED);
}

bool wants(uint64_t type) {
  return with_those_above(uint64_t(uint32_t(wanted_by_next()))) & type;
}

}  // namespace

void chain_init(Context* context, int version, const InitArguments& a) {
  const Next& next = next_plugin();
  Result result = invalid_usage;
  if (version >= 5 && next.six) {
    result = next.six->init(&context->chained_context, a.comm_hash, &next_mask, a.comm_name, a.nodes, a.ranks, a.rank, a.logger);
  } else if (next.four) {
    result = next.four->init(&context->chained_context, &next_mask, a.comm_name, a.comm_hash, a.nodes, a.ranks, a.rank, a.logger);
  } else if (next.six) {
    log_once(Level::warning, "STRETTO_NCCL_NEXT_PLUGIN: this NCCL speaks version %d of the profiler interface, which %s lacks",
             version, settings().nccl_next_plugin);
  }
  context->chained = result == success;
}

void chain_finalize(Context* context) {
  if (!context->chained || !context->chained_context) return;
  const Next& next = next_plugin();
  if (context->version >= 5 && next.six)
    next.six->finalize(context->chained_context);
  else if (next.four)
    next.four->finalize(context->chained_context);
}

void follow_mask(const Context* context) {
  const int wanted = context->own_mask | wanted_by_next();
  if (__atomic_load_n(context->mask, __ATOMIC_RELAXED) != wanted) __atomic_store_n(context->mask, wanted, __ATOMIC_RELAXED);
}

void* chain_start(Context* context, const Descriptor4& descriptor) {
  follow_mask(context);
  if (!wants(descriptor.type)) return nullptr;
  Descriptor4 copy = descriptor;
  copy.parent = translated(descriptor.parent, descriptor.type, descriptor.proxy_operation.pid);
  return start_4(context, copy);
}

void* chain_start(Context* context, const Descriptor6& descriptor) {
  follow_mask(context);
  if (!wants(descriptor.type)) return nullptr;
  Descriptor6 copy = descriptor;
  copy.parent = translated(descriptor.parent, descriptor.type, descriptor.proxy_operation.pid);
  if (copy.type == profiler::collective) copy.collective.group = translated(copy.collective.group, copy.type, 0);
  if (copy.type == profiler::point_to_point) copy.point_to_point.group = translated(copy.point_to_point.group, copy.type, 0);
  void* handle = nullptr;
  if (next_plugin().six) {
    next_plugin().six->start(context->chained_context, &handle, &copy);
    return handle;
  }
  Descriptor4 older{};
  return to_version_4(copy, &older) ? start_4(context, older) : nullptr;
}

void chain_stop(Context* context, void* handle) {
  if (!handle) return;
  const Next& next = next_plugin();
  if (context->version >= 5 && next.six)
    next.six->stop(handle);
  else if (next.four)
    next.four->stop(handle);
}

void chain_record(Context* context, void* handle, profiler::State state, profiler::StateArguments* arguments) {
  if (!handle) return;
  const Next& next = next_plugin();
  if (context->version >= 5 && next.six)
    next.six->record(handle, state, arguments);
  else if (next.four && state < profiler::group_start_stop)
    next.four->record(handle, state, arguments);
}

}  // namespace stretto::nccl
