// One collective after the other on a simulated machine: the MPI's own, chosen by one of the simulator's selectors, and Stretto's
// rows over nodes (src/collective/hierarchy, src/shim/rails.cpp as they are), under arrival patterns.
//
// Arguments: NAME=VALUE, see `settings`. Prints a line of JSON for each measurement. Seconds are simulated.
#undef sleep  // smpicxx makes it the simulator's; a header here has a function of that name
#include <smpi/smpi.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>

#include "collective/hierarchy/rows.hpp"
#include "node.hpp"
#include "shim/nodes.hpp"
#include "shim/rails.hpp"

namespace stretto::shim {
const void* any_input = nullptr;
}

namespace stretto::scale {
namespace {

using collective::Cluster;
using collective::Kind;
using collective::Placement;
using collective::Request;

struct Settings {
  std::string operation = "allreduce", rows = "flat,leader,rsa,leaders,streamed,pipelined", sizes = "8,65536", factors = "0";
  int per_node = 4, domains = 1, repeats = 1;
  bool in_turn = false;  // ranks are dealt out to the nodes, as `--map-by node`; else in blocks
  unsigned seed = 20221;
} settings;

std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> found;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    found.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return found;
}

// What all ranks share: they are actors of one process, and take turns.
struct Shared {
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<double> arrival, exit;
  double alpha = 0;
  simgrid::s4u::BarrierPtr start;
  size_t wrong = 0;
} shared;

int node_of(int rank, int ranks) {
  return settings.in_turn ? rank % (ranks / settings.per_node) : rank / settings.per_node;
}

double now() {
  return simgrid::s4u::Engine::get_clock();
}

// The operation of the program's calls: adding takes time in whichever algorithm it happens.
void add_floats(void* in, void* inout, int* count, MPI_Datatype*) {
  if (check)
    for (int i = 0; i < *count; ++i) static_cast<float*>(inout)[i] += static_cast<const float*>(in)[i];
  charge_add(size_t(*count) * sizeof(float));
}

class Rank {
 public:
  Rank() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    std::vector<int> names(static_cast<size_t>(size_));
    for (int r = 0; r < size_; ++r) names[size_t(r)] = node_of(r, size_);
    Placement place;
    if (!place.find(names.data(), size_, rank_)) MPI_Abort(MPI_COMM_WORLD, 1);
    node_ = place.node;
    local_ = place.local;
    MPI_Comm rail, all;
    MPI_Comm_split(MPI_COMM_WORLD, place.local, rank_, &rail);
    MPI_Comm_dup(MPI_COMM_WORLD, &all);
    links_ = shim::make_links(rail, all);
    cluster_ = std::make_unique<Cluster>(std::move(place), links_.get(), in_node, this, nullptr);
    cluster_->domains = settings.domains;
    MPI_Op_create(add_floats, 1, &operands_.op);
    operands_.type = MPI_FLOAT;
  }
  ~Rank() {
    cluster_.reset();
    links_.reset();
    MPI_Op_free(&operands_.op);
  }

  void measure_all() {
    size_t largest = 1;
    for (const std::string& bytes : words(settings.sizes)) largest = std::max<size_t>(largest, std::stoul(bytes));
    input_ = room(largest);
    output_ = room(largest);
    if (rank_ == 0 && !check) shim::any_input = room(largest);
    shared.start->wait();
    count_ = 1;
    for (const std::string& row : words(settings.rows)) call(row);  // what an MPI or a row makes at its first call
    for (const std::string& bytes : words(settings.sizes)) {
      count_ = std::stoul(bytes) / sizeof(float);
      find_alpha();
      for (const std::string& factor : words(settings.factors)) measure(std::stod(factor));
    }
  }

 private:
  static char* room(size_t bytes) { return static_cast<char*>(check ? malloc(bytes) : SMPI_SHARED_MALLOC(bytes)); }

  static Status in_node(void* self, const Request& request) {
    Rank& rank = *static_cast<Rank*>(self);
    return shared.nodes[size_t(rank.node_)]->run(request, rank.local_, rank.calls_++);
  }

