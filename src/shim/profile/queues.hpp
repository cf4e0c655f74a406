// Lengths of MPI's message queues, as its tools interface (MPI_T) tells.
#pragma once

namespace stretto::shim::profile {

void prepare_queues();  // after MPI_Init
void sample_queues();   // one thread at a time
void end_queues();      // before MPI_Finalize

}  // namespace stretto::shim::profile
