#include <string.h>

#include <optional>

#include "collective/patterns/comers.hpp"
#include "collective/patterns/exchange.hpp"
#include "collective/patterns/parcels.hpp"
#include "collective/patterns/rounds.hpp"

namespace stretto::collective {
namespace {

// A label and, where the route is not known, the sizes of the pieces for each rank (or of the one for all).
size_t head_bytes(int sizes) {
  return size_t(sizes + 1) * sizeof(uint64_t);
}

// Of the longest piece times the ranks: from here on ship_sized lets those who get read where it is. Measured on shared cores,
// where every round through cells costs turns of the cores.
constexpr size_t direct_from = 768 << 10;

bool rides_along(size_t bytes, int sizes) {
  return bytes + head_bytes(sizes) <= slot_payload;
}

class StagedShipment {
 public:
  StagedShipment(Team& team, const Request& request, Route route)
      : team_(team), request_(request), route_(route), parcels_(team, request, route), exchange_(team), comers_(team) {}

  Status run() {
    STRETTO_TRY(tell_sizes());
    return ship();
  }

  // Everybody knows all sizes once they are told, and so all decide alike.
  Status run_sized() {
    STRETTO_TRY(tell_sizes());
    if (longest_ < direct_from / size_t(team_.size)) return ship();
    if (route_.ends == Ends::from_root) exchange_.finish();
    return ship_direct(team_, request_, route_);
  }

 private:
  // What a peer gives this rank through its cells.
  struct Source {
    size_t bytes = 0;
    int position = 0;             // among the pieces of its cell
    const char* along = nullptr;  // where it stands in the slot instead, until the next exchange
    bool greeted = true;          // its label has been compared
    uint32_t rounds = 0;          // in which its piece comes
    uint32_t taken = 0;           // of them
  };

  Status tell_sizes() {
    STRETTO_TRY(post());
    if (!route_.known) return read_sizes();
    plan_known();
    return Status::good();
  }

  Status ship() {
    begin_rounds();
    if (may_stage()) STRETTO_TRY(stage());
    parcels_.keep_own();
    STRETTO_TRY(run_rounds());
    take_along();
    if (!parcels_.gets_any()) rounds().fetch_next();
    if (route_.known ? route_.ends != Ends::all : route_.ends == Ends::from_root) exchange_.finish();
    return parcels_.outcome();
  }

  Status post() {
    if (!speaks(team_.rank)) return Status::good();
    void* payload;
    STRETTO_TRY(exchange_.claim(&payload));
    size_t bytes = route_.known ? known_piece() : post_sizes(static_cast<char*>(payload));
    uint64_t label = label_of(request_.kind, Form::staged, bytes);
    memcpy(payload, &label, sizeof label);
    exchange_.post(sizeof label);
    return Status::good();
  }

  size_t known_piece() const { return route_.each ? parcels_.longest() : request_.gives->bytes; }

  int sizes() const { return route_.each ? team_.size : 1; }

  // The piece for peer number i of the list; the root of a gather gives its own to nobody.
  Piece listed(int i) const {
    if (route_.each) return parcels_.given(i);
    return parcels_.gives_any() ? *request_.gives : Piece{nullptr, 0};
  }

  // Returns the bytes of all pieces, which stand behind their sizes where they fit.
  size_t post_sizes(char* payload) {
    size_t total = 0;
    for (int i = 0; i < sizes(); ++i) total += listed(i).bytes;
    if (total == 0) return 0;
    char *size = payload + sizeof(uint64_t), *data = payload + head_bytes(sizes());
    rides_ = rides_along(total, sizes());
    for (int i = 0; i < sizes(); ++i, size += sizeof(uint64_t)) {
      Piece piece = listed(i);
      uint64_t bytes = piece.bytes;
      memcpy(size, &bytes, sizeof bytes);
      if (!rides_ || bytes == 0) continue;
      memcpy(data, piece.data, bytes);
      data += bytes;
    }
    return total;
  }

  void plan_known() {
    longest_ = parcels_.longest();
    widest_ = route_.each ? std::max(team_.size - 1, 1) : 1;
    for (int r = 0; r < team_.size; ++r)
      if (parcels_.gets_from(r)) sources_[r] = {request_.gets[r].bytes, position_known(team_.rank, r), nullptr};
  }

  // Of the piece for `reader` in the cells of rank r: all but its own, in rank order.
  int position_known(int reader, int r) const { return !route_.each ? 0 : reader < r ? reader : reader - 1; }

