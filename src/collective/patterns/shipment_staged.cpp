#include <string.h>

#include <memory>
#include <new>
#include <optional>

#include "collective/patterns/comers.hpp"
#include "collective/patterns/exchange.hpp"
#include "collective/patterns/offer.hpp"
#include "collective/patterns/parcels.hpp"
#include "collective/patterns/rounds.hpp"

namespace stretto::collective {
namespace {

// A label and, where the route is not known, the sizes of the pieces for each rank (or of the one for all).
size_t head_bytes(int sizes) {
  return size_t(sizes + 1) * sizeof(uint64_t);
}

// From so many bytes of the longest piece on ship_sized leaves it where it is. What all give to all: measured on shared cores,
// where every round through cells costs turns of the cores.
size_t joint_from(const Team& team, Route route) {
  const bool shared = route.ends != Ends::all && team.size > 2 && team.waiter.has_own_cpu();
  if (shared) return route.ends == Ends::from_root ? 12 << 10 : 48 << 10;
  return (768 << 10) / size_t(team.size);
}

// Of the first size: the rank is not in place.
constexpr uint64_t apart = uint64_t(1) << 63;

bool rides_along(size_t bytes, int sizes) {
  return bytes + head_bytes(sizes) <= slot_payload;
}

class StagedShipment {
 public:
  StagedShipment(Team& team, const Request& request, Route route)
      : team_(team),
        request_(request),
        route_(route),
        parcels_(team, request, route),
        exchange_(team),
        in_place_(parcels_.overwrites()),
        comers_(team),
        sources_(team.lists) {
    for (int r = 0; r < team.size; ++r) new (&source(r)) Source;
  }

  Status run() {
    weigh();
    alike_ = route_.known || route_.ends == Ends::from_root;
    if (!route_.known && alike_ && team_.rank != request_.root) STRETTO_TRY(greet(request_.root));
    plan();
    if (is_offered()) {
      STRETTO_TRY(post());
      STRETTO_TRY(give_as_offered());
    } else {
      if (may_stage()) STRETTO_TRY(stage());  // whoever sees the label finds something to read
      STRETTO_TRY(post());
    }
    return ship();
  }

  // Of what all give the root: long pieces are offered to it first.
  Status run_with_offers() {
    takes_offers_ = true;
    if (team_.rank == request_.root) offers_.reset(new (std::nothrow) std::optional<TakenOffer>[size_t(team_.size)]);
    const Status status = run();
    for (int r = 0; !status.ok() && status.code != Code::truncated && r < team_.size; ++r)
      if (has_offer(r)) offer(r).abandon();
    return status;
  }

  // Everybody hears all sizes before anything is staged, and so all decide alike.
  Status run_sized() {
    weigh();
    STRETTO_TRY(post());
    for (int k = 1; k < team_.size; ++k) {
      const int r = (team_.rank + k) % team_.size;
      if (speaks(r)) STRETTO_TRY(greet(r));
    }
    if (load_.longest >= joint_from(team_, route_)) {
      if (route_.ends != Ends::all) exchange_.finish();
      return ship_joint(team_, request_, route_);
    }
    plan();
    return ship();
  }

 private:
  // What is staged: all pieces that do not ride in their rank's slot.
  struct Load {
    size_t longest = 0;  // piece
    int pieces = 1;      // side by side in a round
    void add(const Load& other) {
      longest = std::max(longest, other.longest);
      pieces = std::max(pieces, other.pieces);
    }
  };

  // What a peer gives this rank.
  struct Source {
    size_t bytes = 0;
    int position = 0;             // among the pieces of a round
    const char* along = nullptr;  // where it stands in the slot instead, until the next exchange
    bool greeted = false;         // its label has been read
    uint32_t rounds = 0;          // in which its piece comes
    uint32_t taken = 0;           // of them
    std::optional<Rounds> own;    // where ranks have rounds of their own
  };

  bool has_offer(int r) const { return offers_ && offers_[r]; }
  TakenOffer& offer(int r) { return *offers_[r]; }  // NOLINT(bugprone-unchecked-optional-access)
  Form form() const { return takes_offers_ ? Form::offered : Form::staged; }

