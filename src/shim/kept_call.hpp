// The arguments of a persistent collective, kept for its starts: the program may change its arrays and free its datatypes as soon
// as the call that prepares it has returned.
#pragma once
#include "shim/hooks.hpp"

namespace stretto::shim {

// What is to be kept of each word of a call: two characters, its side (s what is sent, r what is received, - neither) and its
// kind (b buffer, i int[], n MPI_Count[] or MPI_Aint[], T MPI_Datatype[], F the same in Fortran's handles, D a datatype, o the
// root, . anything else).
struct Plan {
  Kind kind;
  const char* parts;
};

class KeptCall {
 public:
  KeptCall() = default;
  ~KeptCall();
  KeptCall(const KeptCall&) = delete;
  KeptCall& operator=(const KeptCall&) = delete;

  // The words of a call on a communicator of `size` ranks. Only what MPI says is significant on this rank is looked at. False: no
  // memory, or some datatype is none or not committed.
  bool keep(const Plan& plan, const Word* words, int rank, int size);

  const Word* words() const { return words_; }

 private:
  static constexpr int most_words = 16, most_arrays = 7;  // six of Alltoallw, and the duplicates

  bool keep_word(char kind, Word* word, int size);
  bool keep_types(const void* handles, bool fortran, Word* word, int size);
  bool keep_type(MPI_Datatype* type);
  void* room(size_t bytes);

  Word words_[most_words] = {};
  void* arrays_[most_arrays] = {};
  int array_count_ = 0;
  Numbers counts_;                 // of the side that is being kept
  MPI_Datatype* types_ = nullptr;  // duplicates
  int type_count_ = 0, type_room_ = 0;
};

}  // namespace stretto::shim