  // Of a known route: what rank r gives is what this rank reckons with.
  Status greet(int r) {
    const void* payload;
    uint64_t label, own = label_of(request_.kind, Form::staged, 0);
    STRETTO_TRY(exchange_.read(r, &payload));
    memcpy(&label, payload, sizeof label);
    STRETTO_TRY(compare_labels(own, label, r));
    if (bytes_of(label) != sources_[r].bytes) return disagreed("ranks disagree about the size of a message", r);
    sources_[r].greeted = true;
    return Status::good();
  }

  // Whether rank r posts anything. From a root that gives all there is, everybody learns all.
  bool speaks(int r) const {
    bool gives = route_.ends == Ends::all || (r == request_.root) == (route_.ends == Ends::from_root);
    return gives || (!route_.known && route_.ends == Ends::to_root);
  }

  Status read_sizes() {
    for (int k = 1; k <= team_.size; ++k) {
      int r = (team_.rank + k) % team_.size;
      if (!speaks(r)) continue;
      const void* payload;
      uint64_t label;
      STRETTO_TRY(exchange_.read(r, &payload));
      memcpy(&label, payload, sizeof label);
      STRETTO_TRY(compare_labels(label_of(request_.kind, Form::staged, 0), label, r));
      if (bytes_of(label) > 0) read_pieces(r, static_cast<const char*>(payload), bytes_of(label));
    }
    return Status::good();
  }

  // From the sizes of rank r's pieces: where in its cells this rank's piece is, or where beside the sizes.
  void read_pieces(int r, const char* payload, size_t total) {
    const int own = route_.each ? team_.rank : 0;
    size_t before = 0, longest = 0;
    int filled = 0;
    for (int i = 0; i < sizes(); ++i) {
      uint64_t bytes;
      memcpy(&bytes, payload + head_bytes(i), sizeof bytes);
      if (i == own && parcels_.gets_from(r)) sources_[r] = {bytes, filled, nullptr};
      if (i < own) before += bytes;
      longest = std::max<size_t>(longest, bytes);
      filled += bytes > 0;
    }
    if (!rides_along(total, sizes())) {
      longest_ = std::max(longest_, longest);
      widest_ = std::max(widest_, filled);
      return;
    }
    sources_[r].along = payload + head_bytes(sizes()) + before;
  }

  // Last, as what stands there may still have to be sent.
  void take_along() {
    for (int r = 0; r < team_.size; ++r)
      if (sources_[r].along && sources_[r].bytes > 0) parcels_.receive(r, 0, sources_[r].along, sources_[r].bytes);
  }

  // Equal slices of all pieces in a round. Enough rounds that staging and reading overlap, large enough that announcing them
  // costs little.
  void begin_rounds() {
    size_t pieces = size_t(widest_), cell = team_.staged->cell_bytes();
    size_t in_round =
        std::min(cell, std::max(staged_piece(longest_ * pieces, route_.ends == Ends::all), staged_piece(0) * pieces));
    slice_ = in_round / pieces;
    if (slice_ > cache_line) slice_ &= ~(cache_line - 1);
    Request lengths;
    lengths.count = longest_;
    rounds_.emplace(team_, lengths, slice_, slice_ * pieces);
    if (!parcels_.gets_any() && rounds().count() > 0) rounds().drained_all();
    to_stage_ = rides_ || !parcels_.gives_any() ? 0 : rounds().count();
    in_place_ = parcels_.overwrites();
    expect_sources();
  }

  void expect_sources() {
    for (int k = 1; k < team_.size; ++k) {
      const int r = (team_.rank + k) % team_.size;
      Source& source = sources_[r];
      if (!parcels_.gets_from(r)) continue;
      source.greeted = !route_.known;
      source.rounds = source.along ? 0 : uint32_t((source.bytes + slice_ - 1) / slice_);
      if (!source.greeted || source.rounds > 0) comers_.expect(r);
    }
    if (parcels_.gets_any()) drain();
  }

  Rounds& rounds() { return *rounds_; }              // NOLINT(bugprone-unchecked-optional-access)
  const Rounds& rounds() const { return *rounds_; }  // NOLINT(bugprone-unchecked-optional-access)

