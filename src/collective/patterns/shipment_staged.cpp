#include <string.h>

#include <optional>

#include "collective/patterns/exchange.hpp"
#include "collective/patterns/parcels.hpp"
#include "collective/patterns/rounds.hpp"

namespace stretto::collective {
namespace {

// A label and, where the route is not known, the sizes of the pieces for each rank (or of the one for all).
size_t head_bytes(int sizes) {
  return size_t(sizes + 1) * sizeof(uint64_t);
}

bool rides_along(size_t bytes, int sizes) {
  return bytes + head_bytes(sizes) <= slot_payload;
}

class StagedShipment {
 public:
  StagedShipment(Team& team, const Request& request, Route route)
      : team_(team), request_(request), route_(route), parcels_(team, request, route), exchange_(team) {}

  Status run() {
    STRETTO_TRY(post());
    if (route_.known)
      plan_known();
    else
      STRETTO_TRY(read_sizes());
    begin_rounds();
    STRETTO_TRY(stage(0));
    parcels_.keep_own();
    if (route_.known) STRETTO_TRY(check_labels());
    for (uint32_t i = 0; i < rounds().count(); ++i) {
      STRETTO_TRY(stage(i + 1));
      STRETTO_TRY(take(i));
    }
    take_along();
    if (!route_.known && route_.ends == Ends::from_root) exchange_.finish();
    return parcels_.outcome();
  }

 private:
  // What a peer gives this rank through its cells.
  struct Source {
    size_t bytes = 0;
    int position = 0;             // among the pieces of its cell
    const char* along = nullptr;  // where it stands in the slot instead, until the next exchange
  };

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

  Status check_labels() {
    for (int r = 0; r < team_.size; ++r) {
      if (!parcels_.gets_from(r)) continue;
      const void* payload;
      uint64_t label, own = label_of(request_.kind, Form::staged, 0);
      STRETTO_TRY(exchange_.read(r, &payload));
      memcpy(&label, payload, sizeof label);
      STRETTO_TRY(compare_labels(own, label, r));
      if (bytes_of(label) != sources_[r].bytes) return disagreed("ranks disagree about the size of a message", r);
    }
    if (route_.ends != Ends::all) exchange_.finish();
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
    constexpr size_t least = 8 << 10, most = 64 << 10;
    size_t pieces = size_t(widest_), cell = team_.staged->cell_bytes();
    size_t smallest = least * pieces;
    size_t in_round = std::min(cell, std::clamp(longest_ * pieces / 4, smallest, std::max(most, smallest)));
    slice_ = in_round / pieces;
    if (slice_ > cache_line) slice_ &= ~(cache_line - 1);
    Request lengths;
    lengths.count = longest_;
    rounds_.emplace(team_, lengths, slice_);
    if (!parcels_.gets_any() && rounds().count() > 0) rounds().drained_all();
  }

  Rounds& rounds() { return *rounds_; }              // NOLINT(bugprone-unchecked-optional-access)
  const Rounds& rounds() const { return *rounds_; }  // NOLINT(bugprone-unchecked-optional-access)
  transport::Cell cell(uint32_t i) const { return rounds().cell(i); }
  size_t place(uint32_t i, int position) const { return cell(i).start + size_t(position) * slice_; }

  Status stage(uint32_t i) {
    if (i >= rounds().count() || rides_ || !parcels_.gives_any()) return Status::good();
    STRETTO_TRY(rounds().free(i));
    int position = 0;
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
    size_t bytes = std::min(range.end, piece.bytes) - range.begin;
    return team_.staged->put(cell(i), place(i, position), static_cast<char*>(piece.data) + range.begin, bytes);
  }

  Status take(uint32_t i) {
    if (!parcels_.gets_any()) return Status::good();
    Range range = rounds().range(i);
    for (int k = 1; k < team_.size; ++k) {
      int r = (team_.rank + k) % team_.size;
      const Source& source = sources_[r];
      if (source.bytes <= range.begin || source.along) continue;
      size_t bytes = std::min(range.end, source.bytes) - range.begin;
      const void* data;
      STRETTO_TRY(rounds().wait_filled(r, i));
      STRETTO_TRY(team_.staged->get(r, {}, cell(i), place(i, source.position), bytes, nullptr, &data));
      parcels_.receive(r, range.begin, data, bytes);
    }
    rounds().drained(i);
    return Status::good();
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
  std::optional<Rounds> rounds_;  // once the sizes are known
  Source sources_[max_team];
};

}  // namespace

Status ship_staged(Team& team, const Request& request, Route route) {
  return StagedShipment(team, request, route).run();
}

}  // namespace stretto::collective
