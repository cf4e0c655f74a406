#include "collective/patterns/handover.hpp"

#include <algorithm>
#include <atomic>

#include "collective/algorithms.hpp"
#include "collective/patterns/meeting.hpp"
#include "collective/patterns/parcels.hpp"
#include "collective/patterns/rounds.hpp"
#include "collective/patterns/staged.hpp"

namespace stretto::collective {
namespace {

// Less is faster staged; lines that travel between caches are worth less.
size_t worth_bytes(const Team& team) {
  return team.domains.count() > 1 ? 8 << 10 : 20 << 10;
}

constexpr size_t page = 4 << 10;
constexpr uint64_t long_ago_ns = 100'000'000;  // within this no process number comes to be another's

size_t pages_of(size_t bytes) {
  return (bytes + page - 1) / page;
}

// How a piece is handed over: who copies, or that it stands in the note. 0: staged.
constexpr uint32_t giver_copies = 1, taker_copies = 2, stands_here = 4;

// Pages that have been taken to copy: by the taker from the front, by the giver from the back.
struct Shares {
  uint64_t word = 0;
  size_t front() const { return uint32_t(word); }
  size_t back() const { return word >> 32; }
  Shares more_front(size_t pages) const { return {word + pages}; }
  Shares more_back(size_t pages) const { return {word + (uint64_t(pages) << 32)}; }

