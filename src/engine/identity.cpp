#include "engine/identity.hpp"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/ancestry.hpp"

namespace stretto::engine {
namespace {

constexpr long most_ranks = 1 << 20;

int number_in(const char* variable) {
  const char* text = getenv(variable);
  if (text == nullptr || *text < '0' || *text > '9') return -1;
  char* end;
  long value = strtol(text, &end, 10);
  return *end == '\0' && value <= most_ranks ? int(value) : -1;
}

// Of the ranks on this node by Slurm's list of all nodes: "4(x2),3" is 4 on each of the first two, 3 on the third. -1: it does
// not read.
int ranks_by_slurm() {
  const char* text = getenv("SLURM_STEP_TASKS_PER_NODE");
  int node = number_in("SLURM_NODEID");
  while (text != nullptr && node >= 0 && *text >= '0' && *text <= '9') {
    char* end;
    const long ranks = strtol(text, &end, 10);
    long alike = 1;
    if (strncmp(end, "(x", 2) == 0) {
      alike = strtol(end + 2, &end, 10);
      if (*end++ != ')' || alike < 1) return -1;
    }
    if (*end != ',' && *end != '\0') return -1;
    if (node < alike) return ranks <= most_ranks ? int(ranks) : -1;
    node -= int(alike);
    text = *end == ',' ? end + 1 : end;
  }
  return -1;
}

// Launchers that tell rank and size, by the variables they set.
struct Launcher {
  const char* rank;
  const char* size;
  const char* world;
};
constexpr Launcher launchers[] = {
    {"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE"},  // Open MPI
    {"MPI_LOCALRANKID", "MPI_LOCALNRANKS", "PMI_SIZE"},                                    // Hydra: MPICH, Intel MPI
    {"MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_SIZE"},     // MVAPICH2
    {"PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE", "PMI_SIZE"},                                  // HPE
};

// The process that starts the ranks on each node, where one exists per launch.
constexpr const char* starters[] = {"hydra_pmi_proxy", "pmi_proxy", "slurmstepd", nullptr};

}  // namespace

Locality locality() {
  for (const Launcher& launcher : launchers) {
    Locality found{number_in(launcher.rank), number_in(launcher.size), number_in(launcher.world)};
    if (found.rank >= 0 && found.size > found.rank) return found;
  }
  const Locality slurm{number_in("SLURM_LOCALID"), ranks_by_slurm(), number_in("SLURM_STEP_NUM_TASKS")};
  return slurm.rank >= 0 && slurm.size > slurm.rank ? slurm : Locality{};
}

void identify_launch(const char* job, char* text, size_t bytes) {
  const char* name_space = getenv("PMIX_NAMESPACE");
  int starter = platform::ancestor_named(starters);
  text[0] = '\0';
  if (*job || name_space || starter) snprintf(text, bytes, "%s/%s/%d", job, name_space ? name_space : "", starter);
}

}  // namespace stretto::engine
