// What kind of machine this is, as far as measured decisions depend on it.
#pragma once
#include <cstddef>
#include <string_view>

namespace stretto::platform {

struct MachineFacts {
  char cpu[128] = "unknown CPU";  // its model's name
  int cpus = 0;                   // that programs may use here: of the control group, else online; not of this process alone
  int sockets = 0;
  int numa_nodes = 0;
};

// From the kernel's files below `root` ("" for this machine's own); `cpuset` is the text of the control group's CPU list, if any.
MachineFacts read_machine(const char* root, std::string_view cpuset);

// This machine's.
MachineFacts machine_facts();

// "0-3,8" names five; 0 where the text does not read so. *last: the largest number in it.
int count_listed(std::string_view list, int* last);

}  // namespace stretto::platform