  // A round is staged while the one before is read by others; more of them only while there is nobody to read from.
  Status run_rounds() {
    const auto ready = [this](int r) { return is_ready(r); };
    const auto serve = [this](int r) { return take(r); };
    const auto done = [this](int r) { return sources_[r].taken == sources_[r].rounds; };
    for (;;) {
      if (staged_ <= drained_ + 1 && may_stage()) {
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
        STRETTO_TRY(rounds().free(staged_));
      } else {
        return Status::good();
      }
    }
  }

  // Whether rank r has posted its label, and then whether its next round can be read.
  bool is_ready(int r) { return sources_[r].greeted ? is_readable(r) : exchange_.posted(r); }
  Awaited awaited(int r) {
    if (!sources_[r].greeted) return {&exchange_.ready(r), exchange_.number()};
    return {&rounds().filled_by(r), rounds().number(sources_[r].taken)};
  }

  // In place, only what has been sent is overwritten.
  bool is_readable(int r) {
    const Source& source = sources_[r];
    if (source.taken == source.rounds || !rounds().is_filled(r, source.taken)) return false;
    return !in_place_ || to_stage_ == 0 || source.taken < staged_;
  }
  bool must_stage_first() const { return in_place_ && staged_ < to_stage_ && drained_ == staged_; }

  // Whether the next round can be staged at once.
  bool may_stage() {
    if (staged_ >= to_stage_ || (parcels_.gets_any() && staged_ >= drained_ + rounds().most_ahead())) return false;
    return rounds().kept_by(staged_) < 0;
  }

  Status stage() {
    if (!parcels_.gets_any()) rounds().linger(staged_);
    const uint32_t i = staged_++;
    int position = 0;
    rounds().choose_place(i);
    for (int r = 0; r < sizes(); ++r) {
      Piece piece = listed(r);
      if (route_.known && route_.each && r == team_.rank) continue;
      STRETTO_TRY(put(i, position, piece));
      position += route_.known || piece.bytes > 0;
    }
    rounds().filled(i);
    return Status::good();
  }

  Status put(uint32_t i, int position, Piece piece) {
    Range range = rounds().range(i);
    if (piece.bytes <= range.begin) return Status::good();
    const Rounds::Place place = rounds().place_of(team_.rank, i);
    const size_t bytes = std::min(range.end, piece.bytes) - range.begin, at = place.at + size_t(position) * slice_;
    return team_.staged->put(place.cell, at, static_cast<char*>(piece.data) + range.begin, bytes);
  }

  // The label of rank r, if it is new, and its next round, if that is there.
  Status take(int r) {
    Source& source = sources_[r];
    if (!source.greeted) STRETTO_TRY(greet(r));
    if (!is_readable(r)) return Status::good();
    const uint32_t i = source.taken++;
    const Range range = rounds().range(i);
    const size_t bytes = std::min(range.end, source.bytes) - range.begin;
    const void* data;
    STRETTO_TRY(rounds().wait_filled(r, i));
    const Rounds::Place place = rounds().place_of(r, i);
    const size_t at = place.at + size_t(source.position) * slice_;
    STRETTO_TRY(team_.staged->get(r, {}, place.cell, at, bytes, nullptr, &data));
    parcels_.receive(r, range.begin, data, bytes);
    return Status::good();
  }

  // Tells how many rounds this rank has read of everybody.
  void drain() {
    uint32_t least = rounds().count();
    for (int r = 0; r < team_.size; ++r)
      if (sources_[r].taken < sources_[r].rounds) least = std::min(least, sources_[r].taken);
    if (least > drained_) rounds().drained((drained_ = least) - 1);
  }

  Team& team_;
  const Request& request_;
  const Route route_;
  Parcels parcels_;
  Exchange exchange_;
  bool rides_ = false;  // all that this rank gives stands in its slot
  size_t longest_ = 0;  // piece
  int widest_ = 1;      // pieces in a cell
  size_t slice_ = 0;
  std::optional<Rounds> rounds_;        // once the sizes are known
  uint32_t to_stage_ = 0, staged_ = 0;  // rounds
  uint32_t drained_ = 0;                // rounds that have been read of everybody
  bool in_place_ = false;
  Comers comers_;
  Source sources_[max_team];
};

}  // namespace

Status ship_staged(Team& team, const Request& request, Route route) {
  return StagedShipment(team, request, route).run();
}

Status ship_sized(Team& team, const Request& request, Route route) {
  return StagedShipment(team, request, route).run_sized();
}

}  // namespace stretto::collective
