// Shipments to be tested: who gives how much to whom, random but for what the collective demands, and each rank's part in it.
#pragma once
#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "collective/request.hpp"
#include "reference.hpp"

namespace stretto::collective {

inline constexpr size_t gap = 16;
inline constexpr unsigned char filler = 0xa5;

inline bool is_shipment(Kind kind) {
  return kind >= Kind::gather && kind <= Kind::alltoallw;
}
inline bool gathers(Kind kind) {
  return kind == Kind::gather || kind == Kind::gatherv;
}
inline bool scatters(Kind kind) {
  return kind == Kind::scatter || kind == Kind::scatterv;
}
inline bool gives_each(Kind kind) {
  return scatters(kind) || kind == Kind::alltoall || kind == Kind::alltoallv || kind == Kind::alltoallw;
}
inline bool varies(Kind kind) {
  return kind >= Kind::gatherv;
}

// Whose receivers do not know from MPI how much comes: programs give more room, and MPI lets them.
inline bool told_to_givers_alone(Kind kind) {
  return is_shipment(kind) && varies(kind) && kind != Kind::allgatherv;
}

// Who gives how much to whom, and what.
struct Plan {
  Kind kind;
  int ranks, root;
  std::vector<std::vector<Bytes>> message;  // [from][to]
  std::vector<bool> in_place;
  size_t between = gap;  // pieces
  size_t spare = 0;      // bytes of room behind each message that is received

  bool gives(int r) const { return gathers(kind) || !scatters(kind) || r == root; }
  bool gets(int r) const { return scatters(kind) || !gathers(kind) || r == root; }
};

inline Bytes random_bytes(std::mt19937& random, size_t n) {
  Bytes bytes(n);
  Fast fast(random);
  for (size_t i = 0; i < n; i += 8) {
    const uint64_t eight = fast();
    std::memcpy(&bytes[i], &eight, std::min<size_t>(8, n - i));
  }
  return bytes;
}

// A rank's memory: pieces with gaps around them, or with none between them.
class Pieces {
 public:
  Pieces(const std::vector<size_t>& sizes, size_t between) {
    size_t bytes = 2 * gap;
    for (size_t n : sizes) bytes += n + between;
    memory_.assign(bytes, filler);
    size_t at = gap;
    for (size_t n : sizes) {
      list_.push_back({memory_.data() + at, n});
      at += n + between;
    }
  }
  Pieces(Pieces&&) = default;
  std::vector<Piece>& list() { return list_; }
  void set(size_t i, const Bytes& bytes) {
    if (!bytes.empty()) std::memcpy(list_[i].data, bytes.data(), bytes.size());
  }
  Bytes get(size_t i) const {
    auto* data = static_cast<unsigned char*>(list_[i].data);
    return Bytes(data, data + list_[i].bytes);
  }
  bool gaps_intact() const {
    const unsigned char* from = memory_.data();
    for (const Piece& piece : list_) {
      auto* begin = static_cast<const unsigned char*>(piece.data);
      if (std::count(from, begin, filler) != begin - from) return false;
      from = begin + piece.bytes;
    }
    return size_t(std::count(from, memory_.data() + memory_.size(), filler)) == size_t(memory_.data() + memory_.size() - from);
  }

 private:
  Bytes memory_;
  std::vector<Piece> list_;
};

// One rank's part in a plan.
class Part {
 public:
  Part(const Plan& plan, int rank)
      : plan_(plan), rank_(rank), given_(sizes_given(), plan.between), got_(sizes_got(), plan.between) {
    for (size_t i = 0; i < given_.list().size(); ++i) given_.set(i, sent(gives_each(plan.kind) ? int(i) : 0));
    if (in_place()) put_in_place();
  }

  Request request() {
    Request request;
    request.kind = plan_.kind;
    request.root = plan_.root;
    request.count = selection_bytes();
    if (plan_.gives(rank_)) request.gives = gives_.empty() ? given_.list().data() : gives_.data();
    if (plan_.gets(rank_)) request.gets = got_.list().data();
    if (in_place() && gathers(plan_.kind)) request.gives = nullptr;
    if (in_place() && scatters(plan_.kind)) request.gets = nullptr;
    return request;
  }

