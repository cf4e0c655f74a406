#include "shim/profile/queues.hpp"

#include <stdlib.h>
#include <string.h>

#include "shim/handles.hpp"
#include "shim/process.hpp"
#include "trace/tracer.hpp"

namespace stretto::shim::profile {
namespace {

struct Wanted {
  const char* name;
  const char* unit;
};
// Open MPI's pml ob1; MPICH configured with --enable-mpit-pvars=recvq.
constexpr Wanted wanted[] = {
    {"pml_ob1_unexpected_msgq_length", "messages"},  {"pml_ob1_posted_recvq_length", "messages"},
    {"unexpected_recvq_length", "messages"},         {"posted_recvq_length", "messages"},
    {"unexpected_recvq_match_attempts", "attempts"}, {"posted_recvq_match_attempts", "attempts"},
    {"time_failed_matching_postedq", "s"},           {"time_matching_unexpectedq", "s"},
};
constexpr size_t wanted_count = sizeof wanted / sizeof wanted[0];

// MPI_T as all three ABIs have it: sessions and handles are pointers.
struct Tools {
  int (*init_thread)(int, int*);
  int (*finalize)();
  int (*get_num)(int*);
  int (*get_info)(int, char*, int*, int*, int*, MPI_Datatype*, void**, char*, int*, int*, int*, int*, int*);
  int (*session_create)(void**);
  int (*session_free)(void**);
  int (*handle_alloc)(void*, int, void*, void**, int*);
  int (*handle_free)(void*, void**);
  int (*start)(void*, void*);
  int (*read)(void*, void*, void*);

  bool complete() const {
    return init_thread && finalize && get_num && get_info && session_create && session_free && handle_alloc && handle_free &&
           start && read;
  }
};

struct Variable {
  void* handle = nullptr;
  int count = 0;
  size_t size = 0;
  bool is_real = false;
  trace::QueueEntry* entry = nullptr;
};

Tools tools{};
void* session = nullptr;
Variable variables[wanted_count];
size_t variable_count = 0;
void* values = nullptr;
size_t value_bytes = 0;
MPI_Comm queue_comm{};

template <class Signature>
void find(Signature** function, const char* name) {
  void* found = library().find(name);
  *function = reinterpret_cast<Signature*>(found ? found : library().find(name + 1));
}

bool find_tools() {
  find(&tools.init_thread, "PMPI_T_init_thread");
  find(&tools.finalize, "PMPI_T_finalize");
  find(&tools.get_num, "PMPI_T_pvar_get_num");
  find(&tools.get_info, "PMPI_T_pvar_get_info");
  find(&tools.session_create, "PMPI_T_pvar_session_create");
  find(&tools.session_free, "PMPI_T_pvar_session_free");
  find(&tools.handle_alloc, "PMPI_T_pvar_handle_alloc");
  find(&tools.handle_free, "PMPI_T_pvar_handle_free");
  find(&tools.start, "PMPI_T_pvar_start");
  find(&tools.read, "PMPI_T_pvar_read");
  return tools.complete();
}

const Wanted* wanted_named(const char* name) {
  for (const Wanted& one : wanted)
    if (strcmp(one.name, name) == 0) return &one;
  return nullptr;
}

bool is_real(MPI_Datatype type) {
  MPI_Datatype real;
  return predefined("MPI_DOUBLE", &real) && real == type;
}

// Begins to watch variable number `index`. `type` is that of its values.
void watch(int index, const Wanted& one, MPI_Datatype type, bool continuous) {
  Variable v;
  TypeFacts facts;
  if (!named_type(type, &facts) || (facts.size != 4 && facts.size != 8)) return;
  if (tools.handle_alloc(session, index, &queue_comm, &v.handle, &v.count) != 0 || v.count < 1) return;
  if (!continuous) (void)tools.start(session, v.handle);
  v.size = facts.size;
  v.is_real = is_real(type);
  v.entry = trace::add_queue(one.name, one.unit, "");
  if (v.entry == nullptr) return void(tools.handle_free(session, &v.handle));
  if (size_t(v.count) * v.size > value_bytes) value_bytes = size_t(v.count) * v.size;
  variables[variable_count++] = v;
}

void look_at(int index) {
  char name[256] = "", text[2];
  int name_length = sizeof name, text_length = sizeof text;
  int verbosity, variable_class, bind, read_only, continuous, atomic;
  MPI_Datatype type;
  void* enumeration;
  if (tools.get_info(index, name, &name_length, &verbosity, &variable_class, &type, &enumeration, text, &text_length, &bind,
                     &read_only, &continuous, &atomic) != 0)
    return;
  const Wanted* one = wanted_named(name);
  if (one && variable_count < wanted_count) watch(index, *one, type, continuous != 0);
}

const char* why_none(bool has_tools) {
  if (!has_tools) return "this MPI has no tools interface (MPI_T)";
  const char* library_name = trace::trace_header()->library;
  if (strstr(library_name, "Open MPI")) return "this run of Open MPI does not use the pml ob1, which alone tells its queues";
  if (strstr(library_name, "MPICH")) return "this MPICH was built without --enable-mpit-pvars=recvq";
  return "this MPI offers no such performance variables";
}

double value_at(const Variable& v, int i) {
  const char* at = static_cast<const char*>(values) + size_t(i) * v.size;
  uint64_t wide = 0;
  uint32_t narrow = 0;
  double real = 0;
  if (v.size == 4) return memcpy(&narrow, at, 4), double(narrow);
  if (v.is_real) return memcpy(&real, at, 8), real;
  return memcpy(&wide, at, 8), double(wide);
}

void sample(const Variable& v) {
  if (tools.read(session, v.handle, values) != 0) return;
  double sum = 0;
  for (int i = 0; i < v.count; ++i) sum += value_at(v, i);
  trace::QueueEntry& entry = *v.entry;
  if (entry.samples == 0 || sum < entry.least) entry.least = sum;
  if (entry.samples == 0 || sum > entry.most) entry.most = sum;
  entry.sum += sum;
  ++entry.samples;
}

}  // namespace

void prepare_queues() {
  int provided = 0, count = 0;
  queue_comm = comm_world();
  const bool found = find_tools() && tools.init_thread(MPI_THREAD_MULTIPLE, &provided) == 0;
  if (found && tools.session_create(&session) == 0 && tools.get_num(&count) == 0)
    for (int i = 0; i < count; ++i) look_at(i);
  if (variable_count > 0) values = calloc(1, value_bytes);
  if (values == nullptr) variable_count = 0;
  if (variable_count == 0) trace::add_queue("message queues", "messages", why_none(found));
}

void sample_queues() {
  for (size_t i = 0; i < variable_count; ++i) sample(variables[i]);
}

void end_queues() {
  for (size_t i = 0; i < variable_count; ++i) tools.handle_free(session, &variables[i].handle);
  variable_count = 0;
  if (session == nullptr) return;
  tools.session_free(&session);
  tools.finalize();
}

}  // namespace stretto::shim::profile
