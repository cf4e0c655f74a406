#include <memory>

#include "communicators.hpp"
#include "compare.hpp"
#include "sections.hpp"

namespace differential {
namespace {

// A ring of messages posted before and completed after the collectives in between; big ones need a rendezvous.
class Ring {
 public:
  explicit Ring(Context& context)
      : context_(context), bytes_(size_t(1) << context.agreed.between(3, 20)), sent_(bytes_), received_(bytes_) {
    int right = (context.rank() + 1) % context.size(), left = (context.rank() + context.size() - 1) % context.size();
    Random(uint64_t(context.rank())).fill(sent_.data(), bytes_);
    MPI_Irecv(received_.data(), int(bytes_), MPI_BYTE, left, 3, context.comm, &requests_[0]);
    MPI_Isend(sent_.data(), int(bytes_), MPI_BYTE, right, 3, context.comm, &requests_[1]);
  }
  void complete() {
    MPI_Waitall(2, requests_, MPI_STATUSES_IGNORE);
    std::vector<unsigned char> expected(bytes_);
    Random(uint64_t((context_.rank() + context_.size() - 1) % context_.size())).fill(expected.data(), bytes_);
    count_comparison();
    if (received_ != expected) report_failure(context_, "a pending message arrived wrong");
  }

 private:
  Context& context_;
  size_t bytes_;
  std::vector<unsigned char> sent_, received_;
  MPI_Request requests_[2];
};

void nonblocking_collectives(Context& context) {
  long one = context.rank(), sum = -1;
  MPI_Request requests[2];
  MPI_Ibarrier(context.comm, &requests[0]);
  MPI_Iallreduce(&one, &sum, 1, MPI_LONG, MPI_SUM, context.comm, &requests[1]);
  compare_any(context);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  count_comparison();
  if (sum != long(context.size()) * (context.size() - 1) / 2) report_failure(context, "a pending Iallreduce ended wrong");
}

void one_sided(Context& context) {
  long* memory = nullptr;
  MPI_Win window;
  MPI_Win_allocate(2 * sizeof(long), sizeof(long), MPI_INFO_NULL, context.comm, &memory, &window);
  memory[0] = memory[1] = -1;
  int right = (context.rank() + 1) % context.size(), left = (context.rank() + context.size() - 1) % context.size();
  long value = 100 + context.rank();
  MPI_Win_fence(0, window);
  MPI_Put(&value, 1, MPI_LONG, right, 0, 1, MPI_LONG, window);
  compare_any(context);
  MPI_Win_fence(0, window);
  count_comparison();
  if (memory[0] != 100 + left) report_failure(context, "a pending Put ended wrong");
  MPI_Win_free(&window);
}

// Rank 0 takes a big message before it enters: it arrives only if the sender, already waiting in the collective, lets MPI
// make progress.
void needs_progress(Context& context) {
  constexpr int count = 1 << 20;
  std::vector<char> data(count, char(context.rank()));
  MPI_Request request = MPI_REQUEST_NULL;
  int last = context.size() - 1;
  if (context.rank() == last) MPI_Isend(data.data(), count, MPI_BYTE, 0, 9, context.comm, &request);
  if (context.rank() == 0) MPI_Recv(data.data(), count, MPI_BYTE, last, 9, context.comm, MPI_STATUS_IGNORE);
  long one = 1, sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_LONG, MPI_SUM, context.comm);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  count_comparison();
  if (sum != context.size() || data[count - 1] != char(context.rank() == 0 ? last : context.rank()))
    report_failure(context, "a message that needs its sender's progress");
}

}  // namespace

void pending_traffic(const Options& options) {
  Random agreed(mix(options.seed, 2));
  std::vector<Named> made = make_communicators(agreed);
  for (long step = 0; step < std::max(4L, options.steps / 10); ++step) {
    const Named& chosen = made[agreed.below(made.size())];
    uint64_t kind = agreed.below(4);
    if (chosen.comm == MPI_COMM_NULL) continue;
    Context context(chosen.comm, chosen.name + " with traffic", mix(options.seed, 2), step,
                    {options.largest / 4, options.derived, options.same_bits, options.all, options.mixed, options.late_us});
    if (context.size() < 2) continue;
    Ring ring(context);
    if (kind == 0) nonblocking_collectives(context);
    if (kind == 1) one_sided(context);
    if (kind == 2) needs_progress(context);
    compare_any(context);
    ring.complete();
  }
  free_all(made);
}

}  // namespace differential
