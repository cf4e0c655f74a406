#include "shim/profile/profile.hpp"

#include <pthread.h>
#include <stdlib.h>

#include "shim/profile/iterations.hpp"
#include "shim/profile/queues.hpp"

namespace stretto::shim::profile {

constinit bool watching = false;
constinit thread_local bool inside = false;
constinit thread_local uint64_t last_reading = 0;

namespace {

enum class Family : uint8_t { other, collective, message, completion, one_sided, creation };

constexpr Family family_of(Shape shape) {
  if (is_collective(shape)) return Family::collective;
  if (shape >= Shape::send && shape <= Shape::ready) return Family::message;
  if (shape >= Shape::wait && shape <= Shape::request_get_status) return Family::completion;
  if (shape >= Shape::put && shape <= Shape::win_free) return Family::one_sided;
  return shape >= Shape::duplicate ? Family::creation : Family::other;
}

Family family_of(const Descriptor& d) {
  const Family family = family_of(d.shape);
  return family == Family::other && d.window >= 0 ? Family::one_sided : family;
}

void find_communicator(Call& call) {
  const Descriptor& d = call.d();
  if (d.communicator < 0 || d.kinds[d.communicator] != 'C') return;
  call.communicator = communicator_of(call.words.handle<MPI_Comm>(d.communicator));
  if (!call.communicator) return;
  call.facts.communicator = call.communicator->index;
  call.partners = call.communicator->partners();
}

// MPICH (to 5.0.2) leaves the status of MPI_Isendrecv as the request's former user left it.
#if defined(STRETTO_MPI_OMPI)
constexpr bool tells_of_isendrecv = true;
#else
constexpr bool tells_of_isendrecv = false;
#endif

// MPICH's mpi_f08 does not write to memory that stands in for MPI_STATUS_IGNORE.
constexpr bool takes_fortran_statuses = tells_of_isendrecv;

// Memory of one thread that grows as needed and stays until the thread ends. (Not until its C++ destructors have run: MPI may be
// called from those that follow, and from functions registered with atexit.)
struct Memory {
  void* data = nullptr;
  size_t bytes = 0;
};
struct OwnMemory {
  Memory statuses, handles;
};
constinit thread_local OwnMemory own_memory;
pthread_key_t thread_end;

void give_memory_back(void* of_thread) {
  auto* memory = static_cast<OwnMemory*>(of_thread);
  free(memory->statuses.data);
  free(memory->handles.data);
  *memory = {};
}

void* reserve(Memory& memory, size_t wanted) {
  static const bool kept = [] { return pthread_key_create(&thread_end, give_memory_back) == 0; }();
  if (wanted <= memory.bytes) return memory.data;
  if (kept) pthread_setspecific(thread_end, &own_memory);  // else the memory stays when the thread ends
  free(memory.data);
  memory.data = malloc(2 * wanted);
  memory.bytes = memory.data ? 2 * wanted : 0;
  return memory.data;
}

}  // namespace

void enter_call(Call& call) {
  const Descriptor& d = call.d();
  call.facts.function = uint16_t(call.function);
  find_communicator(call);
  if (d.tag >= 0) call.facts.tag = call.words.integer(d.tag);
  look_around(call.begin);
  switch (family_of(d)) {
    case Family::collective:
      before_collective(call);
      break;
    case Family::message:
      before_message(call);
      break;
    case Family::completion:
      before_completion(call);
      break;
    case Family::one_sided:
      before_one_sided(call);
      break;
    case Family::creation:
      before_creation(call);
      break;
    case Family::other:
      break;
  }
  if (call.recording()) trace::enter(call.facts, call.begin);
}

void leave_call(Call& call, int code) {
  const Family family = family_of(call.d());
  if (code != MPI_SUCCESS) {
    call.facts.flags |= trace::failed;
    call.facts.direction = trace::Direction::none;
    call.has_second = false;
  } else if (family == Family::message) {
    after_message(call);
  } else if (family == Family::completion) {
    after_completion(call);
  } else if (family == Family::one_sided) {
    after_one_sided(call);
  } else if (family == Family::creation) {
    after_creation(call);
  } else if (family == Family::collective && call.d().way != Way::does) {
    remember_request(call, false, false);
    if (call.d().way == Way::prepares) call.facts.sent = call.facts.received = 0;
  }
  if (call.recording()) trace::leave(call.facts, call.begin, call.end);
  if (family == Family::completion) return completion_parts(call, code);
  if (code != MPI_SUCCESS) return;
  if (family == Family::message) message_parts(call);
  if (family == Family::one_sided) one_sided_parts(call);
}

namespace {

template <class Number>
uint32_t draw(Number&& number) {
  if (several_threads) return number.fetch_add(1, std::memory_order_relaxed);
  const uint32_t drawn = number.load(std::memory_order_relaxed);
  number.store(drawn + 1, std::memory_order_relaxed);
  return drawn;
}

}  // namespace

void draw_sequence(trace::CallFacts& facts, Communicator* c) {
  facts.sequence = draw(c->sequence);
  if (c->entry) draw(std::atomic_ref<uint32_t>(c->entry->collectives));
  facts.collective = true;
  if (facts.sequence == 0) refresh_name(c);
  if (c->is_world) world_collective(facts.sequence);
}

void remember_request(Call& call, bool sends, bool receives, LaterCommunicator* later) {
  const uintptr_t handle = key_of(call.words.handle_at<MPI_Request>(call.d().request));
  static const uintptr_t null = predefined_value("MPI_REQUEST_NULL");
  if (handle == null || handle == 0) return;
  const trace::CallFacts& receive = call.has_second && receives ? call.second : call.facts;
  const bool persistent = call.d().way == Way::prepares;
  const uint64_t number = persistent ? 0 : draw_request_number();
  call.facts.request = uint32_t(number);
  Tracked* const tracked = begin_tracking(handle);
  if (!tracked) return;
  Tracked& request = *tracked;
  request.number = number;
  request.persistent = persistent;
  request.sent = call.facts.sent;
  request.received = receive.received;
  request.partners = call.partners;
  request.variable = call.words.address_at(call.d().request, 0);
  request.later = later;
  request.peer = receive.peer;
  request.tag = receive.tag;
  request.function = call.facts.function;
  request.index = call.facts.communicator;
  request.datatype = receive.datatype;
  request.partitions = call.facts.partitions;
  request.op = call.facts.op;
  request.location = receive.location;
  request.flags = receive.flags;
  request.receives = receives;
  request.sends = sends;
  request.silent = call.d().partition >= 0 || (call.has_second && !tells_of_isendrecv);
  if (persistent && is_collective(call.d().shape) && call.communicator) hold(request.communicator = call.communicator);
  end_tracking(handle);
}

void provide_statuses(Call& call, size_t count) {
  const Descriptor& d = call.d();
  if (call.words.ignores_status()) {
    if (!takes_fortran_statuses && call.words.language == Language::fortran) return;
    void* own = count == 1 ? &call.own_status : reserve(own_memory.statuses, count * sizeof(MPI_Status));
    if (!own) return;
    call.words.words[d.status] = reinterpret_cast<Word>(own);
    call.own_statuses = true;
  }
  call.statuses = static_cast<MPI_Status*>(call.words.pointer(d.status));
}

uintptr_t* handle_memory(size_t count) {
  return static_cast<uintptr_t*>(reserve(own_memory.handles, count * sizeof(uintptr_t)));
}

}  // namespace stretto::shim::profile
