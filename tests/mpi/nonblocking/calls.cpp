#include "calls.hpp"

#include <algorithm>
#include <cstring>

namespace {

struct Element {
  MPI_Datatype type;
  int bytes;
  bool sums;  // has MPI_SUM
};

const Element elements[] = {
    {MPI_INT32_T, 4, true}, {MPI_INT64_T, 8, true}, {MPI_DOUBLE, 8, true}, {MPI_UINT8_T, 1, true}, {MPI_2INT, 8, false}};

void fill_elements(std::vector<unsigned char>& bytes, const Element& element, Random& random) {
  for (size_t i = 0; i < bytes.size(); i += size_t(element.bytes)) {
    const int value = random.below(200) - (element.bytes == 1 ? 0 : 100);
    if (element.type == MPI_DOUBLE) {
      const double d = value;
      memcpy(&bytes[i], &d, 8);
    } else if (element.type == MPI_INT64_T) {
      const int64_t v = value;
      memcpy(&bytes[i], &v, 8);
    } else if (element.type == MPI_2INT) {
      const int pair[2] = {value, random.below(50)};
      memcpy(&bytes[i], pair, 8);
    } else if (element.bytes == 4) {
      memcpy(&bytes[i], &value, 4);
    } else {
      bytes[i] = static_cast<unsigned char>(value & 3);
    }
  }
}

int random_count(Random& random) {
  switch (random.below(10)) {
    case 0:
      return random.below(3);
    case 1:
      return 100'000 + random.below(100'000);
    case 2:
    case 3:
      return 1000 + random.below(20'000);
    default:
      return 1 + random.below(300);
  }
}

bool reduces(What what) {
  return what == What::reduce || what == What::allreduce || what >= What::reduce_scatter;
}

bool exchanges(What what) {
  return what == What::alltoall || what == What::alltoallv || what == What::alltoallw;
}

bool has_root(What what) {
  return what == What::bcast || what == What::reduce || (what >= What::gather && what <= What::scatterv);
}

const char* const names[whats] = {"barrier",  "bcast",     "reduce",    "allreduce",      "gather",
                                  "gatherv",  "scatter",   "scatterv",  "allgather",      "allgatherv",
                                  "alltoall", "alltoallv", "alltoallw", "reduce_scatter", "reduce_scatter_block",
                                  "scan",     "exscan"};

// Open MPI 5.0 does not complete its own in-place Ialltoallw where some blocks are empty.
bool hangs_in_place([[maybe_unused]] What what) {
#if defined(OPEN_MPI)
  return what == What::alltoallw;
#else
  return false;
#endif
}

// The blocks `counts`, one after the other, with a gap of `gap` elements before each.
Blocks laid(const std::vector<int>& counts, int gap) {
  Blocks blocks{counts, {}};
  int at = 0;
  for (int count : counts) {
    blocks.at.push_back(at += gap);
    at += count;
  }
  return blocks;
}

template <class To, class From>
void copy(std::vector<To>& to, const std::vector<From>& from) {
  to.assign(from.begin(), from.end());
}

}  // namespace

Strided::Strided() {
  MPI_Type_vector(1, 1, 1, MPI_INT32_T, &base_);
  MPI_Type_create_resized(base_, 0, 12, &type_);
  MPI_Type_commit(&type_);
}

Strided::~Strided() {
  MPI_Type_free(&type_);
  MPI_Type_free(&base_);
}

