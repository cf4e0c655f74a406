// Allreduce, last-ticket combining: every rank leaves its vector in its slot and takes a ticket; whoever draws the last one reads
// all slots, combines them in rank order and publishes the result in one place. One rank does the arithmetic, and it never waits:
// where ranks outnumber cores, the others can sleep until the result is there.
//
// Nobody leaves before the last ticket is drawn, so a ticket tells its call, and the place of the result is free again.
#include <string.h>

#include "collective/algorithms.hpp"
#include "collective/patterns/last_ticket.hpp"

namespace stretto::collective {

Status allreduce_ticket(Team& team, const Request& request) {
  LastTicket meeting(team);
  void* deposit;
  STRETTO_TRY(meeting.claim(&deposit));
  memcpy(deposit, request.input, request.bytes());
  if (!meeting.post(request)) return meeting.result(request);
  const void** inputs = team.pointers();
  Status alike;
  STRETTO_TRY(meeting.read_all(request, inputs, &alike));
  void* result = meeting.place();
  if (alike.ok()) combine(request, inputs, team.size, result, request.count);
  meeting.publish(alike.ok() ? note_of(request) : 0);
  if (!alike.ok()) return alike;
  memcpy(request.output, result, request.bytes());
  return Status::good();
}

}  // namespace stretto::collective
