#include "shim/profile/datatypes.hpp"

#include <stdio.h>
#include <string.h>

#include <mutex>

#include "shim/handles.hpp"
#include "shim/named_types.hpp"
#include "shim/process.hpp"
#include "trace/tracer.hpp"

namespace stretto::shim::profile {

constinit thread_local RememberedType known_types[remembered_types] = {};

namespace {

constexpr size_t longest_name = 256;

struct Large {
  int (*size)(MPI_Datatype, MPI_Count*);
  int (*extent)(MPI_Datatype, MPI_Count*, MPI_Count*);
};
Large large{};
uintptr_t null_type = 0;

template <class Signature>
void find(Signature** function, const char* first, const char* second) {
  void* found = library().find(first);
  *function = reinterpret_cast<Signature*>(found ? found : library().find(second));
}

// What was entered, so that nothing is entered twice. Derived types count as one where name, size and extent agree.
struct Entered {
  trace::DatatypeEntry entry;
  uint16_t index;
};
constexpr uint32_t most_entered = 4096;
std::mutex mutex;
Entered entered[most_entered];
uint32_t entered_count = 0;

uint16_t enter(const trace::DatatypeEntry& entry) {
  const std::lock_guard<std::mutex> lock(mutex);
  for (uint32_t i = 0; i < entered_count; ++i)
    if (memcmp(&entered[i].entry, &entry, sizeof entry) == 0) return entered[i].index;
  const uint16_t index = trace::add_datatype(entry);
  if (entered_count < most_entered) entered[entered_count++] = {entry, index};
  return index;
}

uint16_t index_of(MPI_Datatype type, uint64_t size, uint64_t extent) {
  trace::DatatypeEntry entry = {};
  char name[longest_name] = "";
  int length = 0;
  if (mpi().Type_get_name(type, name, &length) != MPI_SUCCESS || name[0] == '\0') snprintf(name, sizeof name, "derived");
  snprintf(entry.name, sizeof entry.name, "%.47s", name);
  entry.size = size;
  entry.extent = extent;
  return enter(entry);
}

bool measure(MPI_Datatype type, uint64_t* size, uint64_t* extent) {
  MPI_Count bytes = 0, low = 0, span = 0;
  if (!large.size || !large.extent) return false;
  if (large.size(type, &bytes) != MPI_SUCCESS || large.extent(type, &low, &span) != MPI_SUCCESS) return false;
  *size = bytes > 0 ? uint64_t(bytes) : 0;
  *extent = uint64_t(span);
  return true;
}

struct Operation {
  uintptr_t key;
  uint8_t index;
};
constexpr size_t most_operations = 32;
Operation operations[most_operations];
size_t operation_count = 0;
uint8_t user_operation = trace::none8;

void add_operation(const char* name) {
  MPI_Op op{};
  if (operation_count == most_operations || !predefined(name, &op)) return;
  operations[operation_count++] = {key_of(op), trace::add_operation(name)};
}

}  // namespace

TypeInfo look_up_type(MPI_Datatype type, RememberedType& slot) {
  const uintptr_t key = key_of(type);
  TypeFacts facts;
  RememberedType found{key, named_type(type, &facts), facts.size, facts.extent, trace::none16};
  if (!found.named && (key == null_type || key == 0 || !measure(type, &found.size, &found.extent))) return {};
  if (slot.key == key && slot.size == found.size && slot.extent == found.extent) return {slot.size, slot.index};
  found.index = index_of(type, found.size, found.extent);
  slot = found;
  return {found.size, found.index};
}

uint8_t operation_index(MPI_Op op) {
  const uintptr_t key = key_of(op);
  for (size_t i = 0; i < operation_count; ++i)
    if (operations[i].key == key) return operations[i].index;
  return user_operation;
}

void prepare_datatypes() {
  find(&large.size, "PMPI_Type_size_c", "PMPI_Type_size_x");
  find(&large.extent, "PMPI_Type_get_extent_c", "PMPI_Type_get_extent_x");
  null_type = predefined_value("MPI_DATATYPE_NULL");
  for (const NamedOp& named : named_ops) add_operation(named.name);
  add_operation("MPI_REPLACE");
  add_operation("MPI_NO_OP");
  user_operation = trace::add_operation("user");
}

}  // namespace stretto::shim::profile