Collective::Collective(MPI_Comm comm, Random& common, Random& own, bool plain, MPI_Datatype strided) {
  MPI_Comm_rank(comm, &rank_);
  MPI_Comm_size(comm, &size_);
  what_ = What(common.below(whats));
  plain = plain || (world.plain_blocks && what_ >= What::gather && what_ <= What::reduce_scatter_block);
  root_ = common.below(size_);
  type_ = common.below(5);
  const Element& element = elements[type_];
  const MPI_Op ops[] = {MPI_SUM, MPI_MAX, MPI_MIN, MPI_BAND};
  op_ = !element.sums ? (common.below(2) ? MPI_MINLOC : MPI_MAXLOC) : ops[common.below(element.type == MPI_DOUBLE ? 3 : 4)];
  element_ = element.type;
  bytes_ = size_t(element.bytes);
  const bool all_in_place = common.below(3) == 0, wide = common.below(2) == 0;
  const bool own_in_place = own.below(3) == 0 && !plain, own_strides = own.below(2) == 0;
  const bool all_stride = common.below(2) == 0, strided_sends = common.below(2) == 0;
  wide_ = wide;
  if (has_root(what_) && what_ != What::reduce)
    in_place_ = all_in_place && rank_ == root_ && what_ != What::bcast;
  else if (what_ == What::reduce || what_ == What::allreduce)
    in_place_ = own_in_place && (what_ == What::allreduce || rank_ == root_);
  else
    in_place_ = all_in_place && what_ != What::barrier && !plain && !hangs_in_place(what_);
  const bool may_stride = type_ == 0 && !plain && !reduces(what_) && what_ != What::barrier;
  // MPICH chooses its blocking Allgatherv by the extent of the datatype, so there ranks must have the same.
  receive_strided_ = may_stride && (what_ == What::bcast ? own_strides : all_stride);
  send_strided_ = may_stride && strided_sends;
  send_type_ = send_strided_ ? strided : element_;
  receive_type_ = receive_strided_ ? strided : element_;
  count_ = random_count(common);
  draw_blocks(common);
  list();
  fill(own);
}

void Collective::draw_blocks(Random& common) {
  const bool one = what_ == What::bcast || what_ == What::reduce || what_ == What::allreduce || what_ >= What::scan;
  if (!one) count_ = (count_ + size_ - 1) / size_;
  const bool varies = what_ == What::gatherv || what_ == What::scatterv || what_ == What::allgatherv ||
                      what_ == What::alltoallv || what_ == What::alltoallw || what_ == What::reduce_scatter;
  const int gap = varies && what_ != What::reduce_scatter ? common.below(3) : 0;
  // From each rank to each; of in-place exchanges as much there as back.
  const auto n = size_t(size_), own = size_t(rank_);
  std::vector<int> lengths(n * n, count_), each(n), from(n), to(n);
  for (size_t i = 0; varies && i < n; ++i)
    for (size_t j = 0; j < n; ++j) lengths[i * n + j] = common.below(count_ + 1);
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; exchanges(what_) && in_place_ && j < i; ++j) lengths[i * n + j] = lengths[j * n + i];
  for (size_t r = 0; r < n; ++r) {
    each[r] = lengths[r];
    to[r] = lengths[own * n + r];
    from[r] = lengths[r * n + own];
  }
  const bool is_root = rank_ == root_;
  const std::vector<int> whole{count_}, mine{each[own]};
  switch (what_) {
    case What::barrier:
      break;
    case What::bcast:
      receives_ = laid(whole, 0);
      break;
    case What::gather:
    case What::gatherv:
      sends_ = laid(mine, 0);
      if (is_root) receives_ = laid(each, gap);
      break;
    case What::scatter:
    case What::scatterv:
      if (is_root) sends_ = laid(each, gap);
      receives_ = laid(mine, 0);
      break;
    case What::allgather:
    case What::allgatherv:
      sends_ = laid(mine, 0);
      receives_ = laid(each, gap);
      break;
    case What::alltoall:
    case What::alltoallv:
    case What::alltoallw:
      sends_ = laid(to, gap);
      receives_ = laid(from, gap);
      break;
    case What::reduce_scatter:
    case What::reduce_scatter_block:
      sends_ = laid(each, 0);
      receives_ = laid(mine, 0);
      break;
    default:
      sends_ = receives_ = laid(whole, 0);
  }
}

void Collective::list() {
  narrow_ = {sends_.counts, what_ == What::reduce_scatter ? sends_.counts : receives_.counts, sends_.at, receives_.at};
  copy(large_.send_counts, narrow_.send_counts);
  copy(large_.receive_counts, narrow_.receive_counts);
  copy(large_.send_at, narrow_.send_at);
  copy(large_.receive_at, narrow_.receive_at);
  send_bytes_at_ = sends_.at;
  receive_bytes_at_ = receives_.at;
  for (int& at : send_bytes_at_) at *= int(stride(send_strided_));
  for (int& at : receive_bytes_at_) at *= int(stride(receive_strided_));
  copy(large_send_bytes_at_, send_bytes_at_);
  copy(large_receive_bytes_at_, receive_bytes_at_);
  send_types_.assign(sends_.counts.size(), send_type_);
  receive_types_.assign(receives_.counts.size(), receive_type_);
}

