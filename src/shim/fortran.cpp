#include "shim/fortran.hpp"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.hpp"
#include "shim/loaded.hpp"

namespace stretto::shim {

namespace {

constexpr const char* form_suffixes[] = {"_", "_f08_"};

std::atomic<AnyFunction> fortran_addresses[2][wrapped_count];
std::atomic<AnyFunction> fortran_tools[2][wrapped_count];

struct Symbol {
  char text[80];  // pmpi_x_
  Symbol(uint32_t index, Form form) {
    snprintf(text, sizeof text, "p%s%s", function_names[index], form_suffixes[int(form)]);
    for (char* c = text; *c; ++c) *c = char(tolower(*c));
  }
};

// pmpi_x_; in an MPI that names its profiling functions otherwise, the mpi_x_ behind this library's.
AnyFunction find(uint32_t index, Form form) {
  const Symbol symbol(index, form);
  for (const char* name : {symbol.text, symbol.text + 1}) {
    if (void* found = dlsym(RTLD_NEXT, name)) return reinterpret_cast<AnyFunction>(found);
  }
  for (const char* name : {symbol.text, symbol.text + 1}) {
    if (void* found = find_hidden(name)) return reinterpret_cast<AnyFunction>(found);
  }
  return nullptr;
}

// Nobody knows which argument, if any, is to hold the error.
void not_there() {
  log(Level::error, "a Fortran MPI function was called that no MPI library of this process has: ending it");
  abort();
}

// The variables that stand for MPI_IN_PLACE and MPI_BOTTOM. Open MPI defines each under four spellings, since compilers differ;
// the program uses one of them. Who comes to a Fortran function has loaded what MPI will know them by.
struct Sentinels {
  Variables in_place =
      variables_named({"mpi_fortran_in_place_", "mpi_fortran_in_place", "mpi_fortran_in_place__", "MPI_FORTRAN_IN_PLACE"});
  Variables bottom = variables_named({"mpi_fortran_bottom_", "mpi_fortran_bottom", "mpi_fortran_bottom__", "MPI_FORTRAN_BOTTOM"});
};

// The words of the C call that means the same.
struct WordsOfC {
  Word of[FortranWords::most + 1];
  explicit WordsOfC(const FortranWords& words) {
    profile::words_from_fortran(profile::descriptors[words.index].kinds, words.of, of);
  }
};

template <class Handle>
MPI_Fint in_fortran_terms(Handle request) {
  if constexpr (std::is_pointer_v<Handle>)
    return mpi().Request_c2f(request);
  else
    return MPI_Fint(request);
}

void pass_on(const FortranWords& words) {
  const uint32_t former = std::exchange(in_fortran, words.index + 1);
  forward_words(fortran_function(words.index, words.form), words.of, words.count);
  in_fortran = former;
}

void cancel_in_fortran(const Word* words) {
  MPI_Request request = fortran_value<MPI_Request>(words[0]);
  const int code = cancel_any(&request);
  if (words[1]) *as<MPI_Fint*>(words[1]) = MPI_Fint(code);
}

// A call while nonblocking collectives are outstanding; the last word is the error code.
void complete_in_fortran(FortranWords words) {
  MPI_Fint code = MPI_SUCCESS;
  Word& ierror = words.of[words.count - 1];
  if (ierror == 0) ierror = reinterpret_cast<Word>(&code);
  const auto call = [](AnyFunction function, Word* w, uint32_t n) {
    const uint32_t former = std::exchange(in_fortran, in_some_function);
    forward_words(function, w, n);
    in_fortran = former;
    return int(*as<const MPI_Fint*>(w[n - 1]));
  };
  const auto request = [](Word array, int i) {
    return fortran_value<MPI_Request>(reinterpret_cast<Word>(as<const MPI_Fint*>(array) + i));
  };
  AnyFunction (*function)(uint32_t) = [](uint32_t i) { return fortran_function(i, Form::mpif); };
  if (words.form == Form::f08) function = [](uint32_t i) { return fortran_function(i, Form::f08); };
  const int result = complete({words.index, words.of, words.count, function, call, request, false});
  *as<MPI_Fint*>(ierror) = MPI_Fint(result);
}

// Of MPI_Start and its relatives. False: MPI's function must be called.
bool persistent_in_fortran(const FortranWords& words) {
  if (words.index == number::Request_free) return forget_persistent(fortran_value<MPI_Request>(words.of[0])), false;
  const bool several = words.index == number::Startall;
  auto* requests = as<MPI_Fint*>(words.of[several ? 1 : 0]);
  int code = MPI_SUCCESS;
  for (int i = 0; code == MPI_SUCCESS && i < (several ? fortran_value<int>(words.of[0]) : 1); ++i) {
    const auto given = fortran_value<MPI_Request>(reinterpret_cast<Word>(requests + i));
    auto request = given;
    code = start_any(&request);
    if (request != given) requests[i] = in_fortran_terms(request);
  }
  if (words.of[several ? 2 : 1]) *as<MPI_Fint*>(words.of[several ? 2 : 1]) = MPI_Fint(code);
  return true;
}

// Makes a call that is not taken over, beside what there is to do for Stretto's own operations.
void make_call(const FortranWords& words) {
  if (!more_to_do(words.index)) return pass_on(words);
  if (waits_for_requests(words.index) || tests_requests(words.index)) return complete_in_fortran(words);
  advance();
  if (frees_communicator(words.index) && attached()) end_operations_on(fortran_value<MPI_Comm>(words.of[0]));
  if (words.index == number::Cancel) return cancel_in_fortran(words.of);
  if (concerns_persistent(words.index) && any_persistent() && persistent_in_fortran(words)) return;
  pass_on(words);
}

// Makes a call by `make`, which may have MPI write its statuses elsewhere, and tells the profile.
void fortran_profiled(FortranWords& words, FunctionRef<void()> make) {
  const trace::CallClock clock(pace_of(words.index), profile::clocking(words.index), profile::last_reading);
  WordsOfC c(words);
  profile::Call call(words.index, c.of, profile::Language::fortran, clock.begin());
  call.facts.timed = clock.is_timed();
  profile::inside = true;
  profile::enter_call(call);
  const int8_t status = call.d().status;
  if (call.statuses != nullptr && status >= 0) words.of[status] = c.of[status];
  make();
  call.end = call.begin + clock.spent();
  if (clock.is_timed()) profile::last_reading = call.begin;
  profile::leave_call(call, words.code());
  profile::inside = false;
  trace::count_passed(words.index, call.end - call.begin);
}

}  // namespace

AnyFunction fortran_function(uint32_t index, Form form) {
  std::atomic<AnyFunction>& slot = fortran_addresses[int(form)][index];
  AnyFunction known = slot.load(std::memory_order_relaxed);
  if (known) return known;
  library();  // opens the record before the first count
  known = find(index, form);
  if (!known) return not_there;
  slot.store(known, std::memory_order_relaxed);
  return known;
}

AnyFunction fortran_tool(uint32_t index, Form form) {
  std::atomic<AnyFunction>& slot = fortran_tools[int(form)][index];
  AnyFunction known = slot.load(std::memory_order_relaxed);
  if (known == nullptr) {
    void* const next = dlsym(RTLD_NEXT, Symbol(index, form).text + 1);
    const bool of_tool = is_of_tool(next, reinterpret_cast<const void*>(find(index, form)));
    slot.store(known = of_tool ? reinterpret_cast<AnyFunction>(next) : not_there, std::memory_order_relaxed);
  }
  return known == not_there ? nullptr : known;
}

void* fortran_buffer(Word address) {
  static const Sentinels& sentinels = *new Sentinels;  // in use by what runs at the exit, too
  void* buffer = as<void*>(address);
  if (contains(sentinels.in_place, buffer)) return MPI_IN_PLACE;
  return contains(sentinels.bottom, buffer) ? MPI_BOTTOM : buffer;
}

int FortranWords::code() const {
  const Word ierror = of[count - 1];
  return index == number::Pcontrol || !ierror ? MPI_SUCCESS : int(*as<const MPI_Fint*>(ierror));
}

void fortran_unusual(FortranWords words) {
  if (profile::watches()) return fortran_profiled(words, [&] { make_call(words); });
  timed(words.index, Clocking::every_call, [&] { return make_call(words), Word(MPI_SUCCESS); });
}

void fortran_made_communicator(const FortranWords& words) {
  if (!attached() || words.code() != MPI_SUCCESS) return;
  const MPI_Comm made = fortran_value<MPI_Comm>(words.of[words.count - 2]);
  if (made == comm_null()) return;
  if (makes_of_session(words.index) || (derives_communicator(words.index) && is_of_session(fortran_value<MPI_Comm>(words.of[0]))))
    made_of_session(made);
  if (prepares_communicator(words.index)) prepare_communicator(made);
}

bool start_in_fortran(Ask hook, MPI_Comm comm, Word request, Call& call) {
  MPI_Request made{};
  if (!start(hook, comm, &made, call)) return false;
  *as<MPI_Fint*>(request) = in_fortran_terms(made);
  return true;
}

void fortran_prepare(Kind kind, const char* parts, WordsHook hook, FortranWords words) {
  const auto make = [&] {
    const uint32_t request = words.count - 2;
    MPI_Request made{};
    if (!taking() || !prepare({kind, parts}, hook, WordsOfC(words).of, fortran_value<MPI_Comm>(words.of[request - 2]), &made))
      return make_call(words);
    *as<MPI_Fint*>(words.of[request]) = in_fortran_terms(made);
    if (words.of[request + 1]) *as<MPI_Fint*>(words.of[request + 1]) = MPI_SUCCESS;
  };
  if (profile::watches()) return fortran_profiled(words, make);
  timed(words.index, Clocking::every_call, [&] { return make(), Word(MPI_SUCCESS); });
}

Word fortran_ask(uint32_t index, Kind kind, Ask hook, Plain plain) {
  const auto alone = [] { return false; };  // MPI would have to be asked for C's handle
  return ask_or_forward(index, kind, alone, hook, plain);
}

Word fortran_ask_profiled(Kind kind, Ask hook, Plain plain, FortranWords words) {
  const uint64_t begin = ticks();
  WordsOfC c(words);
  profile::Call call(words.index, c.of, profile::Language::fortran, begin);
  return ask_or_forward_profiled(call, kind, hook, plain);
}

}  // namespace stretto::shim