  bool right() const {
    if (!given_.gaps_intact() || !got_.gaps_intact()) return false;
    for (int r = 0; plan_.gets(rank_) && r < plan_.ranks; ++r) {
      if ((in_place() && scatters(plan_.kind)) || !plan_.gives(r)) continue;
      Bytes expected = plan_.message[size_t(r)][size_t(rank_)];
      const bool told = told_to_givers_alone(plan_.kind) && !(r == rank_ && in_place());
      if (!told) expected.resize(expected.size() + plan_.spare, filler);
      if (got_.get(size_t(r)) != expected) return false;  // pieces are as long as what came
    }
    return true;
  }

 private:
  bool rooted() const { return gathers(plan_.kind) || scatters(plan_.kind); }
  bool in_place() const { return plan_.in_place[size_t(rank_)] && (!rooted() || rank_ == plan_.root); }
  const Bytes& sent(int to) const { return plan_.message[size_t(rank_)][size_t(to)]; }
  size_t got_bytes(int from) const { return plan_.gives(from) ? plan_.message[size_t(from)][size_t(rank_)].size() : 0; }

  std::vector<size_t> sizes_given() const {
    std::vector<size_t> sizes;
    for (int r = 0; plan_.gives(rank_) && r < (gives_each(plan_.kind) ? plan_.ranks : 1); ++r) sizes.push_back(sent(r).size());
    return sizes;
  }
  std::vector<size_t> sizes_got() const {
    std::vector<size_t> sizes;
    for (int r = 0; plan_.gets(rank_) && r < plan_.ranks; ++r) sizes.push_back(got_bytes(r) + plan_.spare);
    return sizes;
  }

  void put_in_place() {
    if (gathers(plan_.kind)) return got_.set(size_t(rank_), sent(rank_));
    if (scatters(plan_.kind)) return;
    if (!gives_each(plan_.kind)) {
      got_.set(size_t(rank_), sent(0));
      gives_ = {got_.list()[size_t(rank_)]};
      return;
    }
    for (int r = 0; r < plan_.ranks; ++r) got_.set(size_t(r), sent(r));
    gives_ = got_.list();
  }

  // As the hooks count it: see Request.
  size_t selection_bytes() const {
    if (plan_.kind == Kind::allgatherv) {
      size_t most = 0;
      for (int r = 0; r < plan_.ranks; ++r) most = std::max(most, got_bytes(r));
      return most;
    }
    if (varies(plan_.kind)) return 0;
    size_t block = plan_.message[0][0].size();
    return gives_each(plan_.kind) ? block * size_t(plan_.ranks) : block;
  }

  const Plan& plan_;
  const int rank_;
  Pieces given_;
  Pieces got_;
  std::vector<Piece> gives_;  // where they are not given_'s
};

// `size()` draws the bytes of a message.
template <class Size>
Plan random_plan(Kind kind, int ranks, std::mt19937& random, Size size) {
  Plan plan{kind, ranks, int(random() % unsigned(ranks)), {}, {}};
  plan.between = random() % 2 ? gap : 0;
  size_t block = size(), n = size_t(ranks);
  std::vector<std::vector<size_t>> sizes(n, std::vector<size_t>(n, block));
  for (size_t from = 0; varies(kind) && from < n; ++from) {
    size_t one = size();
    for (size_t to = 0; to < n; ++to) sizes[from][to] = gives_each(kind) ? size() : one;
  }
  const bool symmetric = random() % 2;  // in place what is sent is as long as what is received
  for (size_t from = 0; symmetric && gives_each(kind) && from < n; ++from)
    for (size_t to = 0; to < from; ++to) sizes[from][to] = sizes[to][from];
  for (size_t from = 0; from < n; ++from) {
    Bytes same = random_bytes(random, sizes[from][0]);
    plan.message.emplace_back();
    for (size_t to = 0; to < n; ++to)
      plan.message[from].push_back(gives_each(kind) ? random_bytes(random, sizes[from][to]) : same);
    bool may = !gives_each(kind) || scatters(kind) || symmetric || !varies(kind);
    plan.in_place.push_back(may && random() % 2);
  }
  return plan;
}

}  // namespace stretto::collective