void Collective::put(std::vector<unsigned char>& buffer, bool strided, int at, const unsigned char* data, int count) const {
  const size_t step = stride(strided);
  for (size_t i = 0; i < size_t(count); ++i) memcpy(&buffer[(size_t(at) + i) * step], data + i * bytes_, bytes_);
}

void Collective::fill(Random& own) {
  const Blocks& source = what_ == What::bcast ? receives_ : sends_;
  std::vector<unsigned char> data(size_t(source.elements()) * bytes_);
  fill_elements(data, elements[type_], own);
  in_.assign(size_t(sends_.elements()) * stride(send_strided_) + 1, 0xdd);
  const int room = std::max(receives_.elements(), in_place_ && reduces(what_) ? sends_.elements() : 0);
  out_.assign(size_t(room) * stride(receive_strided_) + 1, 0xee);
  for (size_t b = 0; b < sends_.counts.size(); ++b)
    put(in_, send_strided_, sends_.at[b], &data[size_t(sends_.at[b]) * bytes_], sends_.counts[b]);
  if (what_ == What::bcast && rank_ == root_) put(out_, receive_strided_, 0, data.data(), count_);
  if (in_place_ && reduces(what_)) put(out_, false, 0, data.data(), sends_.elements());
  const bool gathers = what_ == What::gather || what_ == What::gatherv || what_ == What::allgather || what_ == What::allgatherv;
  if (in_place_ && gathers) put(out_, receive_strided_, receives_.at[size_t(rank_)], data.data(), sends_.counts[0]);
  for (size_t b = 0; in_place_ && exchanges(what_) && b < sends_.counts.size(); ++b)
    put(out_, receive_strided_, receives_.at[b], &data[size_t(sends_.at[b]) * bytes_], sends_.counts[b]);
  kept_ = in_;
  initial_ = out_;
}

// The calls of all forms have the same arguments but for the last ones. `form(Gather, gather)` is the function's name.
#define EVERY_CALL(form, lists, w, ...)                                                                                         \
  switch (what_) {                                                                                                              \
    case What::barrier:                                                                                                         \
      break;                                                                                                                    \
    case What::bcast:                                                                                                           \
      return form(Bcast, bcast)(receive, count_, receive_type_, root_, comm __VA_ARGS__);                                       \
    case What::reduce:                                                                                                          \
      return form(Reduce, reduce)(send, receive, count_, element_, op_, root_, comm __VA_ARGS__);                               \
    case What::allreduce:                                                                                                       \
      return form(Allreduce, allreduce)(send, receive, count_, element_, op_, comm __VA_ARGS__);                                \
    case What::gather:                                                                                                          \
      return form(Gather, gather)(send, count_, send_type_, receive, count_, receive_type_, root_, comm __VA_ARGS__);           \
    case What::gatherv:                                                                                                         \
      return form(Gatherv, gatherv)(send, sends_.counts[0], send_type_, receive, lists.receive_counts.data(),                   \
                                    lists.receive_at.data(), receive_type_, root_, comm __VA_ARGS__);                           \
    case What::scatter:                                                                                                         \
      return form(Scatter, scatter)(send, count_, send_type_, receive, count_, receive_type_, root_, comm __VA_ARGS__);         \
    case What::scatterv:                                                                                                        \
      return form(Scatterv, scatterv)(send, lists.send_counts.data(), lists.send_at.data(), send_type_, receive,                \
                                      receives_.counts[0], receive_type_, root_, comm __VA_ARGS__);                             \
    case What::allgather:                                                                                                       \
      return form(Allgather, allgather)(send, count_, send_type_, receive, count_, receive_type_, comm __VA_ARGS__);            \
    case What::allgatherv:                                                                                                      \
      return form(Allgatherv, allgatherv)(send, sends_.counts[0], send_type_, receive, lists.receive_counts.data(),             \
                                          lists.receive_at.data(), receive_type_, comm __VA_ARGS__);                            \
    case What::alltoall:                                                                                                        \
      return form(Alltoall, alltoall)(send, count_, send_type_, receive, count_, receive_type_, comm __VA_ARGS__);              \
    case What::alltoallv:                                                                                                       \
      return form(Alltoallv, alltoallv)(send, lists.send_counts.data(), lists.send_at.data(), send_type_, receive,              \
                                        lists.receive_counts.data(), lists.receive_at.data(), receive_type_, comm __VA_ARGS__); \
    case What::alltoallw:                                                                                                       \
      return form(Alltoallw, alltoallw)(send, lists.send_counts.data(), w##send_bytes_at_.data(), send_types_.data(), receive,  \
                                        lists.receive_counts.data(), w##receive_bytes_at_.data(), receive_types_.data(),        \
                                        comm __VA_ARGS__);                                                                      \
    case What::reduce_scatter:                                                                                                  \
      return form(Reduce_scatter, reduce_scatter)(send, receive, lists.receive_counts.data(), element_, op_, comm __VA_ARGS__); \
    case What::reduce_scatter_block:                                                                                            \
      return form(Reduce_scatter_block, reduce_scatter_block)(send, receive, count_, element_, op_, comm __VA_ARGS__);          \
    case What::scan:                                                                                                            \
      return form(Scan, scan)(send, receive, count_, element_, op_, comm __VA_ARGS__);                                          \
    case What::exscan:                                                                                                          \
      return form(Exscan, exscan)(send, receive, count_, element_, op_, comm __VA_ARGS__);                                      \
  }
