// Every instruction set this build contains. `cpu_has` is compiled for the baseline (dispatch.cpp), so that asking is safe.
#pragma once
#include "kernels/table.hpp"

#define KERNELS_DECLARE(isa)        \
  namespace stretto::kernels::isa { \
  bool cpu_has();                   \
  extern const InstructionSet set;  \
  }

KERNELS_DECLARE(baseline)
#if defined(__x86_64__)
KERNELS_DECLARE(v2)
KERNELS_DECLARE(v3)
KERNELS_DECLARE(v4)
#endif

#undef KERNELS_DECLARE
