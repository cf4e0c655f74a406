#include <string.h>

#include "collective/patterns/meeting.hpp"
#include "collective/patterns/parcels.hpp"

namespace stretto::collective {
namespace {

using transport::Reach;
using transport::Window;

struct Entry {
  Window window;  // 0: cannot be reached
  uint64_t bytes;
};

// What a rank posts: what it gives (to all, or to each), or, of the root to whom all give, the room for what each gives.
struct Facts {
  uint64_t label;  // with the number of entries
  Reach reach;
  uint32_t reserved;
  Entry entries[(slot_payload - 16) / sizeof(Entry)];
};
static_assert(sizeof(Facts) <= slot_payload);
constexpr int most_entries = int(sizeof(Facts::entries) / sizeof(Entry));

class DirectShipment {
 public:
  DirectShipment(Team& team, const Request& request, Route route)
      : team_(team), request_(request), route_(route), parcels_(team, request, route) {}

  // Also the ranks that have nothing to show must be able to reckon with it.
  static bool fits(const Team& team, Route route) {
    return team.size <= most_entries || (!route.each && route.ends != Ends::to_root);
  }

  Status run() {
    STRETTO_TRY(exchange_facts());
    if (!pushes_ && !pulls_) return ship_staged(team_, request_, route_);
    parcels_.keep_own();
    uint32_t served = pushes_ ? push() : pull(), all_served[max_team];
    STRETTO_TRY(exchange_all(team_, served, all_served));  // all may leave
    if (!served) team_.direct.reset();                     // refused once: never asked again
    if (std::count(all_served, all_served + team_.size, 0u) > 0) return ship_staged(team_, request_, route_);
    return parcels_.outcome();
  }

 private:
  bool is_target() const { return route_.ends == Ends::to_root && team_.rank == request_.root; }

  Piece shown(int i) const {
    if (is_target()) return parcels_.room(i);
    return route_.each ? parcels_.given(i) : *request_.gives;
  }

  void show(Facts* facts) const {
    int entries = is_target() || (route_.each && parcels_.gives_any()) ? team_.size : parcels_.gives_any();
    bool hidden = team_.direct == nullptr || parcels_.overwrites();
    facts->label = label_of(request_.kind, Form::direct, uint64_t(entries));
    facts->reach = team_.direct ? team_.direct->reach() : Reach();
    for (int i = 0; i < entries; ++i) {
      Piece piece = shown(i);
      facts->entries[i] = {hidden || piece.bytes == 0 ? Window{} : team_.direct->window(piece.data), piece.bytes};
    }
  }

  // Everybody reads everything, and so all decide alike.
  Status exchange_facts() {
    Exchange exchange(team_);
    void* payload;
    STRETTO_TRY(exchange.claim(&payload));
    auto* own = static_cast<Facts*>(payload);
    show(own);
    exchange.post(sizeof(Facts));
    Reach common = own->reach;
    for (int k = 1; k <= team_.size; ++k) {
      int r = (team_.rank + k) % team_.size;
      const void* theirs;
      STRETTO_TRY(exchange.read(r, &theirs));
      facts_[r] = static_cast<const Facts*>(theirs);
      STRETTO_TRY(compare_labels(own->label, facts_[r]->label, r));
      common = common & facts_[r]->reach;
    }
    decide(common);
    return Status::good();
  }

  void decide(Reach common) {
    bool writable = route_.ends == Ends::to_root, readable = true, mapped = team_.copies_pay;
    for (int r = 0; r < team_.size; ++r) {
      bool target = route_.ends == Ends::to_root && r == request_.root;
      for (int i = 0; i < int(bytes_of(facts_[r]->label)); ++i) {
        const Entry& entry = facts_[r]->entries[i];
        if (entry.bytes == 0) continue;
        mapped = mapped || common.writes(entry.window);
        (target ? writable : readable) &= target ? common.writes(entry.window) : common.reads(entry.window);
      }
    }
    pushes_ = mapped && writable;
    pulls_ = mapped && readable && !pushes_;
  }

  uint32_t push() {
    if (is_target()) {
      for (int r = 0; r < team_.size; ++r)
        if (r != team_.rank) parcels_.expect(r, facts_[r]->entries[0].bytes);
      return 1;
    }
    const Entry& room = facts_[request_.root]->entries[team_.rank];
    size_t bytes = std::min<size_t>(request_.gives->bytes, room.bytes);
    if (bytes == 0) return 1;
    void* there = team_.direct->place_at(request_.root, room.window, 0, bytes);
    if (there != nullptr) kernels::copy(there, request_.gives->data, bytes, team_.store_of(bytes * size_t(team_.size)));
    return there != nullptr;
  }

  uint32_t pull() {
    for (int k = 1; k < team_.size; ++k) {
      int r = (team_.rank + k) % team_.size;
      if (!parcels_.gets_from(r) || bytes_of(facts_[r]->label) == 0) continue;
      const Entry& entry = facts_[r]->entries[route_.each ? team_.rank : 0];
      Piece room = parcels_.room(r);
      size_t bytes = std::min<size_t>(entry.bytes, room.bytes);
      parcels_.expect(r, entry.bytes);
      if (bytes == 0) continue;
      const void* data;
      if (!team_.direct->get(r, entry.window, {0, 0}, 0, bytes, room.data, &data).ok()) return 0;
      parcels_.receive(r, 0, data, bytes);
    }
    return 1;
  }

  Team& team_;
  const Request& request_;
  const Route route_;
  Parcels parcels_;
  bool pushes_ = false, pulls_ = false;
  const Facts* facts_[max_team];  // in the slots, until the next exchange
};

}  // namespace

Status ship_direct(Team& team, const Request& request, Route route) {
  if (!DirectShipment::fits(team, route)) return ship_staged(team, request, route);
  return DirectShipment(team, request, route).run();
}

}  // namespace stretto::collective