  Source& source(int r) { return sources_[r]; }
  const Source& source(int r) const { return sources_[r]; }

  // What this rank gives; of a known route, what all give.
  void weigh() {
    if (route_.known) {
      load_ = {parcels_.longest(), route_.each ? std::max(team_.size - 1, 1) : 1};
      return;
    }
    Load load{0, 0};
    for (int i = 0; i < sizes(); ++i) {
      const size_t bytes = listed(i).bytes;
      total_ += bytes;
      load.longest = std::max(load.longest, bytes);
      load.pieces += bytes > 0;
    }
    rides_ = rides_along(total_, sizes());
    if (!rides_) load_ = load;
  }

  // The rounds: where all know the load of all, they are alike.
  void plan() {
    if (!alike_) part_ = Rounds::take_part(team_);
    rounds_.emplace(alike_ ? rounds_of_all() : rounds_of_one(load_, in_place_));
    to_stage_ = rides_ || !parcels_.gives_any() ? 0 : own().count();
    for (int k = 1; k < team_.size; ++k) {
      const int r = (team_.rank + k) % team_.size;
      if (!parcels_.gets_from(r)) continue;
      if (route_.known) source(r).bytes = request_.gets[r].bytes, source(r).position = position_known(team_.rank, r);
      if (alike_) count_rounds(r);
      comers_.expect(r);
    }
    drain();
  }

  Status ship() {
    for (int r = 0; takes_offers_ && r < team_.size; ++r)  // who offers something waits but a moment
      if (parcels_.gets_from(r) && exchange_.posted(r)) STRETTO_TRY(greet(r));
    parcels_.keep_own();
    STRETTO_TRY(run_rounds());
    take_along();
    if (alike_ && !parcels_.gets_any()) own().fetch_next();
    if (route_.ends != Ends::all) exchange_.finish();
    return parcels_.outcome();
  }

  // Equal slices of all pieces in a round. Enough rounds that staging and reading overlap, large enough that announcing them
  // costs little.
  size_t slice_of(size_t longest, int pieces, size_t most) const {
    const size_t all = size_t(std::max(pieces, 1)), least = staged_piece(team_, 0);
    const size_t piece = staged_piece(team_, longest * all, route_.ends == Ends::all);
    const size_t slice = std::min(most, std::max(piece, least * all)) / all;
    return slice > cache_line ? slice & ~(cache_line - 1) : slice;
  }
  Rounds rounds_of_all() const {
    Request lengths;
    lengths.count = load_.longest;
    return Rounds(team_, lengths, slice_of(load_.longest, load_.pieces, team_.staged->cell_bytes()), load_.pieces);
  }
  // In place slices are as long on all ranks: a rank tells how many rounds it has read of everybody, so none could go on who has
  // to stage two of its own before it may read one of another's.
  Rounds rounds_of_one(Load load, bool in_place) const {
    const size_t most = Rounds::most_in_part(team_), bytes = load.longest;
    const int pieces = load.pieces;
    if (in_place) load = {most, std::max(team_.size - 1, 1)};
    return Rounds(team_, part_, bytes, slice_of(load.longest, load.pieces, most), pieces);
  }
  void count_rounds(int r) {
    const size_t slice = of(r).range(0).size(), bytes = source(r).along ? 0 : source(r).bytes;
    source(r).rounds = bytes > 0 ? uint32_t((bytes + slice - 1) / slice) : 0;
  }

  Status post() {
    if (!speaks(team_.rank)) return Status::good();
    STRETTO_TRY(exchange_.claim(&payload_));
    if (!route_.known) write_sizes(static_cast<char*>(payload_) + sizeof(uint64_t));
    const uint64_t label = label_of(request_.kind, form(), route_.known ? known_piece() : total_);
    memcpy(payload_, &label, sizeof label);
    if (is_offered()) make_offer(team_, listed(0), payload_);
    exchange_.post(route_.known ? sizeof label : head_bytes(sizes()) + (rides_ ? total_ : 0));
    return Status::good();
  }