  // The time of one message of this size from the first node to the last.
  void find_alpha() {
    const int last = size_ - 1;
    shared.start->wait();
    const double begin = now();
    if (rank_ == 0) MPI_Send(input_, int(count_), MPI_FLOAT, last, 0, MPI_COMM_WORLD);
    if (rank_ == last) {
      MPI_Recv(output_, int(count_), MPI_FLOAT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      shared.alpha = now() - begin;
    }
    shared.start->wait();
  }

  // Random arrival after Alizadeh et al. 2022, section 6.1: each rank comes after a time drawn from 0 to factor x alpha.
  void measure(double factor) {
    for (int repeat = 0; repeat < (factor > 0 ? settings.repeats : 1); ++repeat) {
      std::seed_seq seeds{settings.seed, unsigned(count_), unsigned(repeat), unsigned(rank_)};
      std::mt19937 random(seeds);
      const double delay = factor * shared.alpha * std::uniform_real_distribution<double>()(random);
      for (const std::string& row : words(settings.rows)) {
        fill(repeat);
        shared.start->wait();
        if (delay > 0) simgrid::s4u::this_actor::sleep_for(delay);
        shared.arrival[size_t(rank_)] = now();
        call(row);
        shared.exit[size_t(rank_)] = now();
        shared.start->wait();
        if (check) compare(repeat);
        shared.start->wait();
        if (rank_ == 0) say(row, factor, repeat);
      }
    }
  }

  // Small whole numbers, whose sums are exact in any order.
  static float value(int rank, size_t i, int repeat) { return float((size_t(rank) * 7 + i * 13 + size_t(repeat) * 5) % 17) - 8; }
  void fill(int repeat) {
    if (!check) return;
    for (size_t i = 0; i < count_; ++i) reinterpret_cast<float*>(input_)[i] = value(rank_, i, repeat);
    memset(output_, 0xff, count_ * sizeof(float));
  }
  void compare(int repeat) {
    if (settings.operation == "barrier") {  // nobody leaves before all have come
      shared.wrong += shared.exit[size_t(rank_)] < *std::max_element(shared.arrival.begin(), shared.arrival.end());
      return;
    }
    const bool has_result = settings.operation != "reduce" || rank_ == 0;
    for (size_t i = 0; has_result && i < count_; ++i) {
      float sum = 0;
      for (int r = 0; r < (settings.operation == "bcast" ? 1 : size_); ++r) sum += value(r, i, repeat);
      const float* out = reinterpret_cast<const float*>(settings.operation == "bcast" && rank_ == 0 ? input_ : output_);
      shared.wrong += out[i] != sum;
    }
  }

  void call(const std::string& row) {
    if (row == "flat") return flat();
    for (const auto& one : collective::cluster_algorithms)
      if (row == one.name && settings.operation == collective::name(one.kind)) return stretto(one);
    if (rank_ == 0) fprintf(stderr, "no row %s of %s\n", row.c_str(), settings.operation.c_str());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }

  void flat() {
    if (settings.operation == "allreduce")
      MPI_Allreduce(input_, output_, int(count_), MPI_FLOAT, operands_.op, MPI_COMM_WORLD);
    else if (settings.operation == "reduce")
      MPI_Reduce(input_, output_, int(count_), MPI_FLOAT, operands_.op, 0, MPI_COMM_WORLD);
    else if (settings.operation == "bcast")
      MPI_Bcast(rank_ == 0 ? input_ : output_, int(count_), MPI_FLOAT, 0, MPI_COMM_WORLD);
    else
      MPI_Barrier(MPI_COMM_WORLD);
  }

  void stretto(const collective::ClusterAlgorithm& row) {
    Request request;
    request.kind = row.kind;
    request.host = &operands_;
    if (row.kind != Kind::barrier) {
      const bool bytes = row.kind == Kind::bcast;
      request.type = bytes ? kernels::Type::opaque : kernels::Type::f32;
      request.element = bytes ? 1 : sizeof(float);
      request.count = bytes ? count_ * sizeof(float) : count_;
      request.input = input_;
      request.output = row.kind == Kind::reduce && rank_ != 0 ? nullptr : output_;
    }
    if (!row.run(*cluster_, request).ok()) MPI_Abort(MPI_COMM_WORLD, 1);
  }

  // Also forgets what was wrong.
  void say(const std::string& row, double factor, int repeat) const {
    const double last = *std::max_element(shared.arrival.begin(), shared.arrival.end());
    const double end = *std::max_element(shared.exit.begin(), shared.exit.end());
    double inside = 0;
    for (size_t r = 0; r < shared.exit.size(); ++r) inside += shared.exit[r] - shared.arrival[r];
    printf(
        "{\"operation\": \"%s\", \"row\": \"%s\", \"ranks\": %d, \"bytes\": %zu, \"factor\": %g, \"repeat\": %d, \"alpha\": "
        "%.9g, "
        "\"after_last\": %.9g, \"inside_mean\": %.9g, \"wrong\": %zu}\n",
        settings.operation.c_str(), row.c_str(), size_, count_ * sizeof(float), factor, repeat, shared.alpha, end - last,
        inside / size_, shared.wrong);
    fflush(stdout);
    shared.wrong = 0;
  }

  int rank_ = 0, size_ = 0, node_ = 0, local_ = 0;
  size_t calls_ = 0, count_ = 0;
  char *input_ = nullptr, *output_ = nullptr;
  shim::HostOperands operands_{};
  std::unique_ptr<collective::Links> links_;
  std::unique_ptr<Cluster> cluster_;
};

void set(const std::string& name, const std::string& value) {
  if (name == "operation") settings.operation = value;
  if (name == "rows") settings.rows = value;
  if (name == "sizes") settings.sizes = value;
  if (name == "factors") settings.factors = value;
  if (name == "per_node") settings.per_node = std::stoi(value);
  if (name == "domains") settings.domains = std::stoi(value);
  if (name == "in_turn") settings.in_turn = value == "1";
  if (name == "repeats") settings.repeats = std::stoi(value);
  if (name == "seed") settings.seed = unsigned(std::stoul(value));
  if (name == "check") check = value == "1";
  if (name == "direct") direct = value == "1";
  if (name == "copy") speeds.copy = std::stod(value);
  if (name == "add") speeds.add = std::stod(value);
  if (name == "tell") speeds.tell = std::stod(value);
}

void prepare(int argc, char** argv, int size) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const size_t at = word.find('=');
    if (at != std::string::npos) set(word.substr(0, at), word.substr(at + 1));
  }
  for (int r = 0; r < size; r += settings.per_node)
    shared.nodes.push_back(std::make_unique<Node>(std::min(settings.per_node, size - r)));
  shared.arrival.resize(size_t(size));
  shared.exit.resize(size_t(size));
  shared.start = simgrid::s4u::Barrier::create(unsigned(size));
}

}  // namespace
}  // namespace stretto::scale

int main(int argc, char** argv) {
  using namespace stretto::scale;
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == 0) prepare(argc, argv, size);  // the ranks share their variables
  MPI_Barrier(MPI_COMM_WORLD);
  {
    Rank self;
    self.measure_all();
  }
  MPI_Finalize();
  return 0;
}
