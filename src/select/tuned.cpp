#include "select/tuned.hpp"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/machine.hpp"
#include "stretto/stretto.h"

namespace stretto::select {
namespace {

constexpr uint64_t nothing = 0xcbf29ce484222325u;

uint64_t digest(const char* text, uint64_t hash = nothing) {
  for (; *text; ++text) hash = (hash ^ uint8_t(*text)) * 0x100000001b3u;
  return (hash ^ 0xff) * 0x100000001b3u;
}

uint64_t build_digest() {
  uint64_t hash = digest(STRETTO_VERSION);
  for (const collective::Algorithm& a : collective::algorithms) hash = digest(a.name, digest(collective::name(a.kind), hash));
  return hash;
}

// "Open MPI v5.0.11, package: ..." and "MPICH Version:      5.0.2\n...": up to the comma or the line's end, with single spaces.
void shorten(const char* version, char* text, size_t bytes) {
  size_t end = 0;
  for (; *version && *version != '\n' && *version != ',' && end + 1 < bytes; ++version) {
    const char next = *version == '\t' ? ' ' : *version;
    if (next != ' ' || (end > 0 && text[end - 1] != ' ')) text[end++] = next;
  }
  while (end > 0 && text[end - 1] == ' ') --end;
  text[end] = '\0';
}

}  // namespace

Surroundings look_around(const char* mpi) {
  Surroundings here;
  const platform::MachineFacts machine = platform::machine_facts();
  char words[200], library[80];
  snprintf(words, sizeof words, "%s, %d CPUs, %d sockets, %d NUMA nodes", machine.cpu, machine.cpus, machine.sockets,
           machine.numa_nodes);
  shorten(mpi ? mpi : "", library, sizeof library);
  here.key = {build_digest(), digest(words), digest(library)};
  snprintf(here.about, sizeof here.about, "%s; %s", words, *library ? library : "no MPI");
  return here;
}

void write_header(const Key& key, char* text) {
  snprintf(text, 128, "tuned build=%016llx machine=%016llx mpi=%016llx", static_cast<unsigned long long>(key.build),
           static_cast<unsigned long long>(key.machine), static_cast<unsigned long long>(key.mpi));
}

bool tuned_path(const Key& key, char* path, size_t bytes) {
  const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
  const bool own = config != nullptr && *config == '/';
  if (!own && (home == nullptr || *home != '/')) return false;
  const int length = snprintf(path, bytes, "%s%s/stretto/rules/%016llx-%016llx.rules", own ? config : home, own ? "" : "/.config",
                              static_cast<unsigned long long>(key.machine), static_cast<unsigned long long>(key.mpi));
  return length > 0 && size_t(length) < bytes;
}

Status fits(const Rules& rules, const Key& key) {
  if (!rules.tuned) return Status::good();
  if (rules.build != key.build) return refused("measured with another build of Stretto; run stretto tune again");
  if (rules.machine != key.machine) return refused("measured on another machine; run stretto tune on this one");
  if (rules.mpi != key.mpi) return refused("measured with another MPI library; run stretto tune with this one");
  return Status::good();
}

}  // namespace stretto::select
