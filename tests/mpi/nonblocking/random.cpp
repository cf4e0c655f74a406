// Random nonblocking collectives on several communicators, many at once, completed in every way and in any order, among blocking
// collectives and messages; compared with what PMPI's blocking calls give for the same inputs.
#include <memory>
#include <thread>

#include "calls.hpp"

namespace {

struct Operation {
  int number, which;
  Collective call;
  MPI_Request request = MPI_REQUEST_NULL;
};

class Jobs {
 public:
  Jobs(MPI_Comm comm, uint64_t seed, World& result) : common_(seed), own_(seed), result_(result) {
    MPI_Comm_rank(comm, &rank_);
    MPI_Comm_size(comm, &size_);
    own_ = Random(seed * 1000 + uint64_t(rank_));
    comms_.resize(4);
    MPI_Comm_dup(comm, &comms_[0]);
    MPI_Comm_split(comm, 0, -rank_, &comms_[1]);  // ranks in reverse order
    const int dims[1] = {size_}, periods[1] = {0};
    MPI_Cart_create(comm, 1, dims, periods, 0, &comms_[2]);  // not prepared: the first ones are left to MPI
    MPI_Comm_dup(comm, &comms_[3]);
    std::vector<int> in(10'000, 1), sum(in.size());
    for (size_t i : {0, 1})
      MPI_Allreduce(in.data(), sum.data(), int(in.size()), MPI_INT, MPI_SUM, comms_[i]);  // now with staging cells
    for (MPI_Comm& one : comms_) PMPI_Comm_dup(one, &shadows_.emplace_back());
  }
  ~Jobs() {
    complete_all();
    for (MPI_Comm& comm : comms_) MPI_Comm_free(&comm);
    for (MPI_Comm& shadow : shadows_) PMPI_Comm_free(&shadow);
  }

  void step(int number) {
    const int which = common_.below(int(comms_.size()));
    const int choice = common_.below(12);
    if (choice == 0) return blocking(comms_[size_t(which)]);
    if (choice == 1) return message(number);
    begin(number, comms_[size_t(which)], which);
    if (own_.below(3) == 0) complete_some();
    if (jobs_.size() > 24) complete_all();
  }

  void complete_all() {
    while (pending()) {
      if (own_.below(2) == 0) {
        std::vector<MPI_Request> requests;
        for (auto& job : jobs_) requests.push_back(job->request);
        MPI_Waitall(int(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
        for (size_t i = 0; i < jobs_.size(); ++i) jobs_[i]->request = requests[i];
      } else {
        complete_some();
      }
    }
    for (auto& job : jobs_) job->call.compare(shadows_[size_t(job->which)], result_, job->number);
    jobs_.clear();
    MPI_Waitall(int(messages_.size()), messages_.data(), MPI_STATUSES_IGNORE);
    messages_.clear();
    boxes_.clear();
  }

 private:
  bool pending() const {
    for (const auto& job : jobs_)
      if (job->request != MPI_REQUEST_NULL) return true;
    return false;
  }

  void begin(int number, MPI_Comm comm, int which) {
    // Ranks differ in whether they are in place, which Open MPI's own forms do not always stand: not on the communicator that is
    // left to it.
    jobs_.push_back(std::make_unique<Operation>(Operation{number, which, {comm, common_, own_, which == 2, strided_.type()}}));
    jobs_.back()->call.start(comm, &jobs_.back()->request);
  }

  void blocking(MPI_Comm comm) {
    const int64_t one = common_.below(1000);
    int64_t sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_INT64_T, MPI_SUM, comm);
    result_.check(sum == one * size_, "Allreduce among nonblocking ones");
    if (common_.below(3) == 0) MPI_Barrier(comm);
  }

  // A message to the next rank; its requests are completed along with the others.
  void message(int number) {
    if (size_ < 2) return;
    boxes_.push_back(std::make_unique<int[]>(2));
    int* box = boxes_.back().get();
    box[0] = number;
    messages_.resize(messages_.size() + 2);
    MPI_Isend(&box[0], 1, MPI_INT, (rank_ + 1) % size_, number, comms_[3], &messages_[messages_.size() - 2]);
    MPI_Irecv(&box[1], 1, MPI_INT, (rank_ + size_ - 1) % size_, number, comms_[3], &messages_.back());
  }

  // Requests of collectives and of messages together.
  void complete_some() {
    std::vector<MPI_Request*> where;
    for (auto& job : jobs_) where.push_back(&job->request);
    for (MPI_Request& request : messages_) where.push_back(&request);
    std::vector<MPI_Request> requests;
    for (MPI_Request* request : where) requests.push_back(*request);
    const int n = int(requests.size());
    if (n == 0) return;
    std::vector<int> indices(static_cast<size_t>(n));
    std::vector<MPI_Status> statuses(static_cast<size_t>(n));
    int flag = 0, index = 0, count = 0;
    const bool many = own_.below(2) == 0;
    switch (own_.below(8)) {
      case 0:
        MPI_Wait(&requests[size_t(own_.below(n))], MPI_STATUS_IGNORE);
        break;
      case 1:
        for (int i = n - 1; i >= 0; i -= 2) MPI_Test(&requests[size_t(i)], &flag, &statuses[0]);
        break;
      case 2:
        MPI_Waitany(n, requests.data(), &index, &statuses[0]);
        break;
      case 3:
        MPI_Waitsome(n, requests.data(), &count, indices.data(), many ? statuses.data() : MPI_STATUSES_IGNORE);
        break;
      case 4:
        MPI_Testsome(n, requests.data(), &count, indices.data(), statuses.data());
        break;
      case 5:
        MPI_Testall(n, requests.data(), &flag, many ? statuses.data() : MPI_STATUSES_IGNORE);
        break;
      case 6:
        MPI_Testany(n, requests.data(), &index, &flag, MPI_STATUS_IGNORE);
        break;
      default:
        if (requests[0] == MPI_REQUEST_NULL) break;
        MPI_Request_get_status(requests[0], &flag, MPI_STATUS_IGNORE);
        if (flag) MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < n; ++i) *where[size_t(i)] = requests[size_t(i)];
  }

  Random common_, own_;
  World& result_;
  int rank_ = 0, size_ = 1;
  Strided strided_;
  std::vector<MPI_Comm> comms_, shadows_;
  std::vector<std::unique_ptr<Operation>> jobs_;
  std::vector<MPI_Request> messages_;
  std::vector<std::unique_ptr<int[]>> boxes_;
};

}  // namespace

void random_operations(MPI_Comm comm, uint64_t seed, int steps, World& result) {
  Jobs jobs(comm, seed, result);
  for (int i = 0; i < steps; ++i) jobs.step(i);
}

void random_operations_in_threads(int count, uint64_t seed, int steps, World& result) {
#ifdef OPEN_MPI
  constexpr bool make_at_once = false;  // Open MPI 5 now and then hangs where threads duplicate different communicators at once
#else
  constexpr bool make_at_once = true;
#endif
  const auto n = size_t(count);
  std::vector<MPI_Comm> comms(n);
  World none = result;
  none.checks = none.failures = 0;
  std::vector<World> results(n, none);
  std::vector<std::unique_ptr<Jobs>> jobs(n);
  const auto make = [&](size_t i) { jobs[i] = std::make_unique<Jobs>(comms[i], seed + 17 * i, results[i]); };
  for (MPI_Comm& comm : comms) PMPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (size_t i = 0; i < n && !make_at_once; ++i) make(i);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < n; ++i)
    threads.emplace_back([&, i] {
      if (make_at_once) make(i);
      for (int step = 0; step < steps; ++step) jobs[i]->step(step);
      jobs[i]->complete_all();
      if (make_at_once) jobs[i].reset();
    });
  for (auto& thread : threads) thread.join();
  jobs.clear();
  for (MPI_Comm& comm : comms) PMPI_Comm_free(&comm);
  for (const World& one : results) {
    result.checks += one.checks;
    result.failures += one.failures;
  }
}
