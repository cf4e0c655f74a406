// Persistent collectives: prepared once, started many times, on each rank in another order, completed in every way.
#include <algorithm>
#include <memory>

#include "calls.hpp"

namespace {

struct Prepared {
  Collective call;
  size_t which;
  MPI_Request request = MPI_REQUEST_NULL;
  bool active = false;
};

class Requests {
 public:
  Requests(uint64_t seed, World& result) : common_(seed), own_(seed * 1000 + uint64_t(world.rank)), result_(result) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comms_[0]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world.rank, &comms_[1]);
    for (int i = 0; i < 2; ++i) PMPI_Comm_dup(comms_[i], &shadows_[i]);
  }
  ~Requests() {
    for (auto& one : prepared_) MPI_Request_free(&one->request);
    for (auto& one : prepared_) result_.check(one->request == MPI_REQUEST_NULL, "a freed persistent request");
    for (MPI_Comm& comm : comms_) MPI_Comm_free(&comm);
    for (MPI_Comm& comm : shadows_) PMPI_Comm_free(&comm);
  }

  void prepare(int count) {
    while (count-- > 0) {
      const size_t which = size_t(common_.below(2));
      // Plain: what is left to MPI must be what all MPIs stand.
      prepared_.push_back(std::make_unique<Prepared>(Prepared{{comms_[which], common_, own_, true, strided_.type()}, which}));
      prepared_.back()->call.prepare(comms_[which], &prepared_.back()->request);
    }
  }

  // Some of them start, on each rank in its own order; a nonblocking one is among them.
  void round(int number) {
    std::vector<size_t> order;
    for (size_t i = 0; i < prepared_.size(); ++i)
      if (common_.below(4) != 0) order.push_back(i);
    for (size_t i : order) prepared_[i]->call.fill(own_);
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[size_t(own_.below(int(i)))]);
    start(order);
    const int64_t one = world.rank + number;
    int64_t sum = 0;
    MPI_Request among;
    MPI_Iallreduce(&one, &sum, 1, MPI_INT64_T, MPI_SUM, comms_[0], &among);
    while (any_active()) complete_some(among);
    MPI_Wait(&among, MPI_STATUS_IGNORE);
    const int64_t expected = int64_t(world.size) * (world.size - 1) / 2 + int64_t(number) * world.size;
    result_.check(sum == expected, "Iallreduce among persistent ones", number);
    std::sort(order.begin(), order.end());
    for (size_t i : order) prepared_[i]->call.compare(shadows_[prepared_[i]->which], result_, number);
  }

  // Inactive requests are complete, and none of several of them is.
  void check_inactive() {
    std::vector<MPI_Request> requests;
    for (const auto& one : prepared_) requests.push_back(one->request);
    const int n = int(requests.size());
    std::vector<int> indices(requests.size());
    int flag = 0, index = 0, count = 0;
    MPI_Waitany(n, requests.data(), &index, MPI_STATUS_IGNORE);
    MPI_Waitsome(n, requests.data(), &count, indices.data(), MPI_STATUSES_IGNORE);
    result_.check(index == MPI_UNDEFINED && count == MPI_UNDEFINED, "inactive requests are ignored");
    MPI_Testall(n, requests.data(), &flag, MPI_STATUSES_IGNORE);
    result_.check(flag != 0, "Testall of inactive requests");
    MPI_Waitall(n, requests.data(), MPI_STATUSES_IGNORE);
    for (size_t i = 0; i < prepared_.size(); ++i) {
      MPI_Request_get_status(requests[i], &flag, MPI_STATUS_IGNORE);
      result_.check(flag != 0 && requests[i] == prepared_[i]->request, "an inactive request stays what it is", long(i));
    }
  }

 private:
  bool any_active() const {
    return std::any_of(prepared_.begin(), prepared_.end(), [](const auto& one) { return one->active; });
  }

  void start(const std::vector<size_t>& order) {
    for (size_t i : order) prepared_[i]->active = true;
    if (own_.below(2) == 0) {
      for (size_t i : order) MPI_Start(&prepared_[i]->request);
      return;
    }
    std::vector<MPI_Request> requests;
    for (size_t i : order) requests.push_back(prepared_[i]->request);
    MPI_Startall(int(requests.size()), requests.data());
  }

  void done(int index) {
    if (index >= 0 && index < int(prepared_.size())) prepared_[size_t(index)]->active = false;
  }
  void all_done() {
    for (auto& one : prepared_) one->active = false;
  }

  // All of them, active or not, and behind them a nonblocking one.
  void complete_some(MPI_Request& among) {
    std::vector<MPI_Request> requests;
    for (const auto& one : prepared_) requests.push_back(one->request);
    requests.push_back(among);
    const int n = int(requests.size());
    std::vector<int> indices(requests.size());
    std::vector<MPI_Status> statuses(requests.size());
    int flag = 0, index = MPI_UNDEFINED, count = 0;
    const int single = own_.below(n - 1);
    switch (own_.below(8)) {
      case 0:
        MPI_Wait(&requests[size_t(single)], &statuses[0]);
        done(single);
        break;
      case 1:
        MPI_Test(&requests[size_t(single)], &flag, &statuses[0]);
        if (flag) done(single);
        break;
      case 2:
        MPI_Waitany(n, requests.data(), &index, MPI_STATUS_IGNORE);
        done(index);
        break;
      case 3:
        MPI_Testany(n, requests.data(), &index, &flag, &statuses[0]);
        if (flag) done(index);
        break;
      case 4:
        MPI_Waitsome(n, requests.data(), &count, indices.data(), statuses.data());
        for (int i = 0; i < count; ++i) done(indices[size_t(i)]);
        break;
      case 5:
        MPI_Testsome(n, requests.data(), &count, indices.data(), MPI_STATUSES_IGNORE);
        for (int i = 0; i < count; ++i) done(indices[size_t(i)]);
        break;
      case 6:
        MPI_Testall(n, requests.data(), &flag, statuses.data());
        if (flag) all_done();
        break;
      default:
        MPI_Waitall(n, requests.data(), own_.below(2) ? statuses.data() : MPI_STATUSES_IGNORE);
        all_done();
    }
    among = requests.back();
    for (size_t i = 0; i < prepared_.size(); ++i)
      result_.check(requests[i] == prepared_[i]->request, "a persistent request stays what it is", long(i));
  }

  Random common_, own_;
  World& result_;
  Strided strided_;
  MPI_Comm comms_[2], shadows_[2];
  std::vector<std::unique_ptr<Prepared>> prepared_;
};

