#include <string.h>

#include "collective/patterns/comers.hpp"
#include "collective/patterns/meeting.hpp"
#include "collective/patterns/parcels.hpp"

namespace stretto::collective {
namespace {

void deposit(char* to, Piece piece) {
  if (piece.bytes > 0) memcpy(to, piece.data, piece.bytes);
}

// Which of the pieces that `giver` posts is rank r's: all but its own, beginning with that for the rank after it.
size_t place_of(int r, int giver, int ranks) {
  return size_t(r > giver ? r - giver : r - giver + ranks) - 1;
}

// The label, then the piece for all, or those for each at equal distances. *posted: the bytes.
template <typename Event>
Status post(Event& event, const Team& team, const Request& request, Route route, size_t* posted) {
  void* payload;
  STRETTO_TRY(event.claim(&payload));
  char* to = static_cast<char*>(payload) + sizeof(uint64_t);
  const size_t piece = request.gives->bytes;  // where each is given another, all are equally long
  const int pieces = route.each ? team.size - 1 : 1;
  int r = route.each ? team.rank : -1;
  for (int k = 0; k < pieces; ++k) {
    if (++r == team.size) r = 0;
    deposit(to + size_t(k) * piece, request.gives[r]);
  }
  uint64_t label = label_of(request.kind, Form::flat, piece);
  memcpy(payload, &label, sizeof label);
  *posted = sizeof label + piece * size_t(pieces);
  event.post(*posted, note_of_kind(request.kind));
  return Status::good();
}

// From rank r, which has posted.
template <typename Event>
Status receive(Event& event, const Team& team, Parcels& parcels, const Request& request, Route route, int r) {
  const void* payload;
  uint64_t label;
  STRETTO_TRY(event.read(r, &payload));
  if (event.note(r) != note_of_kind(request.kind)) return calls_differ(r);  // the label may be of an earlier call
  memcpy(&label, payload, sizeof label);
  STRETTO_TRY(compare_labels(label_of(request.kind, Form::flat, 0), label, r));
  size_t bytes = bytes_of(label), at = route.each ? place_of(team.rank, r, team.size) * bytes : 0;
  parcels.receive(r, 0, static_cast<const char*>(payload) + sizeof label + at, bytes);
  return Status::good();
}

// From all others, as they come.
template <typename Event>
[[gnu::noinline]] Status receive_all(Event& event, Team& team, Parcels& parcels, const Request& request, Route route) {
  Comers comers(team);
  for (int k = 1; k < team.size; ++k) comers.expect((team.rank + k) % team.size);
  return comers.serve_all([&](int r) { return event.posted(r); },
                          [&](int r) { return receive(event, team, parcels, request, route, r); },
                          [&](int r) { return Awaited{&event.ready(r), event.number()}; });
}

// In an exchange, or where all give and all get, in a meeting.
template <typename Event>
Status ship(Event& event, Team& team, const Request& request, Route route) {
  Parcels parcels(team, request, route, kernels::Store::cached);
  size_t posted = 0;
  if (parcels.gives_any()) STRETTO_TRY(post(event, team, request, route, &posted));
  parcels.keep_own();
  if (parcels.gets_any()) {
    const int only = team.size == 2 ? 1 - team.rank : route.ends == Ends::from_root ? request.root : -1;
    STRETTO_TRY(only < 0 ? receive_all(event, team, parcels, request, route)
                         : receive(event, team, parcels, request, route, only));
  }
  event.finish();
  if (posted > 0) event.fetch_next(posted);
  return parcels.outcome();
}

}  // namespace

Status ship_flat(Team& team, const Request& request, Route route) {
  if (route.ends == Ends::all) {
    Meeting meeting(team);
    return ship(meeting, team, request, route);
  }
  Exchange exchange(team);
  return ship(exchange, team, request, route);
}

}  // namespace stretto::collective