  bool is_offered() const { return takes_offers_ && parcels_.gives_any() && total_ >= offered_from; }
  Status give_as_offered() {
    bool served;
    STRETTO_TRY(collective::give_as_offered(team_, request_.root, listed(0), payload_, &served));
    if (served) to_stage_ = 0;
    return Status::good();
  }

  size_t known_piece() const { return route_.each ? parcels_.longest() : request_.gives->bytes; }

  int sizes() const { return route_.each ? team_.size : 1; }

  // The piece for peer number i of the list; the root of a gather gives its own to nobody.
  Piece listed(int i) const {
    if (route_.each) return parcels_.given(i);
    return parcels_.gives_any() ? *request_.gives : Piece{nullptr, 0};
  }

  // Of all pieces, and behind them the pieces where they fit.
  void write_sizes(char* size) const {
    char* data = size + size_t(sizes()) * sizeof(uint64_t);
    for (int i = 0; i < sizes(); ++i, size += sizeof(uint64_t)) {
      const Piece piece = listed(i);
      const uint64_t word = piece.bytes | (i == 0 && !in_place_ ? apart : 0);
      memcpy(size, &word, sizeof word);
      if (!rides_ || piece.bytes == 0) continue;
      memcpy(data, piece.data, piece.bytes);
      data += piece.bytes;
    }
  }

  // Of the piece for `reader` in the cells of rank r: all but its own, in rank order.
  int position_known(int reader, int r) const { return !route_.each ? 0 : reader < r ? reader : reader - 1; }

  // Whether rank r posts anything.
  bool speaks(int r) const { return route_.ends == Ends::all || (r == request_.root) == (route_.ends == Ends::from_root); }

  // The label of rank r: of a known route, what this rank reckons with; else the sizes of all its pieces.
  Status greet(int r) {
    if (source(r).greeted) return Status::good();
    source(r).greeted = true;
    const void* payload;
    uint64_t label;
    STRETTO_TRY(exchange_.read(r, &payload));
    memcpy(&label, payload, sizeof label);
    STRETTO_TRY(compare_labels(label_of(request_.kind, form(), 0), label, r));
    // Of a gather they are known after all.
    if (request_.kind == Kind::gather && bytes_of(label) != parcels_.room(r).bytes) return sizes_differ(r);
    if (!route_.known) return read_sizes(r, static_cast<const char*>(payload), bytes_of(label));
    const bool as_expected = bytes_of(label) == source(r).bytes;
    return as_expected ? Status::good() : sizes_differ(r);
  }
  static Status sizes_differ(int r) { return disagreed("ranks disagree about the size of a message", r); }

  // From the sizes of rank r's pieces: where in its cells this rank's piece is, or where beside the sizes.
  Status read_sizes(int r, const char* payload, size_t total) {
    const int mine = route_.each ? team_.rank : 0;
    const bool all_along = rides_along(total, sizes());
    Source& s = source(r);
    Load load{0, 0};
    size_t before = 0;
    bool in_place = false;
    for (int i = 0; i < sizes(); ++i) {
      uint64_t bytes;
      memcpy(&bytes, payload + head_bytes(i), sizeof bytes);
      if (i == 0) in_place = (bytes & apart) == 0;
      bytes &= ~apart;
      if (i == mine && parcels_.gets_from(r)) s.bytes = bytes, s.position = load.pieces, parcels_.expect(r, bytes);
      if (i < mine) before += bytes;
      load.longest = std::max<size_t>(load.longest, bytes);
      load.pieces += bytes > 0;
    }
    if (all_along) {
      if (s.bytes > 0) s.along = payload + head_bytes(sizes()) + before;
    } else if (alike_) {
      load_.add(load);
    } else if (s.bytes > 0) {
      s.own.emplace(rounds_of_one(load, in_place));
      count_rounds(r);
      if (takes_offers_ && s.bytes >= offered_from) STRETTO_TRY(take_offer(r, payload));
    }
    return in_place || alike_ ? Status::good() : leave_place(r);
  }