  // How many to take next of so many bytes. At once nearly half, as entering the kernel costs; fewer towards the end, so that
  // both end at about the same time.
  size_t next(size_t bytes) const {
    constexpr size_t least = 2;
    const size_t all = pages_of(bytes), left = all - front() - back();
    return std::min(left, std::max(least, std::min((3 * all + 7) / 8, left / 2)));
  }
};

// What each takes at first, without a word: of few pages. Of many nobody knows who will come to it first.
Shares first_shares(uint32_t how, size_t bytes) {
  constexpr size_t few = 8;
  Shares taken;
  if (pages_of(bytes) > few) return taken;
  if ((how & giver_copies) != 0) taken = taken.more_back(taken.next(bytes));
  if ((how & taker_copies) != 0) taken = taken.more_front(taken.next(bytes));
  return taken;
}

// How many pages a rank takes next. *taken: when it last looked, and then with these.
size_t take_next(std::atomic_ref<uint64_t> shares, bool from_back, size_t bytes, Shares* taken) {
  size_t pages = taken->next(bytes);
  if (pages == 0) return 0;  // nor can there be any by now
  Shares seen{shares.load(std::memory_order_relaxed)};
  do {
    pages = seen.next(bytes);
    *taken = from_back ? seen.more_back(pages) : seen.more_front(pages);
  } while (!shares.compare_exchange_weak(seen.word, taken->word, std::memory_order_relaxed));
  return pages;
}

}  // namespace

// What both post.
struct Handover::Note {
  static constexpr size_t head = 32, most_along = slot_payload - head;
  uint64_t label;            // with the bytes of the piece, or of the room for it
  transport::Window window;  // 0: cannot be reached; of no meaning where the piece stands here
  transport::Reach reach;    // likewise
  uint32_t how;              // of the giver's
  uint64_t posted_ns;        // of the taker's
  union {
    char along[most_along];  // of the giver's: the piece, where it stands here
    uint64_t lines[most_along / sizeof(uint64_t)];
  };
  // Of the giver's, in a line of its own: what each has taken to copy.
  std::atomic_ref<uint64_t> shares() {
    constexpr size_t at = cache_line - offsetof(Slot, payload) - head;
    return std::atomic_ref<uint64_t>(lines[at / sizeof(uint64_t)]);
  }
};

bool Handover::may_copy() const {
  return own_.bytes >= worth_bytes(team_) && team_.direct != nullptr;
}

Status Handover::begin() {
  static_assert(offsetof(Note, along) == Note::head && sizeof(Note) == slot_payload);
  if (!gives_) return comes_along() ? read_note() : write_note(0);
  if (may_copy()) consider();
  if (!copies_) return Status::good();
  constexpr uint32_t looks = 100;  // it may be about to
  return team_.waiter.glance(exchange_.ready(other_), exchange_.number(), looks) ? read_note() : Status::good();
}

// Of the taker: a piece that is small enough stands in what the giver says, who then does not look for this rank.
bool Handover::comes_along() {
  constexpr uint32_t looks = 10;  // it is likely to be on its way
  return own_.bytes <= Note::most_along && team_.waiter.glance(exchange_.ready(other_), exchange_.number(), looks);
}

// Operations beside others cannot be timed.
void Handover::consider() {
  choice_ = team_.handovers.choose(own_.bytes, !team_.waiter.is_beside(), copying);
  copies_ = choice_.timed || choice_.way == copying;
}

bool Handover::has_time() const {
  return !gives_ || (copies_ && theirs_ == nullptr);
}

Status Handover::write_note(uint32_t how) {
  void* payload;
  STRETTO_TRY(exchange_.claim(&payload));
  mine_ = static_cast<Note*>(payload);
  mine_->label = label_of(kind_, Form::direct, own_.bytes);
  mine_->how = how;
  if (how != stands_here) {
    mine_->window = team_.direct && own_.bytes > 0 ? team_.direct->window(own_.data) : transport::Window{};
    mine_->reach = team_.direct ? team_.direct->reach() : transport::Reach();
  }
  if (may_copy()) mine_->posted_ns = now_ns();
  const size_t along = how == stands_here ? own_.bytes : 0;
  if (along > 0) __builtin_memcpy(mine_->along, own_.data, along);
  if ((how & (giver_copies | taker_copies)) != 0)
    mine_->shares().store(first_shares(how, bytes()).word, std::memory_order_relaxed);
  posted_ = Note::head + along;
  exchange_.post(posted_);
  return Status::good();
}

Status Handover::read_note() {
  const void* payload;
  STRETTO_TRY(exchange_.read(other_, &payload));
  theirs_ = static_cast<Note*>(const_cast<void*>(payload));
  their_bytes_ = bytes_of(theirs_->label);
  return compare_labels(label_of(kind_, Form::direct, 0), theirs_->label, other_);
}

Status Handover::agree() {
  if (!gives_) return theirs_ != nullptr ? Status::good() : read_note();
  STRETTO_TRY(meet());
  const uint32_t how = choose();
  const bool writes = (how & giver_copies) != 0;
  if (writes && now_ns() - theirs_->posted_ns > long_ago_ns) STRETTO_TRY(team_.waiter.expect_alive(other_));
  return write_note(how);
}

// Of the giver: waits for the taker no longer than is worth it.
Status Handover::meet() {
  if (theirs_ != nullptr || !copies_) return Status::good();
  if (own_.bytes > Rounds::most_held(team_)) return read_note();
  const auto is_there = [this] { return exchange_.posted(other_); };
  if (team_.arrivals.likely_last() == other_ ? is_there() : team_.waiter.linger(is_there)) return read_note();
  return Status::good();
}

// Of the giver.
uint32_t Handover::choose() {
  if (own_.bytes > 0 && own_.bytes <= Note::most_along) return stands_here;
  const uint32_t how = may_copy() && copies_ ? ways_to_copy() : 0;
  if (choice_.timed && how == 0) team_.handovers.miss(own_.bytes);
  if (how == 0) return 0;
  if (choice_.begins) Rounds::warm_up(team_, choice_.way == staging);
  if (choice_.timed) began_ = ticks();
  return choice_.way == copying ? how : 0;
}

// Of the giver: whoever of the two can reach the other's memory, if it is there and that pays.
uint32_t Handover::ways_to_copy() const {
  if (theirs_ == nullptr || bytes() < worth_bytes(team_)) return 0;
  const transport::Window here = team_.direct->window(own_.data);
  return (team_.direct->reach().gives(theirs_->window) ? giver_copies : 0) | (theirs_->reach.reads(here) ? taker_copies : 0);
}

Status hand_over(Team& team, Kind kind, int giver, const Piece& own, size_t* given) {
  Handover handover(team, kind, giver, own, team.store_of(own.bytes));
  STRETTO_TRY(handover.begin());
  STRETTO_TRY(handover.agree());
  STRETTO_TRY(handover.move());
  STRETTO_TRY(handover.note_time());
  *given = handover.given_bytes();
  const bool fits = own.data == nullptr || *given <= own.bytes;
  return fits ? Status::good() : truncated("a message is longer than the room for it", giver);
}

bool Handover::is_copied() const {
  return ((gives_ ? mine_ : theirs_)->how & (giver_copies | taker_copies)) != 0;
}

Status Handover::move() {
  const uint32_t how = (gives_ ? mine_ : theirs_)->how;
  const bool copies = is_copied();
  if (copies && !gives_) Rounds::warm_up(team_);  // the giver may want to try what it takes otherwise
  if (copies) return copy_together();
  if (how == stands_here && !gives_ && bytes() > 0) kernels::copy(own_.data, theirs_->along, bytes());
  const Status staged = how == stands_here ? Status::good() : stage();
  exchange_.finish();
  if (posted_ > 0) exchange_.fetch_next(posted_);
  return staged;
}

// What is staged has not been moved before the taker has it.
Status Handover::note_time() {
  if (began_ == 0) return Status::good();
  if (choice_.way == staging) STRETTO_TRY(team_.all_drained(team_.rounds));
  team_.handovers.note(own_.bytes, choice_.way, ticks() - began_);
  return Status::good();
}

Status Handover::copy_together() {
  const uint32_t served = copy_shares();
  uint32_t all_served[2];
  STRETTO_TRY(exchange_all(team_, served, all_served));  // both may leave
  if (!served) team_.direct.reset();                     // refused once: never asked again
  return all_served[0] && all_served[1] ? Status::good() : stage();
}

Status Handover::stage() {
  Request piece;
  piece.kind = Kind::bcast;
  piece.count = given_bytes();
  piece.root = giver_;
  piece.input = own_.data;
  piece.output = given_bytes() <= own_.bytes ? own_.data : nullptr;
  return broadcast_staged(team_, piece, store_);
}

bool Handover::copy_shares() {
  Note& note = gives_ ? *mine_ : *theirs_;
  if ((note.how & (gives_ ? giver_copies : taker_copies)) == 0) return true;
  const size_t all = pages_of(bytes());
  Shares taken = first_shares(note.how, bytes());
  for (size_t pages = gives_ ? taken.back() : taken.front();; pages = 0) {
    if (pages == 0 && (pages = take_next(note.shares(), gives_, bytes(), &taken)) == 0) return true;
    const size_t begin = gives_ ? all - taken.back() : taken.front() - pages;
    const size_t end = std::min((begin + pages) * page, bytes());
    if (!copy(begin * page, end - begin * page)) return false;
  }
}

bool Handover::copy(size_t at, size_t bytes) {
  char* own = static_cast<char*>(own_.data) + at;
  if (gives_) return team_.direct->give(other_, theirs_->window, at, own, bytes).ok();
  const void* data;
  if (!team_.direct->get(other_, theirs_->window, {0, 0}, at, bytes, own, &data).ok()) return false;
  if (data != own) kernels::copy(own, data, bytes, team_.store_of(2 * own_.bytes));
  return true;
}

}  // namespace stretto::collective
