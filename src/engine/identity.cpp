#include "engine/identity.hpp"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/ancestry.hpp"

namespace stretto::engine {
namespace {

int number_in(const char* variable) {
  const char* text = getenv(variable);
  if (text == nullptr || *text < '0' || *text > '9') return -1;
  char* end;
  long value = strtol(text, &end, 10);
  bool alike = strncmp(end, "(x", 2) == 0 && strchr(end, ',') == nullptr;  // Slurm's "4(x2)": 4 on each of 2 nodes
  return (*end == '\0' || alike) && value <= 1 << 20 ? int(value) : -1;
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
    {"SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE", "SLURM_STEP_NUM_TASKS"},  // srun; tells where all nodes are alike
    {"PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE", "PMI_SIZE"},                    // HPE
};

// The process that starts the ranks on each node, where one exists per launch.
constexpr const char* starters[] = {"hydra_pmi_proxy", "pmi_proxy", "slurmstepd", nullptr};

}  // namespace

Locality locality() {
  for (const Launcher& launcher : launchers) {
    Locality found{number_in(launcher.rank), number_in(launcher.size), number_in(launcher.world)};
    if (found.rank >= 0 && found.size > found.rank) return found;
  }
  return {};
}

void identify_launch(const char* job, char* text, size_t bytes) {
  const char* name_space = getenv("PMIX_NAMESPACE");
  int starter = platform::ancestor_named(starters);
  text[0] = '\0';
  if (*job || name_space || starter) snprintf(text, bytes, "%s/%s/%d", job, name_space ? name_space : "", starter);
}

}  // namespace stretto::engine