// The program frees its datatype and its communicator before the first start.
void freed_arguments() {
  MPI_Comm comm;
  MPI_Datatype every_other;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Type_vector(2000, 1, 2, MPI_INT, &every_other);
  MPI_Type_commit(&every_other);
  const size_t n = size_t(world.size);
  std::vector<int> own(2000), all(4000 * n, -1);
  MPI_Request request;
  MPI_Allgather_init(own.data(), 2000, MPI_INT, all.data(), 1, every_other, comm, MPI_INFO_NULL, &request);
  MPI_Type_free(&every_other);
  for (int round = 0; round < 3; ++round) {
    own.assign(own.size(), world.rank + 10 * round);
    MPI_Start(&request);
    if (round == 1) MPI_Comm_free(&comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (size_t r = 0; r < n; ++r) {
      const int* block = &all[3999 * r];
      world.check(block[0] == int(r) + 10 * round && block[1] == -1 && block[3998] == block[0], "freed arguments", round);
    }
  }
  MPI_Request_free(&request);
}

// More than Stretto keeps memory for: the rest is MPI's.
void many_prepared() {
  constexpr size_t count = 100;
  std::vector<MPI_Request> requests(count);
  std::vector<int> in(count), out(count);
  for (size_t i = 0; i < count; ++i)
    MPI_Allreduce_init(&in[i], &out[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[i]);
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < count; ++i) in[i] = world.rank + int(i) * round;
    MPI_Startall(int(count), requests.data());
    MPI_Waitall(int(count), requests.data(), MPI_STATUSES_IGNORE);
    for (size_t i = 0; i < count; ++i)
      world.check(out[i] == world.size * (world.size - 1) / 2 + world.size * int(i) * round, "many persistent requests", long(i));
  }
  for (MPI_Request& request : requests) MPI_Request_free(&request);
}

int class_of(int code) {
  int kind = MPI_SUCCESS;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &kind);
  return kind;
}

// Active or not. MPI itself is not asked: MPICH 5 ends the job.
void cancelled() {
  if (world.plain_blocks) return;
  for (MPI_Comm comm : {MPI_COMM_WORLD, MPI_COMM_SELF}) MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  int in = 1, out = 0, flag = 0;
  MPI_Request request;
  MPI_Status status;
  MPI_Allreduce_init(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int round = 0; round < 3; ++round) {
    out = 0;
    world.check(class_of(MPI_Cancel(&request)) == MPI_ERR_REQUEST, "an inactive collective is not cancelled", round);
    MPI_Start(&request);
    world.check(class_of(MPI_Cancel(&request)) == MPI_ERR_REQUEST, "an active collective is not cancelled", round);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    world.check(!flag && out == world.size, "it goes on", round);
  }
  MPI_Request_free(&request);
  for (MPI_Comm comm : {MPI_COMM_WORLD, MPI_COMM_SELF}) MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
}

// The call that completes it tells of the error that the blocking call has, the first time and once it has failed. Over nodes
// nobody can be told.
void failed_start() {
  if (world.size < 2 || world.plain_blocks) return;
  MPI_Comm comm, other;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  for (MPI_Comm each : {comm, other}) MPI_Comm_set_errhandler(each, MPI_ERRORS_RETURN);
  std::vector<char> give(8, char(world.rank)), get(4 * size_t(world.size));
  MPI_Request request;
  const int count = world.rank == world.size - 1 ? 8 : 4;
  MPI_Gather_init(give.data(), count, MPI_CHAR, get.data(), 4, MPI_CHAR, 0, comm, MPI_INFO_NULL, &request);
  for (int round = 0; round < 2; ++round) {
    MPI_Start(&request);
    const int kind = class_of(MPI_Wait(&request, MPI_STATUS_IGNORE));
    const int blocking = class_of(MPI_Gather(give.data(), count, MPI_CHAR, get.data(), 4, MPI_CHAR, 0, other));
    world.check(kind == blocking, "the error of the blocking call", kind);
    world.check(world.rank == 0 ? kind != MPI_SUCCESS : kind == MPI_SUCCESS, "a message that is too long", round);
    if (world.rank == 0 && round == 0) world.check(kind == MPI_ERR_TRUNCATE, "its error", kind);
  }
  MPI_Request_free(&request);
  MPI_Comm_free(&comm);
  MPI_Comm_free(&other);
}

}  // namespace

void persistent() {
  for (uint64_t pass = 0; pass < 3; ++pass) {
    Requests requests(world.seed + 100 * pass, world);
    requests.prepare(12);
    requests.check_inactive();
    for (int i = 0; i < world.steps / 10; ++i) requests.round(i);
    requests.check_inactive();
  }
  freed_arguments();
  many_prepared();
  cancelled();
  failed_start();
}
