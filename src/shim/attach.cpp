// Joining the other ranks at the end of MPI_Init, and leaving in MPI_Finalize.
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <new>

#include "base/log.hpp"
#include "collective/hierarchy/rows.hpp"
#include "engine/identity.hpp"
#include "platform/device_memory.hpp"
#include "select/reason.hpp"
#include "shim/context.hpp"
#include "shim/fault_tolerance.hpp"
#include "shim/hooks.hpp"
#include "shim/hooks/entry.hpp"
#include "shim/mpi.hpp"
#include "shim/nodes.hpp"
#include "shim/nonblocking.hpp"
#include "shim/own_comm.hpp"
#include "shim/process.hpp"
#include "shim/tools.hpp"
#include "shim/tuning.hpp"
#include "transport/fault/fault.hpp"

namespace stretto::shim {
namespace {

constexpr const char* plain = "continuing with plain MPI";
constexpr int rare_tag = 32767;

// Only one rank a node speaks, so that a warning is one line.
bool speaks() {
  return engine::locality().rank <= 0;
}

__attribute__((format(printf, 1, 2))) void set_verdict(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(context().verdict, sizeof context().verdict, format, arguments);
  va_end(arguments);
  snprintf(trace::header()->verdict, sizeof trace::header()->verdict, "%s", context().verdict);
}

void decline_with_warning(bool speaks_here = speaks()) {
  if (speaks_here) log(Level::warning, "%s: %s", context().verdict, plain);
}

// A probe that finds a message returns at once and drives nothing; one of a communicator of this process alone need not look at
// the network at all. So it asks for what hardly anybody sends: a message of a neighbour with the largest tag that every MPI
// allows. A program may have revoked MPI_COMM_WORLD, of which to ask is an error then.
void drive_progress(void*) {
  Context& c = context();
  const bool revoked = c.world_is_revoked.load(std::memory_order_relaxed);
  int flag, what;
  const int code =
      mpi().Iprobe(revoked ? 0 : c.neighbour, rare_tag, revoked ? own_comm() : comm_world(), &flag, MPI_STATUS_IGNORE);
  if (code != MPI_SUCCESS && mpi().Error_class(code, &what) == MPI_SUCCESS && is_revocation(what))
    c.world_is_revoked.store(true, std::memory_order_relaxed);
  if (anything_outstanding()) advance(true);
}

bool broadcast(void* comm, void* data, int bytes) {
  MPI_Datatype byte;
  return predefined("MPI_BYTE", &byte) && mpi().Bcast(data, bytes, byte, 0, *static_cast<MPI_Comm*>(comm)) == MPI_SUCCESS;
}

bool all(void* comm, bool own) {
  MPI_Datatype type;
  MPI_Op op;
  int mine = own, least = 0;
  if (!predefined("MPI_INT", &type) || !predefined("MPI_MIN", &op)) return false;
  return mpi().Allreduce(&mine, &least, 1, type, op, *static_cast<MPI_Comm*>(comm)) == MPI_SUCCESS && least != 0;
}

// Whether the environment has MPI give its collectives to HCOLL or UCC, which hand them to the network where it can do them.
bool asks_for_offload() {
  constexpr const char* switches[] = {"OMPI_MCA_coll_hcoll_enable", "OMPI_MCA_coll_ucc_enable", "MPIR_CVAR_ENABLE_HCOLL",
                                      "I_MPI_COLL_EXTERNAL"};
  constexpr const char* words[] = {"1", "true", "yes", "on", "enable", "hcoll"};
  for (const char* name : switches)
    if (const char* value = getenv(name); value != nullptr)
      for (const char* word : words)
        if (strcasecmp(value, word) == 0) return true;
  return false;
}

// False: the rules that were asked for cannot be used. Measured ones that nobody asked for are done without, in one line.
bool prepare_rules(const Settings& s, Context& c) {
  const char* file;
  const Status status = choose_rules(s.rules, &c.rules, &file);
  if (status.ok()) return true;
  const InLine line(status);
  set_verdict("rules file %.100s%s: %s", file, line.text, status.what);
  if (file == s.rules) return false;
  if (speaks()) log(Level::warning, "rules file %s%s: %s: using the built-in rules", file, line.text, status.what);
  use_built_in(&c.rules);
  return true;
}

// Rules, kernels and faults as the settings ask. False: the verdict says what is wrong with them.
bool prepare_policy(const Settings& s, Context& c) {
  if (!prepare_rules(s, c)) return false;
  if (strcmp(s.isa, "auto") != 0 && !kernels::select_isa(s.isa))
    return set_verdict("STRETTO_ISA=%.40s is unknown or not to be had on this CPU", s.isa), false;
  transport::Faults faults;
  if (*s.fault && !transport::parse_faults(s.fault, &faults).ok())
    return set_verdict("STRETTO_FAULT=%.80s does not read", s.fault), false;
  if (const char* tool = who_completes_requests()) {
    log(Level::info, "nonblocking and persistent collectives are left to MPI, as %s may complete them past Stretto", tool);
    c.starts = false;
    c.rules.fingerprint = ~c.rules.fingerprint;  // so it must be on all ranks
  }
  c.policy.rules = &c.rules;
  c.policy.travel = strcmp(s.transport, "shm") == 0   ? select::Travel::staged
                    : strcmp(s.transport, "cma") == 0 ? select::Travel::direct
                                                      : select::Travel::by_rules;
  c.policy.library = mpi_library();
  c.policy.fault = s.fault;
  c.policy.readers = int(s.readers < 1024 ? s.readers : 0);
  c.policy.any_order = strcmp(s.order, "domains") == 0;
  c.policy.arrival_order = strcmp(s.order, "arrival") == 0;
  c.policy.offload = strcmp(s.offload, "auto") == 0 ? asks_for_offload() : strcmp(s.offload, "on") == 0;
  int level = MPI_THREAD_SINGLE;
  mpi().Query_thread(&level);
  const bool any_thread = strcmp(s.progress, "thread") == 0 && level == MPI_THREAD_MULTIPLE;
  c.policy.host = {
      .progress = drive_progress, .broadcast = broadcast, .all = all, .any_thread = any_thread, .windows = &open_windows};
  c.policy.progress = &c.progress;
  c.nodes_after = s.nodes_after;
  c.turns = uint32_t(s.turns < UINT32_MAX ? s.turns : UINT32_MAX);
  return true;
}

// Who this process is. False: it takes no part, and the verdict says why; *worth_saying, whether the user should hear of it.
bool find_place(const Settings& s, engine::Place* place, char* launch, size_t bytes, bool* worth_saying) {
  *worth_saying = false;
  const engine::Locality locality = engine::locality();
  if (place->world_size == 1 && locality.world <= 1) return set_verdict("a single rank has nobody to talk to"), false;
  MPI_Comm parent = comm_null();
  if (mpi().Comm_get_parent(&parent) == MPI_SUCCESS && parent != comm_null())
    return set_verdict("spawned processes are left to MPI"), false;
  *worth_saying = true;
  if (place->world_size == 1) {
    set_verdict(
        "%d ranks were started, and MPI takes each for a job of its own: if they are to be one, this launcher does not suit it "
        "(under srun, try --mpi=pmix or --mpi=pmi2)",
        locality.world);
    return false;
  }
  place->local_rank = locality.rank;
  place->local_size = locality.size;
  *worth_saying = locality.size != 1 || strcmp(s.nodes, "off") != 0;
  if (!*worth_saying) return set_verdict("the only rank of its node"), false;
  if (locality.rank < 0) return set_verdict("the launcher does not tell which ranks share this node"), false;
  engine::identify_launch(s.job, launch, bytes);
  place->job = launch;
  if (*launch == '\0') return set_verdict("nothing identifies this launch: start it with stretto run"), false;
  return true;
}

// A duplicate is another communicator and gets state of its own, but is of a session where this one is.
int communicator_copied(MPI_Comm, int, void*, void* attribute, void* copy, int* copy_made) {
  *copy_made = attribute == &context().of_session;
  if (*copy_made) *static_cast<void**>(copy) = attribute;
  return MPI_SUCCESS;
}

int communicator_freed(MPI_Comm, int, void* attribute, void*) {
  context().generation.fetch_add(1, std::memory_order_acq_rel);
  auto* communicator = static_cast<engine::Communicator*>(attribute);
  if (context().is_common(communicator)) return MPI_SUCCESS;
  communicator->set_freed();
  communicator->let_go();
  return MPI_SUCCESS;
}

bool join(const Settings& s, Context& c, const engine::Place& place) {
  Status status = c.job.join(place, s, c.rules);
  if (status.ok()) return true;
  if (status.detail > 0 && status.code == Code::refused)
    set_verdict("%s (%s)", status.what, strerror(status.detail));
  else
    set_verdict("%s", status.what);
  return false;
}

void forked_child() {
  Context& c = context();
  c.active.store(false);
  c.progress.forget();
  c.helper.forget();
  outstanding_operations.store(0);
}

// What is needed of MPI, before the others learn that this rank takes part.
bool prepare_mpi(Context& c, const engine::Place& place) {
  c.neighbour = (place.world_rank + 1) % place.world_size;
  bool ready = mpi().Comm_create_keyval(communicator_copied, communicator_freed, &c.keyval, nullptr) == MPI_SUCCESS &&
               mpi().Comm_group(comm_world(), &c.world_group) == MPI_SUCCESS;
  if (!ready) set_verdict("MPI gives no attribute key or group");
  return ready;
}

const char* why_not(engine::Nodes nodes) {
  switch (nodes) {
    case engine::Nodes::not_asked:
      return "the job was not started by stretto run";
    case engine::Nodes::unreachable:
      return "stretto run cannot be reached from this node";
    case engine::Nodes::missing:
      return "some nodes do not run Stretto";
    case engine::Nodes::differ:
      return "the nodes have different STRETTO_ settings, rules or versions of Stretto";
    default:
      return "";
  }
}

// Whether this rank is among those that agree by MPI.
bool votes(const Settings& s, const engine::Place& place) {
  return strcmp(s.nodes, "promised") == 0 && place.world_size > 1 && !is_spawned();
}

// What becomes of communicators that span nodes. Collective over MPI_COMM_WORLD where the user vouches for all its ranks.
void settle_nodes(const Settings& s, Context& c, const engine::Place& place, bool joined) {
  using engine::Nodes;
  if (votes(s, place)) {
    bool agreed = all_nodes_agree(joined, c.job.fingerprint());
    if (joined && c.job.nodes() != Nodes::one) c.job.set_nodes(agreed ? Nodes::joined : Nodes::differ);
  }
  if (!joined || strcmp(s.nodes, "off") == 0) return;
  if (c.job.nodes() == Nodes::unknown) {
    log(Level::error, "stretto run has counted this node in and is gone: the other nodes may rely on it");
    end_job(comm_world(), MPI_ERR_OTHER);
  }
  const char* why = why_not(c.job.nodes());
  if (*why && c.job.speaks_for_nodes()) log(Level::warning, "collectives over several nodes are left to MPI: %s", why);
}

void activate(Context& c) {
  pthread_atfork(nullptr, nullptr, forked_child);
  platform::watch_loader();
  char domains[32] = "";
  if (c.job.domains() > 1) snprintf(domains, sizeof domains, " in %d domains", c.job.domains());
  const char* crowded = c.job.crowded() ? ", more than its CPUs" : "";
  const char* nodes = c.job.nodes() == engine::Nodes::joined ? ", and over all nodes" : "";
  set_verdict("accelerating: %d ranks on this node%s%s%s%s", c.job.local_size(), domains, crowded, nodes,
              c.rules.tuned ? ", tuned rules" : "");
  trace::header()->accelerating = 1;
  c.progress.configure(c.job.sharing(), drive_progress);
  c.helper.configure(&c.progress, strcmp(settings().progress, "thread") == 0);
  c.active.store(true, std::memory_order_release);
  taking_now.store(true, std::memory_order_release);
  prepare_communicator(comm_world());
}

// Joins the ranks of this node. False: this rank takes no part, and has said so where it is worth it.
bool join_here(const Settings& s, Context& c, engine::Place* place) {
  Settings reread;
  const char* offender = nullptr;
  Status status = read_settings(environ, &reread, &offender);
  if (!status.ok()) {
    bool unknown = strcmp(status.what, "unknown setting") == 0;
    set_verdict("%s: %s%s (stretto settings lists them)", offender, unknown ? "" : "must be ", status.what);
    return decline_with_warning(), false;
  }
  if (!s.accelerate) return set_verdict("acceleration is off"), false;
  static char launch[256];  // outlives this: the place points to it
  bool worth_saying = true;
  if (!prepare_policy(s, c)) return decline_with_warning(), false;
  if (!find_place(s, place, launch, sizeof launch, &worth_saying)) return worth_saying ? decline_with_warning() : void(), false;
  if (!prepare_mpi(c, *place)) return decline_with_warning(), false;
  if (!join(s, c, *place)) return decline_with_warning(c.job.speaks()), false;
  return true;
}

}  // namespace

constinit Context* made_context = nullptr;

Context& make_context() {
  alignas(Context) static char storage[sizeof(Context)];
  static Context* made = new (storage) Context;
  std::atomic_ref(made_context).store(made, std::memory_order_release);
  return *made;
}

void attach() {
  Context& c = context();
  const Settings& s = settings();
  if (c.active.load()) return;
  engine::Place place;
  mpi().Comm_rank(comm_world(), &place.world_rank);
  mpi().Comm_size(comm_world(), &place.world_size);
  bool joined = join_here(s, c, &place);
  settle_nodes(s, c, place, joined);
  if (joined) activate(c);
}

void detach() {
  taking_now.store(false, std::memory_order_release);
  if (context().active.load()) {
    finish_operations();
    free_rails();
    if (engine::Communicator* world = known(comm_world())) world->close_arrivals();  // not every MPI frees it
  }
  context().active.store(false, std::memory_order_release);
}

bool accelerating(const char** why) {
  if (why) *why = context().verdict;
  return context().active.load();
}

void fill_record_tables(trace::Tables* tables) {
  static const char* algorithms[collective::row_count];
  for (int i = 0; i < collective::row_count; ++i) algorithms[i] = collective::name_of_row(i);
  tables->reasons = select::reason_names;
  tables->reason_count = select::reason_count;
  tables->algorithms = algorithms;
  tables->algorithm_count = collective::row_count;
}

}  // namespace stretto::shim