  Status take_offer(int r, const void* payload) {
    if (!offers_) return TakenOffer::decline(payload), Status::good();  // there is no memory
    offers_[r].emplace(team_, r, payload, source(r).bytes, parcels_.room(r), parcels_.store());
    bool accepted;
    STRETTO_TRY(offer(r).accept(&accepted));
    if (!accepted) offers_[r].reset();
    return Status::good();
  }

  // Rank r is not in place, and its rounds may be longer than here: what this rank has still to send goes to where nothing is
  // received.
  Status leave_place(int r) {
    if (!in_place_) return Status::good();
    in_place_ = false;
    if (staged_ == to_stage_) return Status::good();
    size_t total = 0;
    for (int i = 0; i < sizes(); ++i) total += listed(i).bytes;
    kept_.reset(new (std::nothrow) char[total]);
    if (!kept_) return disagreed("only some ranks are in place, and there is no memory for a copy", r);
    char* to = kept_.get();
    const size_t sent = own().range(staged_).begin;
    for (int i = 0; i < sizes(); ++i) {
      const Piece piece = listed(i);
      if (piece.bytes > sent) memcpy(to + sent, static_cast<char*>(piece.data) + sent, piece.bytes - sent);
      to += piece.bytes;
    }
    return Status::good();
  }

  // Last, as what stands there may still have to be sent.
  void take_along() {
    for (int r = 0; r < team_.size; ++r)
      if (source(r).along) parcels_.receive(r, 0, source(r).along, source(r).bytes);
  }

  Rounds& own() { return *rounds_; }                                       // NOLINT(bugprone-unchecked-optional-access)
  Rounds& of(int r) { return source(r).own ? *source(r).own : *rounds_; }  // NOLINT(bugprone-unchecked-optional-access)

  // A round is staged while the one before is read by others; more of them only while there is nobody to read from.
  Status run_rounds() {
    const auto ready = [this](int r) { return is_ready(r); };
    const auto serve = [this](int r) { return take(r); };
    const auto done = [this](int r) { return is_finished(r); };
    for (;;) {
      if (staged_ <= uint64_t(drained_) + 1 && may_stage()) {
        STRETTO_TRY(stage());
        continue;
      }
      bool served;
      STRETTO_TRY(comers_.serve_present(ready, serve, done, &served));
      if (served) {
        drain();
      } else if (may_stage()) {
        STRETTO_TRY(stage());
      } else if (!comers_.empty() && !must_stage_first()) {
        STRETTO_TRY(comers_.wait(ready, [this](int r) { return awaited(r); }, [this] { return may_stage(); }));
      } else if (staged_ < to_stage_) {
        STRETTO_TRY(own().free(staged_));
      } else {
        return Status::good();
      }
    }
  }

  // Whether rank r has posted its label, and then whether its next round can be read, or there is none.
  bool is_ready(int r) {
    if (!source(r).greeted) return exchange_.posted(r);
    return has_offer(r) ? offer(r).is_ready() : is_finished(r) || is_readable(r);
  }
  bool is_finished(int r) const { return source(r).greeted && source(r).taken == source(r).rounds; }
  Awaited awaited(int r) {
    if (!source(r).greeted) return {&exchange_.ready(r), exchange_.number()};
    if (has_offer(r)) return {&offer(r).signal(), offer(r).by_giver()};
    return {&of(r).filled_by(r), of(r).number(source(r).taken)};
  }

  bool is_readable(int r) { return of(r).is_filled(r, source(r).taken) && !is_held_back(r); }

  // In place, only what has been sent is overwritten: whether the next round of rank r has to wait for that.
  bool is_held_back(int r) {
    return in_place_ && staged_ < to_stage_ && of(r).range(source(r).taken).end > own().range(staged_).begin;
  }
  bool must_stage_first() {
    for (int r = 0; in_place_ && r < team_.size; ++r)
      if (parcels_.gets_from(r) && !is_finished(r) && !(source(r).greeted && is_held_back(r))) return false;
    return in_place_;
  }

