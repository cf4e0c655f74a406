// The record of a rank on a node that does not see the folder of `stretto run`.
#pragma once

namespace stretto::shim {

// Hands it over by the network, or says that it is lost. Nothing where the record has its file.
void send_record();

}  // namespace stretto::shim
