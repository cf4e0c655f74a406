// User-defined operations, commutative and not, on predefined and derived types. They look up the layout of the datatype
// they are handed, as a program with several such types would.
#pragma once
#include "layout.hpp"

namespace differential {

// While alive, user operations may be called with this layout's datatype.
class Registered {
 public:
  explicit Registered(const Layout& layout);
  ~Registered();
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;

 private:
  MPI_Datatype key_;
};

struct UserOperation {
  Operation operation;
  int group;  // elements of MPI_UINT32_T that one application combines
};

// Created once per process; freed by free_user_operations.
const std::vector<UserOperation>& user_operations();
void free_user_operations();

// How often an operation was handed a datatype that no live call had passed: a defect of the library under test.
long unknown_datatypes();

}  // namespace differential
