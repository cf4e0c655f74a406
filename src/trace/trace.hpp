// The trace file: what one process's communication was, call by call and in sums (docs/trace_format.md is its specification).
//
//   TraceHeader (one page) | section | section | ...
// A section is a SectionHeader and its entries, a whole number of pages long; those of one type continue one another, in
// file order. Everything is little endian. A reader walks from section to section by their lengths, skips types it does not
// know, and believes `used`, which is stored after the entries it counts: so a file can be read at any moment, also after a kill.
#pragma once
#include <cstddef>
#include <cstdint>

#include "trace/record.hpp"

namespace stretto::trace {

inline constexpr char trace_magic[8] = {'S', 'T', 'R', 'E', 'T', 'T', 'O', 'T'};
inline constexpr uint32_t trace_version = 2;
inline constexpr uint32_t section_magic = 0x54434553;  // "SECT"
inline constexpr size_t page_bytes = 4096;
inline constexpr uint16_t none16 = 0xffff;  // no communicator, no datatype
inline constexpr uint8_t none8 = 0xff;      // no op, no outcome
inline constexpr int32_t no_peer = -1;      // also MPI_PROC_NULL
inline constexpr int32_t any_peer = -2;     // MPI_ANY_SOURCE that was not resolved

enum class Mode : uint32_t { off = 0, aggregate = 1, full = 2 };

struct TraceHeader {
  char magic[8];  // stored last
  uint32_t version;
  uint32_t header_bytes;  // page_bytes
  uint32_t mode;          // Mode
  uint32_t stage;         // Stage
  int32_t world_rank;     // -1 where unknown
  int32_t world_size;     // 0 where unknown
  int32_t pid;
  int32_t node;                    // number of the rank's node in MPI_COMM_WORLD (least world rank on it first); -1 where unknown
  uint64_t start_ticks, start_ns;  // both clocks when the file was opened (ns: CLOCK_MONOTONIC) ...
  uint64_t last_ticks, last_ns;    // ... and at the newest calibration
  uint64_t start_realtime_ns;      // CLOCK_REALTIME when the file was opened
  uint64_t init_ticks;             // end of MPI_Init; 0: not reached
  uint64_t finalize_ticks;         // begin of MPI_Finalize; 0: not reached
  uint64_t limit_bytes;            // the file grows no further
  uint64_t dropped_events;         // not written since the limit (or the disk) was reached
  uint64_t dropped_cells;          // calls that found no cell of the sums
  uint64_t unnamed;                // communicators, datatypes, ops that found no room in their tables
  uint64_t untracked_requests;     // requests whose completion could not be told
  uint64_t event_cost_ticks;       // what one call costs in this mode, measured at start, in 1/1024 tick
  uint64_t file_bytes;             // length of the file as far as it is in use
  char library[128];               // first line of MPI_Get_library_version, or "NCCL 2.x"
  char host[64];
  char job[64];               // STRETTO_JOB
  char clock[64];             // what the ticks are: "tsc", "cntvct", "CLOCK_MONOTONIC"
  uint64_t cpus[16];          // bit i of word j: CPU 64 j + i may be used, at the end of MPI_Init; all 0: unknown
  uint64_t clock_cost_ticks;  // of event_cost_ticks, the two readings of the clock
};
static_assert(sizeof(TraceHeader) <= page_bytes && sizeof(TraceHeader) == 8 + 8 * 4 + 15 * 8 + 128 + 3 * 64 + 16 * 8);

enum class SectionType : uint16_t {
  function_names = 1,   // char[40]
  reason_names = 2,     // char[40]
  algorithm_names = 3,  // char[40]
  datatypes = 4,        // DatatypeEntry
  operations = 5,       // OperationEntry
  communicators = 6,    // CommunicatorEntry
  members = 7,          // int32_t world rank; -1: not of MPI_COMM_WORLD
  threads = 8,          // ThreadEntry
  clock = 9,            // ClockEntry
  queues = 10,          // QueueEntry
  cells = 11,           // Cell: sums, of one thread
  partners = 12,        // PartnerCell: sums, of one thread
  events = 13,          // Event, of one thread, in order of their ends
  notes = 14,           // NoteEntry
  marks = 15,           // MarkEntry
  tail = 16,            // Event: the newest of one thread, behind those in its sections of `events`
};

struct SectionHeader {
  uint32_t magic;
  uint16_t type;    // SectionType
  uint16_t thread;  // index in `threads`; none16: of the process
  uint32_t entry_bytes;
  uint32_t reserved;
  uint64_t bytes;  // of the section, this header included: a multiple of page_bytes
  uint64_t used;   // entries written
  uint64_t first;  // of a tail: how many events of its thread are in front of its first one; else 0
  uint64_t padding[3];
};
static_assert(sizeof(SectionHeader) == 64 && offsetof(SectionHeader, used) == 24);

struct DatatypeEntry {
  char name[48];  // MPI's name; "derived" where it has none
  uint64_t size, extent;
};
static_assert(sizeof(DatatypeEntry) == 64);

struct OperationEntry {
  char name[64];  // "MPI_SUM"; "user" for user-defined operations
};

// The identity is the same on all its members and differs between communicators of a job: a hash of the parent's, of the
// number of the creating call on the parent, and of the members' world ranks.
struct CommunicatorEntry {
  uint64_t identity, parent;            // parent 0: none or unknown
  uint64_t created_ticks, freed_ticks;  // freed 0: not
  uint32_t size;
  int32_t rank;           // this process's
  uint32_t remote_size;   // of an intercommunicator's other group; else 0
  uint32_t nodes;         // that its members (of both groups) are on; 0: unknown
  uint32_t first_member;  // index in `members` of this group's, the other group's follow
  uint32_t collectives;   // that this process has begun, whether recorded or not; 0: also where nobody counts them
  char name[72];          // MPI_Comm_get_name, else how it was made: "split of MPI_COMM_WORLD"
};
static_assert(sizeof(CommunicatorEntry) == 128);

// A lane, which one thread at a time writes to and then leaves to another; and which call its thread is in: function none16: in
// none. Written before the call begins, so that a hung job can be looked at.
struct ThreadEntry {
  uint32_t tid;
  uint16_t function;
  uint16_t communicator;
  uint64_t begin_ticks;
  uint32_t sequence;
  int32_t peer;
  uint64_t events;   // calls seen by this thread
  char name[16];     // pthread name
  uint64_t untimed;  // of these, those of which the clock was not read
  uint64_t padding;
};
static_assert(sizeof(ThreadEntry) == 64);

// At `ticks` of this process, the reference clock (ticks of world rank 0's node, in ns since that rank's start_ns) was at
// reference_ns.
struct ClockEntry {
  uint64_t ticks;
  uint64_t reference_ns;
  uint64_t error_ns;  // bound of the error of that
  int32_t via;        // world rank synchronised with; own rank: shares the clock or is the reference
  uint32_t at;        // 0 MPI_Init, 1 MPI_Finalize, 2 between
};
static_assert(sizeof(ClockEntry) == 32);

// A performance variable of MPI_T, sampled at entries of calls. samples 0: `unavailable` says why.
struct QueueEntry {
  char name[64];
  uint64_t samples;
  double sum, least, most;
  char unit[32];  // "messages", "s", "attempts"
  char unavailable[128];
};
static_assert(sizeof(QueueEntry) == 256);

// Sums over calls of a thread that agree in the key: each call that is no part is in one. Cells without calls say nothing.
struct Cell {
  uint16_t function;
  uint16_t communicator;
  uint16_t datatype;
  uint8_t op;
  uint8_t location;  // as in Event
  uint8_t bin;       // of the larger of the bytes sent and received: 0 for 0 bytes, else n for (2^(n-2), 2^(n-1)]; 1: one byte
  uint8_t outcome;   // as in Event
  uint8_t reserved[6];
  uint64_t calls;
  uint64_t sent, received;  // bytes
  uint64_t ticks;
  uint64_t first_ticks, last_ticks;  // begin of the first and of the last call
};
static_assert(sizeof(Cell) == 64 && offsetof(Cell, calls) == 16);

enum class Direction : uint16_t { none = 0, sent = 1, received = 2, put = 3, got = 4, between_nodes = 5 };

// Point-to-point and one-sided traffic of a thread with one partner, of calls and of parts. Also what this rank gave to MPI for
// other nodes in collectives that Stretto carried, by function and algorithm.
struct PartnerCell {
  uint16_t communicator;
  uint16_t direction;  // Direction
  int32_t partner;     // world rank; -1: unknown; between nodes: function + 65536 * outcome
  uint64_t calls, bytes;
  uint64_t reserved;
};
static_assert(sizeof(PartnerCell) == 32 && offsetof(PartnerCell, calls) == 8);

enum EventFlag : uint8_t {
  part = 1,        // belongs to the call before it in this thread: not a call of its own (a request that a MPI_Waitall completed,
                   // one that a MPI_Startall started, the receiving half of a MPI_Sendrecv)
  wide = 2,        // spent, sent and received are the high halves of those of the next event
  in_place = 4,    // MPI_IN_PLACE
  any_source = 8,  // the call named MPI_ANY_SOURCE; peer is whom it came from, where known
  any_tag = 16,    // the call named MPI_ANY_TAG
  failed = 32,     // it returned an error
  cancelled = 64,  // the completed request had been cancelled
  incomplete = 128,  // a test, probe or parrived that found nothing
};

struct Event {
  uint64_t begin;         // ticks at entry
  uint32_t spent;         // ticks until exit, low half
  uint16_t function;      // index in function_names
  uint16_t communicator;  // index in communicators
  uint32_t sequence;      // collectives: their number on the communicator, from 0, in the order this rank called them; else 0
  int32_t peer;  // rank in the communicator (intercommunicators: in the other group) of root, destination, source, target
  int32_t tag;
  uint32_t request;     // number of the request that this started or completed, from 1; 0: none or unknown
  uint32_t sent;        // bytes this rank contributes, low half
  uint32_t received;    // bytes this rank gets, low half; of receives: as completed where known, else as asked for
  uint16_t datatype;    // index in datatypes (of the sending side, else of the receiving side)
  uint8_t op;           // index in operations
  uint8_t outcome;      // none8: Stretto was not asked; below 128: number of the algorithm that ran; else 128 + reason
  uint8_t location;     // of the sending (low four bits) and the receiving buffer: 0 host, 1..13 device + 1, 14 managed, 15 none
  uint8_t flags;        // EventFlag
  uint16_t partitions;  // of MPI_Pready, MPI_Parrived: the partition; of MPI_Psend_init: how many; of a part that starts a
                        // persistent collective: 1; else 0
};
static_assert(sizeof(Event) == 48 && offsetof(Event, sequence) == 16 && offsetof(Event, datatype) == 40);

// Why something is missing, for the reader of the report.
struct NoteEntry {
  char text[256];
};

// Recording was switched, or an iteration began.
struct MarkEntry {
  uint64_t ticks;
  uint32_t what;  // 0 off, 1 on, 2 sums reset (MPI_Pcontrol 0, 1, 2), 3 an iteration begins
  uint32_t number;
};
static_assert(sizeof(MarkEntry) == 16);

}  // namespace stretto::trace