  // Whether the next round can be staged at once.
  bool may_stage() { return staged_ < to_stage_ && own().kept_by(staged_) < 0; }

  Status stage() {
    const uint32_t i = staged_++;
    int position = 0;
    char* kept = kept_.get();
    for (int r = 0; r < sizes(); ++r) {
      Piece piece = listed(r);
      if (kept != nullptr) piece.data = kept, kept += piece.bytes;
      if (route_.known && route_.each && r == team_.rank) continue;
      STRETTO_TRY(put(i, position, piece));
      position += route_.known || piece.bytes > 0;
    }
    own().filled(i);
    return Status::good();
  }

  Status put(uint32_t i, int position, Piece piece) {
    Range range = own().range(i);
    if (piece.bytes <= range.begin) return Status::good();
    const size_t bytes = std::min(range.end, piece.bytes) - range.begin;
    return own().put_at(own().place(i, position), static_cast<char*>(piece.data) + range.begin, bytes);
  }

  // The label of rank r, if it is new; or the next step of its offer; or its next round, if that is there.
  Status take(int r) {
    const bool is_new = !source(r).greeted;
    STRETTO_TRY(greet(r));
    if (has_offer(r)) {
      if (!is_new) take_step(r);
      return Status::good();
    }
    if (is_finished(r) || !is_readable(r)) return Status::good();
    Source& s = source(r);
    const uint32_t i = s.taken++;
    const Range range = of(r).range(i);
    const size_t bytes = std::min(range.end, s.bytes) - range.begin;
    const void* data;
    STRETTO_TRY(of(r).get_at(r, of(r).place(i, s.position), bytes, &data));
    parcels_.receive(r, range.begin, data, bytes);
    return Status::good();
  }

  void take_step(int r) {
    Source& s = source(r);
    if (offer(r).step()) return;
    if (offer(r).served()) s.taken = s.rounds;
    offers_[r].reset();
  }

  // Tells how many rounds this rank has read of everybody: all, once it expects no more.
  void drain() {
    uint32_t least = UINT32_MAX;
    for (int r = 0; r < team_.size; ++r)
      if (parcels_.gets_from(r) && (source(r).taken < source(r).rounds || !(alike_ || source(r).greeted)))
        least = std::min(least, source(r).taken);
    if (least <= drained_) return;
    drained_ = least;
    if (least < UINT32_MAX)
      own().drained(least - 1);
    else if (own().count() > 0 || !alike_)
      own().drained_all();
  }

  Team& team_;
  const Request& request_;
  const Route route_;
  Parcels parcels_;
  Exchange exchange_;
  size_t total_ = 0;                                     // bytes that this rank gives; where the route is not known
  bool rides_ = false;                                   // they stand in its slot
  void* payload_ = nullptr;                              // of the slot
  std::unique_ptr<std::optional<TakenOffer>[]> offers_;  // of the root
  bool takes_offers_ = false;                            // long pieces are offered first
  bool alike_ = true;                                    // all ranks know of all loads
  Load load_;                                            // all of them in one; else this rank's
  Rounds::Part part_{};
  std::optional<Rounds> rounds_;
  uint32_t to_stage_ = 0, staged_ = 0;  // rounds
  uint32_t drained_ = 0;                // rounds that have been read of everybody
  bool in_place_;
  std::unique_ptr<char[]> kept_;  // what is sent, where it is no longer in place
  Comers comers_;
  PerRank<Source> sources_;  // those of the ranks of the team are made
  static_assert(3 * sizeof(Source) <= Lists::per_rank);
};

}  // namespace

Status ship_staged(Team& team, const Request& request, Route route) {
  return StagedShipment(team, request, route).run();
}

Status ship_offered(Team& team, const Request& request) {
  return StagedShipment(team, request, gatherv_route).run_with_offers();
}

Status ship_sized(Team& team, const Request& request, Route route) {
  return StagedShipment(team, request, route).run_sized();
}

}  // namespace stretto::collective
