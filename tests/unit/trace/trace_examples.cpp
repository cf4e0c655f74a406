#include "unit/trace/trace_examples.hpp"

#include <stdio.h>
#include <string.h>

#include <fstream>
#include <latch>
#include <thread>

#include "unit/trace/trace_reader.hpp"

namespace stretto::trace::testing {

namespace {

enum Function : uint16_t { fn_send, fn_isend, fn_irecv, fn_waitall, fn_sendrecv, fn_barrier, fn_bcast, fn_allreduce, fn_put };
const char* const example_functions[] = {"MPI_Send",    "MPI_Isend", "MPI_Irecv",     "MPI_Waitall", "MPI_Sendrecv",
                                         "MPI_Barrier", "MPI_Bcast", "MPI_Allreduce", "MPI_Put",     "ncclAllReduce"};
constexpr uint16_t fn_nccl = 9;
const char* const example_reasons[] = {"none", "not enabled", "too large"};
const char* const example_algorithms[] = {"flat", "slices"};
const Tables example_tables{example_functions, 10, example_reasons, 3, example_algorithms, 2};

constexpr uint64_t gib = uint64_t(1) << 30;
constexpr uint64_t start = 1'000'000'000;  // ticks at which the examples begin; a tick is half a nanosecond

void add_world_and_row() {
  const int32_t world[] = {0, 1, 2, 3}, row[] = {1, 3};
  CommunicatorEntry entry{};
  entry.identity = 0x1111;
  entry.created_ticks = start;
  entry.size = 4;
  entry.rank = 1;
  entry.nodes = 2;
  strcpy(entry.name, "MPI_COMM_WORLD");
  add_communicator(entry, world, 4);
  entry.identity = 0x2222;
  entry.parent = 0x1111;
  entry.size = 2;
  entry.rank = 0;
  strcpy(entry.name, "row");
  add_communicator(entry, row, 2);
  entry.identity = 0x3333;
  entry.size = 4;
  entry.rank = 1;
  entry.freed_ticks = start + 900'000;
  strcpy(entry.name, "dup of MPI_COMM_WORLD");
  add_communicator(entry, world, 4);
}

void add_types() {
  for (const auto& [name, size, extent] :
       {std::tuple{"MPI_FLOAT", 4, 4}, {"MPI_DOUBLE", 8, 8}, {"MPI_BYTE", 1, 1}, {"derived", 24, 32}}) {
    DatatypeEntry entry{};
    strcpy(entry.name, name);
    entry.size = uint64_t(size);
    entry.extent = uint64_t(extent);
    add_datatype(entry);
  }
  for (const char* name : {"MPI_SUM", "MPI_BAND", "user"}) add_operation(name);
}

CallFacts collective(uint16_t function, uint16_t communicator, uint32_t sequence, uint64_t bytes) {
  CallFacts facts;
  facts.function = function;
  facts.communicator = communicator;
  facts.sequence = sequence;
  facts.sent = facts.received = bytes;
  facts.collective = true;
  if (function == fn_barrier) return facts;
  facts.datatype = bytes % 8 ? 0 : 1;
  facts.op = function == fn_allreduce ? 0 : none8;
  facts.location = 0;
  return facts;
}

CallFacts transfer(uint16_t function, Direction direction, int32_t peer, uint64_t bytes) {
  CallFacts facts;
  facts.function = function;
  facts.communicator = 0;
  facts.direction = direction;
  (direction == Direction::received || direction == Direction::got ? facts.received : facts.sent) = bytes;
  facts.peer = facts.partner = peer;
  facts.tag = 42;
  facts.datatype = 2;
  facts.location = direction == Direction::received ? 0x0f : 0xf0;
  return facts;
}

// Isend and Irecv that a Waitall completes: the Waitall's parts tell of the requests.
void tell_exchange(Teller& teller, uint64_t at, uint32_t request) {
  CallFacts out = transfer(fn_isend, Direction::sent, 2, 100);
  out.request = request;
  teller.tell(out, at, 40);
  CallFacts in = transfer(fn_irecv, Direction::none, any_peer, 400);
  in.received = 400;
  in.sent = 0;
  in.request = request + 1;
  in.flags = any_source | any_tag;
  teller.tell(in, at + 50, 30);
  CallFacts wait;
  wait.function = fn_waitall;
  teller.tell(wait, at + 100, 5000);
  CallFacts done = transfer(fn_waitall, Direction::none, 2, 100);
  done.request = request;
  teller.tell_part(done, at + 100, 5000);
  CallFacts got = transfer(fn_waitall, Direction::received, 3, 300);
  got.request = request + 1;
  got.flags = any_source | any_tag;
  teller.tell_part(got, at + 100, 5000);
}

// Threads that run at the same time, each on a lane of its own; what they tell is put in order.
void tell_on_threads(Teller& teller) {
  std::latch second(1), first_ends(1);
  std::thread first([&] {
    for (uint32_t i = 0; i < 100; ++i) teller.tell(collective(fn_bcast, 2, i, 1000 * (i % 4)), start + 200'000 + 100 * i, 60);
    second.count_down();
    first_ends.wait();
  });
  second.wait();
  std::thread([&] {
    for (uint32_t i = 0; i < 50; ++i) tell_exchange(teller, start + 300'000 + 10'000 * i, 1 + 2 * i);
  }).join();
  first_ends.count_down();
  first.join();
}

void tell_full(Teller& teller) {
  add_world_and_row();
  add_types();
  for (uint32_t i = 0; i < 300; ++i) {
    CallFacts facts = collective(fn_allreduce, i % 3 ? 0 : 1, i / 3 * (i % 3 ? 2 : 1) + (i % 3 == 2), uint64_t(4) << (i % 12));
    facts.outcome = i % 5 ? uint8_t(i % 2) : uint8_t(128 + i % 3);
    if (i % 7 == 0) facts.flags = in_place;
    teller.tell(facts, start + 500 * i, 200 + i);
  }
  teller.tell(collective(fn_barrier, 0, 200, 0), start + 160'000, 5 * gib);  // longer than 32 bits of ticks
  CallFacts large = transfer(fn_send, Direction::sent, 0, 5 * gib);
  large.flags = failed;
  teller.tell(large, start + 160'500, 100);
  CallFacts both = transfer(fn_sendrecv, Direction::sent, 2, 64);
  both.received = 128;
  teller.tell(both, start + 161'000, 100);
  CallFacts half = transfer(fn_sendrecv, Direction::received, 0, 128);
  teller.tell_part(half, start + 161'000, 100);
  CallFacts put_to = transfer(fn_put, Direction::put, 3, 24);
  put_to.datatype = 3;
  put_to.location = 0xf2;  // from device 1
  teller.tell(put_to, start + 162'000, 10);
  tell_on_threads(teller);
  add_clock({start + 10, 20, 150, 0, 0});
  add_clock({start + 1'000'000, 500'020, 180, 0, 1});
  QueueEntry* queue = add_queue("pml_ob1_unexpected_msgq_length", "messages", "");
  *queue = {"pml_ob1_unexpected_msgq_length", 12, 30.5, 0, 7, "messages", ""};
  add_queue("pml_ob1_posted_recvq_length", "messages", "this MPI offers no such variable");
  add_note("an example: its times are made up");
  trace_header()->stage = uint32_t(Stage::finalized);
  trace_header()->finalize_ticks = start + 1'000'000;
}

void tell_aggregate(Teller& teller) {
  add_world_and_row();
  add_types();
  for (uint32_t from : {0u, 250u, 4090u, 8190u, 1'000'000u, 0xffffff00u})
    for (uint32_t i = 0; i < 100; ++i)
      for (uint16_t communicator : {0, 9, 70, 2000})
        teller.tell(collective(fn_allreduce, communicator, from + i, 64 + i), start + i, 3);
  for (int i = 0; i < 1000; ++i) teller.tell(transfer(fn_send, Direction::sent, i % 3, 10), start + 10 * uint64_t(i), 5);
  trace_header()->stage = uint32_t(Stage::finalized);
}

// A thread stands in a call: what a hung or a killed rank leaves.
void tell_killed(Teller& teller) {
  add_world_and_row();
  add_types();
  for (uint32_t i = 0; i < 500; ++i) teller.tell(collective(fn_allreduce, 0, i, 8), start + 1000 * i, 700);
  enter(collective(fn_barrier, 0, 500, 0), start + 500'000);
}

void tell_limited(Teller& teller) {
  add_world_and_row();
  add_types();
  for (uint32_t i = 0; i < 5000; ++i) teller.tell(collective(fn_allreduce, 0, i, 8), start + 1000 * i, 700);
  teller.truth.dropped_events = trace_header()->dropped_events;
  teller.truth.events -= teller.truth.dropped_events;
  teller.truth.event_ticks = 700 * teller.truth.events;
  teller.truth.event_sent = teller.truth.event_received = 8 * teller.truth.events;
}

// Events within iterations 2 and 3; then recording off and on, and the sums reset.
void tell_iterations(Teller& teller) {
  add_world_and_row();
  add_types();
  uint32_t sequence = 0;
  for (uint32_t iteration = 0; iteration < 6; ++iteration) {
    teller.tell_mark(3, iteration);
    teller.expect_events(iteration == 2 || iteration == 3);
    for (int i = 0; i < 20; ++i, ++sequence)
      teller.tell(collective(fn_allreduce, 0, sequence, 256), start + 1000 * sequence, 700);
  }
  switch_recording(false);
  switch_recording(true);
  reset_sums();
  teller.truth.marks.insert(teller.truth.marks.end(), {{0, 0}, {1, 0}, {2, 0}});
  teller.truth.cells.clear();
  for (int i = 0; i < 7; ++i, ++sequence) teller.tell(collective(fn_allreduce, 0, sequence, 256), start + 1000 * sequence, 700);
}

void tell_nccl(Teller& teller) {
  add_world_and_row();
  add_types();
  for (uint32_t i = 0; i < 64; ++i) {
    CallFacts facts = collective(fn_nccl, 0, i, uint64_t(1) << (i % 30));
    facts.datatype = 0;
    facts.op = 0;
    facts.location = 0x22;  // device 1
    teller.tell(facts, start + 1000 * i, 900);
  }
  snprintf(trace_header()->library, sizeof trace_header()->library, "NCCL 2.21.5");
}

void fix_header(TraceHeader& h) {
  h.world_rank = 1;
  h.world_size = 4;
  h.node = 0;
  h.pid = 4242;
  h.start_ticks = start - 1000;
  h.start_ns = 7'000'000;
  h.last_ticks = start + 1'000'000;
  h.last_ns = 7'500'500;
  h.start_realtime_ns = 1'700'000'000'000'000'000;
  h.init_ticks = start - 500;
  h.event_cost_ticks = 100 * 1024;
  h.clock_cost_ticks = 0;  // as where it was not yet told
  if (h.stage == 0) h.stage = uint32_t(Stage::initialised);
  if (h.library[0] == '\0') strcpy(h.library, "Example MPI 1.0");
  memset(h.host, 0, sizeof h.host);
  strcpy(h.host, "node1");
  strcpy(h.clock, "tsc");
}

template <class Entry, class Fix>
void fix_entries(std::vector<char>& bytes, const TraceReader& trace, SectionType type, Fix&& fix) {
  uint32_t number = 0;
  for (const Section& section : trace.sections) {
    if (section.header.type != uint16_t(type)) continue;
    for (uint64_t i = 0; i < section.header.used; ++i)
      fix(*reinterpret_cast<Entry*>(bytes.data() + section.offset + i * sizeof(Entry)), number++);
  }
}

std::vector<char> fixed(std::vector<char> bytes) {
  const TraceReader trace(bytes);
  fix_header(*reinterpret_cast<TraceHeader*>(bytes.data()));
  fix_entries<ThreadEntry>(bytes, trace, SectionType::threads, [](ThreadEntry& thread, uint32_t number) {
    thread.tid = 4242 + number;
    memset(thread.name, 0, sizeof thread.name);
    snprintf(thread.name, sizeof thread.name, "thread %u", number);
  });
  fix_entries<MarkEntry>(bytes, trace, SectionType::marks,
                         [](MarkEntry& mark, uint32_t number) { mark.ticks = start + 20'000 * number; });
  return bytes;
}

void write_file(const std::string& path, const char* bytes, size_t size) {
  std::ofstream(path, std::ios::binary).write(bytes, std::streamsize(size));
}

}  // namespace

const std::vector<Example> examples{
    {"full", Mode::full, "", 64 << 20, {}, tell_full},
    {"aggregate", Mode::aggregate, "", 64 << 20, {}, tell_aggregate},
    {"killed", Mode::full, "", 64 << 20, {}, tell_killed},
    {"limited", Mode::full, "", 160 << 10, {}, tell_limited},
    {"iterations", Mode::full, "", 64 << 20, {2, 3}, tell_iterations},
    {"nccl", Mode::full, ".nccl", 64 << 20, {}, tell_nccl},
};

bool write_example(const Example& example, const std::string& folder) {
  Folder own;
  const std::string target = folder + "/" + example.name;
  const int status = in_child([&] {
    TraceOptions options = options_in(own, example.mode);
    options.suffix = example.suffix;
    options.limit_bytes = example.limit_bytes;
    options.iterations = example.iterations;
    if (!open_trace(options, example_tables).ok()) return 1;
    Teller teller(example.mode);
    example.tell(teller);
    fix_header(*trace_header());
    const std::string json = teller.truth.json(example.name + std::string(".trace"), *trace_header());
    write_file(target + ".json", json.data(), json.size());
    return 0;
  });
  if (status != 0) return false;
  const std::vector<char> bytes = fixed(read_file(own.files().at(0)));
  write_file(target + ".trace", bytes.data(), bytes.size());
  return true;
}

}  // namespace stretto::trace::testing
