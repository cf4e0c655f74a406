// Random nonblocking collectives on several communicators, many at once, completed in every way and in any order, among blocking
// collectives and messages; compared with what PMPI's blocking calls give for the same inputs.
#include <cstring>
#include <memory>

#include "check.hpp"

namespace {

enum class What { barrier, bcast, reduce, allreduce };

struct Kind {
  MPI_Datatype type;
  size_t bytes;
  bool sums;  // has MPI_SUM
};

// One operation: inputs are kept, so that PMPI can be asked afterwards.
struct Operation {
  What what;
  int number, count, root, type;
  bool in_place, strided;
  MPI_Op op;
  std::vector<unsigned char> in, out, kept;
  MPI_Request request = MPI_REQUEST_NULL;
};

const Kind kinds[] = {
    {MPI_INT32_T, 4, true}, {MPI_INT64_T, 8, true}, {MPI_DOUBLE, 8, true}, {MPI_UINT8_T, 1, true}, {MPI_2INT, 8, false}};

void fill(std::vector<unsigned char>& bytes, const Kind& kind, Random& random) {
  const size_t n = bytes.size() / kind.bytes;
  for (size_t i = 0; i < n; ++i) {
    const int value = random.below(200) - (kind.bytes == 1 ? 0 : 100);
    if (kind.type == MPI_DOUBLE) {
      const double d = value;
      memcpy(&bytes[i * 8], &d, 8);
    } else if (kind.type == MPI_INT64_T) {
      const int64_t v = value;
      memcpy(&bytes[i * 8], &v, 8);
    } else if (kind.type == MPI_2INT) {
      const int pair[2] = {value, random.below(50)};
      memcpy(&bytes[i * 8], pair, 8);
    } else if (kind.bytes == 4) {
      memcpy(&bytes[i * 4], &value, 4);
    } else {
      bytes[i] = static_cast<unsigned char>(value & 3);
    }
  }
}

int random_count(Random& random) {
  switch (random.below(10)) {
    case 0:
      return random.below(3);
    case 1:
      return 100'000 + random.below(100'000);
    case 2:
    case 3:
      return 1000 + random.below(20'000);
    default:
      return 1 + random.below(300);
  }
}

class Jobs {
 public:
  Jobs(MPI_Comm comm, uint64_t seed, World& result) : common_(seed), own_(seed), result_(result) {
    PMPI_Comm_dup(comm, &shadow_);
    MPI_Comm_rank(comm, &rank_);
    MPI_Comm_size(comm, &size_);
    own_ = Random(seed * 1000 + uint64_t(rank_));
    comms_.resize(4);
    MPI_Comm_dup(comm, &comms_[0]);
    MPI_Comm_split(comm, 0, -rank_, &comms_[1]);  // ranks in reverse order
    const int dims[1] = {size_}, periods[1] = {0};
    MPI_Cart_create(comm, 1, dims, periods, 0, &comms_[2]);  // not prepared: the first ones are left to MPI
    MPI_Comm_dup(comm, &comms_[3]);
    MPI_Type_vector(1, 1, 1, MPI_INT32_T, &strided_base_);
    MPI_Type_create_resized(strided_base_, 0, 12, &strided_);
    MPI_Type_commit(&strided_);
  }
  ~Jobs() {
    complete_all();
    for (MPI_Comm& comm : comms_) MPI_Comm_free(&comm);
    PMPI_Comm_free(&shadow_);
    MPI_Type_free(&strided_);
    MPI_Type_free(&strided_base_);
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
    for (auto& job : jobs_) compare(*job);
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

  // Rank in comms_[which] of the rank that is `root` in the shadow.
  int translated(int which, int root) const { return which == 1 ? size_ - 1 - root : root; }

  void begin(int number, MPI_Comm comm, int which) {
    auto made = std::make_unique<Operation>();
    Operation& o = *made;
    o.number = number;
    o.what = What(common_.below(4));
    o.count = random_count(common_);
    o.root = common_.below(size_);
    o.type = common_.below(5);
    const bool pair = !kinds[o.type].sums;
    const MPI_Op ops[] = {MPI_SUM, MPI_MAX, MPI_MIN, MPI_BAND};
    o.op = pair ? (common_.below(2) ? MPI_MINLOC : MPI_MAXLOC) : ops[common_.below(kinds[o.type].type == MPI_DOUBLE ? 3 : 4)];
    // Ranks differ, which Open MPI's own forms do not always stand: not on the communicator that is left to it.
    o.in_place = own_.below(3) == 0 && which != 2;
    o.strided = own_.below(2) == 0 && which != 2 && o.what == What::bcast && o.type == 0;
    o.in.resize(size_t(o.count) * kinds[o.type].bytes);
    fill(o.in, kinds[o.type], own_);
    o.out.assign(o.in.size() * (o.strided ? 3 : 1), 0xee);
    o.kept = o.in;
    start(o, comm, translated(which, o.root));
    jobs_.push_back(std::move(made));
  }

  void start(Operation& o, MPI_Comm comm, int root) {
    const Kind& kind = kinds[o.type];
    const bool is_root = rank_ == o.root;
    const void* in = o.in.data();
    if (o.in_place && (o.what == What::allreduce || (o.what == What::reduce && is_root))) {
      memcpy(o.out.data(), o.in.data(), o.in.size());
      in = MPI_IN_PLACE;
    }
    switch (o.what) {
      case What::barrier:
        MPI_Ibarrier(comm, &o.request);
        return;
      case What::bcast:
        if (is_root) spread(o);
        MPI_Ibcast(o.out.data(), o.count, o.strided ? strided_ : kind.type, root, comm, &o.request);
        return;
      case What::reduce:
        MPI_Ireduce(in, o.out.data(), o.count, kind.type, o.op, root, comm, &o.request);
        return;
      case What::allreduce:
        MPI_Iallreduce(in, o.out.data(), o.count, kind.type, o.op, comm, &o.request);
        return;
    }
  }

  static void spread(Operation& o) {
    if (!o.strided) return void(memcpy(o.out.data(), o.in.data(), o.in.size()));
    for (size_t i = 0; i < size_t(o.count); ++i) memcpy(&o.out[12 * i], &o.in[4 * i], 4);
  }
  static void gather(const Operation& o, std::vector<unsigned char>& data) {
    data.resize(o.in.size());
    if (!o.strided) return void(memcpy(data.data(), o.out.data(), data.size()));
    for (size_t i = 0; i < size_t(o.count); ++i) memcpy(&data[4 * i], &o.out[12 * i], 4);
  }

  void compare(Operation& o) {
    const Kind& kind = kinds[o.type];
    std::vector<unsigned char> expected(o.in.size()), got;
    gather(o, got);
    result_.check(o.what == What::barrier || o.kept == o.in, "an input was written to", o.number);
    if (o.what == What::bcast) {
      expected = o.in;
      PMPI_Bcast(expected.data(), o.count, kind.type, o.root, shadow_);
      result_.check(got == expected, "Ibcast", o.number);
    } else if (o.what == What::reduce) {
      PMPI_Reduce(o.in.data(), expected.data(), o.count, kind.type, o.op, o.root, shadow_);
      if (rank_ == o.root) result_.check(got == expected, "Ireduce", o.number);
    } else if (o.what == What::allreduce) {
      PMPI_Allreduce(o.in.data(), expected.data(), o.count, kind.type, o.op, shadow_);
      result_.check(got == expected, "Iallreduce", o.number);
    }
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
  MPI_Comm shadow_ = MPI_COMM_NULL;
  MPI_Datatype strided_base_, strided_;
  std::vector<MPI_Comm> comms_;
  std::vector<std::unique_ptr<Operation>> jobs_;
  std::vector<MPI_Request> messages_;
  std::vector<std::unique_ptr<int[]>> boxes_;
};

}  // namespace

void random_operations(MPI_Comm comm, uint64_t seed, int steps, World& result) {
  Jobs jobs(comm, seed, result);
  for (int i = 0; i < steps; ++i) jobs.step(i);
}
