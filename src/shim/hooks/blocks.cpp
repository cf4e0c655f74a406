#include "shim/hooks/blocks.hpp"

#include "shim/hooks/pieces.hpp"

namespace stretto::shim {

using collective::Piece;

bool Side::describe_all(MPI_Datatype type) {
  const bool known = describe(type, &layout_);
  committed_ = layout_.committed;
  return known;
}

bool Side::one(const void* data, MPI_Count count, MPI_Datatype type) {
  shares_ = shared;
  data_ = static_cast<const char*>(data);
  count_ = count;
  return count >= 0 && describe_all(type) && !stand_nowhere(data, count, layout_);
}

bool Side::one_of(int only, const void* data, MPI_Count count, MPI_Datatype type) {
  bool sensible = one(data, count, type);
  shares_ = each;
  only_ = only;
  return sensible;
}

bool Side::equal(const void* data, MPI_Count count, MPI_Datatype type) {
  bool sensible = one(data, count, type);
  shares_ = each;
  stacked_ = true;
  return sensible;
}

bool Side::varying(const void* data, Numbers counts, Numbers displacements, MPI_Datatype type, int ranks) {
  shares_ = each;
  data_ = static_cast<const char*>(data);
  counts_ = counts;
  displacements_ = displacements;
  return counts_make_sense(ranks) && describe_all(type);
}

bool Side::mixed(const void* data, Numbers counts, Numbers displacements, Types types, int ranks, Layout* layouts) {
  shares_ = each;
  data_ = static_cast<const char*>(data);
  counts_ = counts;
  displacements_ = displacements;
  layouts_ = layouts;
  if (!types.present() || !counts_make_sense(ranks)) return false;
  for (int r = 0; r < ranks; ++r) {
    if (counts[r] > 0 ? !describe(types[r], &layouts[r]) : is_refused_for_nothing(types[r])) return false;
    committed_ = committed_ && (counts[r] == 0 || layouts[r].committed);
  }
  return true;
}

void Side::block_of(const Side& other, int r) {
  Buffer block = other.at(r);
  shares_ = shared;
  data_ = static_cast<const char*>(block.data);
  count_ = MPI_Count(block.count);
  layout_ = *block.layout;
}

bool Side::counts_make_sense(int ranks) const {
  if (!counts_.present() || !displacements_.present()) return false;
  for (int r = 0; r < ranks; ++r)
    if (counts_[r] < 0) return false;
  return true;
}

Buffer Side::at(int r) const {
  const Layout& layout = layouts_ ? layouts_[r] : layout_;
  if (only_ >= 0 && r != only_) return {nullptr, 0, &layout};
  size_t count = size_t(counts_.present() ? counts_[r] : int64_t(count_));
  ptrdiff_t distance = displacements_.present() ? ptrdiff_t(displacements_[r]) : stacked_ ? ptrdiff_t(r) * ptrdiff_t(count_) : 0;
  return {data_ + distance * (layouts_ ? 1 : ptrdiff_t(layout.extent)), count, &layout};
}

// Blocks of one buffer: what holds of the first holds of all.
bool Side::list_equal(int ranks, Piece* pieces, uint64_t* bytes) const {
  const int count = this->pieces(ranks);
  const Piece whole{const_cast<char*>(data_), block()};
  *bytes = uint64_t(only_ < 0 ? count : 1) * whole.bytes;
  if (only_ < 0) {
    const ptrdiff_t distance = stacked_ ? ptrdiff_t(count_) * ptrdiff_t(layout_.extent) : 0;
    for (int r = 0; r < count; ++r) pieces[r] = {static_cast<char*>(whole.data) + r * distance, whole.bytes};
  } else {
    for (int r = 0; r < count; ++r) pieces[r] = {nullptr, 0};
    pieces[only_] = whole;
  }
  return whole.bytes == 0 || Buffer{data_, size_t(count_), &layout_}.usable();
}

bool Side::list_varying(int ranks, Piece* pieces, uint64_t* bytes) const {
  bool plain = true;
  *bytes = 0;
  for (int r = 0; r < ranks; ++r) {
    const Buffer block = at(r);
    pieces[r] = {const_cast<void*>(block.data), block.bytes()};
    *bytes += pieces[r].bytes;
    plain = plain && (pieces[r].bytes == 0 || block.usable());
  }
  return plain;
}

int Side::keep_types(int ranks, ResultTypes& types) {
  if (layouts_ == nullptr) return types.keep(layout_);
  for (int r = 0; r < ranks; ++r)
    if (counts_[r] > 0)
      if (int code = types.keep(layouts_[r])) return code;
  return MPI_SUCCESS;
}

namespace {

// A side of a call, and its pieces.
template <class S>
struct ListedSide {
  S& side;
  const int count;
  Piece* pieces;
  const bool plain;
};
using Given = ListedSide<const Side>;
using Got = ListedSide<Side>;

template <class Listed>
size_t bytes_of(const Listed& listed) {
  size_t bytes = 0;
  for (int r = 0; r < listed.count; ++r) bytes += listed.pieces[r].bytes;
  return bytes;
}

// Lays the pieces into host memory, one after the other.
template <class Listed>
char* move_to(char* room, const Listed& listed) {
  for (int r = 0; r < listed.count; ++r) {
    listed.pieces[r].data = room;
    room += listed.pieces[r].bytes;
  }
  return room;
}

int load_pieces(const Given& gives) {
  for (int r = 0; r < gives.count; ++r)
    if (gives.pieces[r].bytes > 0)
      if (int code = load(gives.side.at(r), gives.pieces[r].data)) return code;
  return MPI_SUCCESS;
}

// As much as has come into them; but not piece `kept`, into which nothing has.
int store_pieces(const Got& gets, int kept) {
  for (int r = 0; r < gets.count; ++r)
    if (gets.pieces[r].bytes > 0 && r != kept)
      if (int code = store(gets.side.at(r), gets.pieces[r].data, gets.pieces[r].bytes)) return code;
  return MPI_SUCCESS;
}

int take_room(const Given& gives, const Got& gets, Room& room, Communicator& communicator) {
  size_t bytes = (gives.plain ? 0 : bytes_of(gives)) + (gets.plain ? 0 : bytes_of(gets));
  if (!room.reserve(bytes, communicator)) return MPI_ERR_NO_MEM;
  char* next = room.data();
  if (!gives.plain) next = move_to(next, gives);
  if (!gets.plain) move_to(next, gets);
  return gives.plain ? MPI_SUCCESS : load_pieces(gives);
}

[[gnu::noinline, gnu::cold]] bool ship_packed(const Entry& entry, const Given& gives, const Got& gets, Request& request,
                                              MPI_Comm comm, Call& call) {
  if (!entry.prepare(request, comm, call)) return false;
  if (call.code != MPI_SUCCESS) return true;
  Room room;
  ResultTypes types(entry.size());
  int code = take_room(gives, gets, room, *entry.communicator);
  if (code == MPI_SUCCESS && !gets.plain) code = gets.side.keep_types(entry.size(), types);
  if (code != MPI_SUCCESS) {
    entry.give_up(code, comm, call);
    return true;
  }
  entry.finish(request, comm, call);
  if (call.code != MPI_SUCCESS || gets.plain) return true;
  int kept = gives.side.empty() ? entry.rank() : -1;  // the root in place
  code = store_pieces(gets, request.root == entry.rank() ? kept : -1);
  if (code != MPI_SUCCESS) call.code = raise(comm, code);
  return true;
}

// Whether MPI finds every datatype committed that it looks at, which Open MPI does not do at all of them: a rank that left the
// call to MPI alone, where MPI does not refuse it, would wait for ever.
bool are_committed(Kind kind, const Side& gives, const Side& gets) {
  const bool looks_at_got = kind == Kind::alltoall || kind == Kind::alltoallv || kind == Kind::alltoallw;
  return (gives.committed() || kind == Kind::scatter) && (gets.committed() || !looks_at_got);
}

}  // namespace

bool ship(const Entry& entry, const Side& gives, Side& gets, Request& request, MPI_Comm comm, Call& call) {
  if (!are_committed(request.kind, gives, gets)) return decline(call, Reason::invalid_arguments);
  if (entry.communicator->leaves_to_mpi(request)) {  // which declines it, before its pieces are looked at
    for (int r = 0; r < gives.pieces(entry.size()); ++r) call.bytes += gives.at(r).bytes();
    return entry.run(request, comm, call);
  }
  PieceList given_list, got_list;
  Piece *given = given_list.of(entry.size()), *got = got_list.of(entry.size());
  if (given == nullptr || got == nullptr) return take_part_without_memory(entry, request, comm, call);
  uint64_t got_bytes;
  const bool plain_gives = gives.list(entry.size(), given, &call.bytes), plain_gets = gets.list(entry.size(), got, &got_bytes);
  request.gives = gives.empty() ? nullptr : given;
  request.gets = gets.empty() ? nullptr : got;
  if (plain_gives && plain_gets) return entry.run(request, comm, call);
  const Given from{gives, gives.pieces(entry.size()), given, plain_gives};
  const Got to{gets, gets.pieces(entry.size()), got, plain_gets};
  return ship_packed(entry, from, to, request, comm, call);
}

}  // namespace stretto::shim
