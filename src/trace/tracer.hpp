// Writing the trace file: what the shim tells of each call becomes sums, and events where they are wanted.
#pragma once
#include <cstdint>

#include "base/settings.hpp"
#include "base/status.hpp"
#include "trace/recorder.hpp"
#include "trace/trace.hpp"

namespace stretto::trace {

struct TraceOptions {
  const char* directory = nullptr;
  const char* suffix = "";  // the file is rank-<pid><suffix>.trace, rank-<pid>-<n><suffix>.trace where that is taken
  const char* job = "";
  Mode mode = Mode::off;
  uint64_t limit_bytes = uint64_t(512) << 20;
  IterationRange iterations;  // events are written only within these; before the first mark(3, ...) unless all are wanted: none
  size_t event_section = size_t(1) << 20;  // bytes of a thread's later sections of events (the first are smaller)
};

// Creates the file and its name tables. On failure nothing is left behind and nothing is traced.
Status open_trace(const TraceOptions& options, const Tables& tables);
TraceHeader* trace_header();    // null while nothing is traced
void calibrate_trace();         // stamps both clocks; call at init, finalize, abort and now and then
void trace_after_fork_child();  // the child traces nothing

// What is recorded at present; cheap enough to ask on every call.
extern constinit Mode recording;            // plain word; Mode::off: call nothing of what follows
void switch_recording(bool on);             // MPI_Pcontrol(0), (1): events and sums; writes its mark itself
void reset_sums();                          // MPI_Pcontrol(2): sums become 0; writes its mark itself
void mark(uint32_t what, uint32_t number);  // as in MarkEntry; 3: iteration `number` begins, which may start or stop events

// Everything that is known of one call (or of one part of it).
struct CallFacts {
  uint64_t sent = 0, received = 0;
  uint64_t between_nodes = 0;  // bytes given to MPI for other nodes, in a collective that Stretto carried
  uint32_t sequence = 0;
  uint32_t request = 0;
  int32_t peer = no_peer;
  int32_t tag = 0;
  int32_t partner = -1;  // world rank for the partner sums
  Direction direction = Direction::none;
  uint16_t function = 0;
  uint16_t communicator = none16;
  uint16_t datatype = none16;
  uint16_t partitions = 0;
  uint8_t op = none8;
  uint8_t outcome = none8;
  uint8_t location = 0xff;
  uint8_t flags = 0;
  bool timed = true;        // false: what it took is known of a call that counts for it (pace.hpp); it cannot become an event
  bool collective = false;  // sequence counts: in Mode::aggregate a bounded sample of these is kept as events
};

void enter(const CallFacts& facts, uint64_t begin);                   // before the call: this thread is inside
void leave(const CallFacts& facts, uint64_t begin, uint64_t end);     // after it
void add_part(const CallFacts& facts, uint64_t begin, uint64_t end);  // after leave() of the call it belongs to

// Tables; an index, or none16 / none8 where the table is full (counted in the header). Thread-safe.
uint16_t add_communicator(const CommunicatorEntry& entry, const int32_t* members, uint32_t count);
CommunicatorEntry* communicator_entry(uint16_t index);
uint16_t add_datatype(const DatatypeEntry& entry);
uint8_t add_operation(const char* name);
void add_clock(const ClockEntry& entry);
QueueEntry* add_queue(const char* name, const char* unit, const char* unavailable);  // null: no room
void add_note(const char* text);

}  // namespace stretto::trace
