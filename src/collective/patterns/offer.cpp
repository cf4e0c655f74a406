#include "collective/patterns/offer.hpp"

#include <new>

#include "collective/patterns/joint.hpp"
#include "collective/patterns/rounds.hpp"

namespace stretto::collective {
namespace {

Offer& offer_in(const void* payload) {
  return *reinterpret_cast<Offer*>(static_cast<char*>(const_cast<void*>(payload)) + Offer::at);
}

uint64_t steps_of(size_t bytes) {
  return (bytes + joint_step(bytes) - 1) / joint_step(bytes);
}

// Of the giver. It stays about as long as it would take to stage the piece. What the cells cannot hold is waited for: its giver
// could not leave anyway.
Status await_answer(Team& team, int root, size_t bytes, Offer& offer) {
  if (team.direct == nullptr || team.waiter.is_beside()) return Status::good();
  if (bytes > Rounds::most_held(team) / 2) return team.waiter.until(offer.answer, Offer::accepted, root);
  const auto answered = [&] { return offer.answer.value.load(std::memory_order_acquire) != Offer::open; };
  constexpr uint64_t bytes_per_ns = 8;
  const uint64_t moment_ns = std::max<uint64_t>(Waiter::usual_moment_ns, bytes / bytes_per_ns);
  if (team.arrivals.likely_last() != root) team.waiter.linger(answered, moment_ns);
  return Status::good();
}

}  // namespace

void make_offer(Team& team, const Piece& piece, void* payload) {
  Offer& offer = *new (&offer_in(payload)) Offer;
  offer.posted_ns = now_ns();
  if (team.direct == nullptr) return;
  offer.given = team.direct->window(piece.data);
  offer.reach = team.direct->reach();
}

Status give_as_offered(Team& team, int root, const Piece& piece, void* payload, bool* served) {
  *served = false;
  Offer& offer = offer_in(payload);
  STRETTO_TRY(await_answer(team, root, piece.bytes, offer));
  uint64_t answer = Offer::open;
  if (offer.answer.value.compare_exchange_strong(answer, Offer::withdrawn) || answer == Offer::withdrawn) return Status::good();
  const bool can = offer.reach.gives(offer.room), root_can = offer.root_reach.reads(offer.given);
  if (!can && !root_can) return Status::good();

  const size_t bytes = std::min<size_t>(piece.bytes, offer.room_bytes), step = joint_step(bytes);
  uint64_t i, taken = 0;
  bool refused = false;
  if (can) STRETTO_TRY(expect_alive_since(team, root, offer.answered_ns));
  while (can && !refused && take_step(std::atomic_ref(offer.steps), false, steps_of(bytes), &i)) {
    const char* from = static_cast<const char*>(piece.data) + i * step;
    refused = !team.direct->give(root, offer.room, i * step, from, std::min(step, bytes - i * step)).ok();
    ++taken;
  }
  if (refused) team.direct.reset();  // never asked again
  team.waiter.announce(offer.by_giver, refused ? Offer::refused : taken);
  const uint64_t by_root = root_can ? steps_of(bytes) - taken : 0;
  const Status waited = team.waiter.until(offer.by_root, by_root, root);
  if (!waited.ok()) {  // it may still be reading
    team.waiter.stay([&] { return reached(offer.by_root.value.load(std::memory_order_acquire), by_root); });
    return waited;
  }
  *served = !refused && offer.by_root.value.load(std::memory_order_acquire) < Offer::refused;
  return Status::good();
}

TakenOffer::TakenOffer(Team& team, int giver, const void* payload, size_t bytes, const Piece& room, kernels::Store store)
    : team_(team),
      giver_(giver),
      offer_(offer_in(payload)),
      room_(room),
      store_(store),
      bytes_(std::min(bytes, room.bytes)),
      steps_(steps_of(bytes_)) {}

Status TakenOffer::accept(bool* accepted) {
  if (team_.direct != nullptr) {
    offer_.room = team_.direct->window(room_.data);
    offer_.root_reach = team_.direct->reach();
  }
  offer_.room_bytes = room_.bytes;
  offer_.answered_ns = now_ns();
  uint64_t answer = Offer::open;
  *accepted = offer_.answer.value.compare_exchange_strong(answer, Offer::accepted);
  if (!*accepted) return Status::good();
  team_.waiter.notify(offer_.answer);
  taking_ = offer_.root_reach.reads(offer_.given);
  giver_can_ = offer_.reach.gives(offer_.room);
  *accepted = taking_ || giver_can_;
  return taking_ ? expect_alive_since(team_, giver_, offer_.posted_ns) : Status::good();
}

void TakenOffer::decline(const void* payload) {
  uint64_t answer = Offer::open;
  offer_in(payload).answer.value.compare_exchange_strong(answer, Offer::withdrawn);
}

// Takes all steps that are left; the giver hears that they are not copied.
void TakenOffer::abandon() {
  const std::atomic_ref taken(offer_.steps);
  uint64_t i;
  while (take_step(taken, true, steps_, &i)) ++taken_;
  team_.waiter.announce(offer_.by_root, Offer::refused);
  if (giver_can_) team_.waiter.stay([&] { return reached(signal().value.load(std::memory_order_acquire), by_giver()); });
}

bool TakenOffer::step() {
  if (!taking_) return !is_ready();
  const size_t step = joint_step(bytes_);
  uint64_t i;
  if (!take_step(std::atomic_ref(offer_.steps), true, steps_, &i)) {
    taking_ = false;
    return !is_ready();
  }
  ++taken_;
  char* to = static_cast<char*>(room_.data) + i * step;
  refused_ = team_.direct == nullptr ||  // by another offer's
             !read_part(team_, giver_, offer_.given, i * step, std::min(step, bytes_ - i * step), to, store_);
  if (refused_) taking_ = false, team_.direct.reset();
  team_.waiter.announce(offer_.by_root, refused_ ? Offer::refused : taken_);
  return true;
}

}  // namespace stretto::collective
