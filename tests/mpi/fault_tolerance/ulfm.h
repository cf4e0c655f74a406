/* Open MPI's extensions, which need mpi.h before them. */
#pragma once
/* clang-format off */
#include <mpi.h>
#include <mpi-ext.h>
/* clang-format on */