#define BLOCKING(upper, lower) PMPI_##upper
#define STARTED(upper, lower) MPI_I##lower
#define PREPARED(upper, lower) MPI_##upper##_init
#define STARTED_LARGE(upper, lower) MPI_I##lower##_c
#define PREPARED_LARGE(upper, lower) MPI_##upper##_init_c

// MPICH has the forms for large counts, Open MPI 5 has not.
#if defined(MPICH_VERSION)
#define HAS_LARGE 1
#endif

int Collective::start(MPI_Comm comm, MPI_Request* request) {
  const bool scatters = what_ == What::scatter || what_ == What::scatterv;
  const void* send = in_place_ && !scatters ? MPI_IN_PLACE : in_.data();
  void* receive = in_place_ && scatters ? MPI_IN_PLACE : out_.data();
#if defined(HAS_LARGE)
  if (wide_) EVERY_CALL(STARTED_LARGE, large_, large_, , request)
#endif
  EVERY_CALL(STARTED, narrow_, , , request)
  return MPI_Ibarrier(comm, request);
}

int Collective::prepare(MPI_Comm comm, MPI_Request* request) {
  const bool scatters = what_ == What::scatter || what_ == What::scatterv;
  const void* send = in_place_ && !scatters ? MPI_IN_PLACE : in_.data();
  void* receive = in_place_ && scatters ? MPI_IN_PLACE : out_.data();
#if defined(HAS_LARGE)
  if (wide_) EVERY_CALL(PREPARED_LARGE, large_, large_, , MPI_INFO_NULL, request)
#endif
  EVERY_CALL(PREPARED, narrow_, , , MPI_INFO_NULL, request)
  return MPI_Barrier_init(comm, MPI_INFO_NULL, request);
}

int Collective::answer(MPI_Comm comm, void* receive) const {
  const void* send = in_.data();
  EVERY_CALL(BLOCKING, narrow_, , )
  return PMPI_Barrier(comm);
}

// Whether MPI says what is in the result afterwards.
bool Collective::gets() const {
  const bool to_root = what_ == What::reduce || what_ == What::gather || what_ == What::gatherv;
  return what_ != What::barrier && (!to_root || rank_ == root_) && (what_ != What::exscan || rank_ > 0);
}

void Collective::compare(MPI_Comm shadow, World& result, long step) {
  std::vector<unsigned char> expected = what_ == What::bcast ? initial_ : std::vector<unsigned char>(out_.size(), 0xee);
  result.check(kept_ == in_, "an input was written to", step);
  answer(shadow, expected.data());
  if (!gets()) return;
  const bool scatters = what_ == What::scatter || what_ == What::scatterv;
  if (in_place_ && scatters) expected = initial_;
  size_t bytes = out_.size();
  if (in_place_ && reduces(what_)) bytes = size_t(receives_.elements()) * bytes_;
  result.check(memcmp(out_.data(), expected.data(), bytes) == 0, name(), step);
}

const char* Collective::name() const {
  return names[int(what_)];
}
