#include "node.hpp"

#include <algorithm>
#include <cstring>

#include "collective/patterns/combine.hpp"
#include "collective/waiter.hpp"

namespace stretto::scale {

using collective::Kind;
using collective::Request;

Speeds speeds;
bool check = false, direct = false;

namespace {

constexpr size_t small = 1072;             // bytes that ride with the flag
constexpr size_t cell = size_t(16) << 10;  // of the staging memory; larger vectors may go directly

void pass(double seconds) {
  if (seconds > 0) simgrid::s4u::this_actor::sleep_for(seconds);
}

bool goes_directly(const Request& request) {
  return direct && request.bytes() > cell;
}

void add(const void* const* inputs, int p, void* out, size_t n) {
  std::vector<float> sum(static_cast<const float*>(inputs[0]), static_cast<const float*>(inputs[0]) + n);
  for (int r = 1; r < p; ++r)
    for (size_t i = 0; i < n; ++i) sum[i] += static_cast<const float*>(inputs[r])[i];
  std::copy(sum.begin(), sum.end(), static_cast<float*>(out));
}

}  // namespace

void charge_add(size_t bytes) {
  pass(double(bytes) / speeds.add);
}
void charge_copy(size_t bytes) {
  pass(double(bytes) / speeds.copy);
}

Node::Phase& Node::phase(size_t call) {
  Phase& found = phases_[call];
  if (found.requests.empty()) {
    found.requests.resize(size_t(ranks_));
    found.filled = simgrid::s4u::Barrier::create(unsigned(ranks_));
    found.added = simgrid::s4u::Barrier::create(unsigned(ranks_));
    found.told = simgrid::s4u::Semaphore::create(0);
    found.copied = simgrid::s4u::Semaphore::create(0);
  }
  return found;
}

Status Node::run(const Request& request, int local, size_t call) {
  Phase& mine = phase(call);
  mine.requests[size_t(local)] = &request;
  if (request.kind == Kind::bcast) {
    bcast(mine, request, local);
  } else if (request.kind == Kind::reduce && request.bytes() <= small && !check) {
    small_reduce(mine, request, local);
  } else if (request.kind == Kind::reduce) {
    reduce(mine, request, local);
  } else {
    mine.filled->wait();
    pass(speeds.tell);
  }
  if (++mine.left == ranks_) phases_.erase(call);
  return Status::good();
}

// Whoever has told may go: a copy of what it gave stays.
void Node::small_reduce(Phase& phase, const Request& request, int local) const {
  charge_copy(request.bytes());
  if (local != request.root) return phase.told->release();
  for (int i = 1; i < ranks_; ++i) phase.told->acquire();
  pass(speeds.tell);
  charge_add(request.bytes() * size_t(ranks_ - 1));
}

void Node::reduce(Phase& phase, const Request& request, int local) const {
  if (!goes_directly(request)) charge_copy(request.bytes());
  phase.filled->wait();
  if (check && local == request.root) add_all(phase, request);
  pass(speeds.tell);
  charge_add(request.bytes() * size_t(ranks_ - 1) / size_t(ranks_));
  if (goes_directly(request)) charge_copy(request.bytes() / size_t(ranks_));
  phase.added->wait();
  if (local != request.root) return;
  pass(speeds.tell);
  if (!goes_directly(request)) charge_copy(request.bytes());
}

void Node::add_all(const Phase& phase, const Request& request) const {
  std::vector<const void*> inputs;
  for (const Request* one : phase.requests) inputs.push_back(one->input);
  add(inputs.data(), ranks_, request.output, request.count);
}

void Node::bcast(Phase& phase, const Request& request, int local) const {
  if (local == request.root) return give(phase, request);
  phase.told->acquire();
  pass(speeds.tell);
  charge_copy(request.bytes());
  phase.copied->release();
  if (check) std::copy(phase.staged.begin(), phase.staged.end(), static_cast<char*>(request.output));
}

// A root whose buffer is read stays until all have it.
void Node::give(Phase& phase, const Request& request) const {
  const char* data = static_cast<const char*>(request.input);
  if (check) phase.staged.assign(data, data + request.bytes());
  const size_t first = goes_directly(request) ? 0 : std::min(request.bytes(), cell);
  charge_copy(first);
  for (int i = 1; i < ranks_; ++i) phase.told->release();
  if (!goes_directly(request)) return charge_copy(request.bytes() - first);
  for (int i = 1; i < ranks_; ++i) phase.copied->acquire();
}

}  // namespace stretto::scale

namespace stretto::collective {

// Stands for patterns/combine.cpp: arithmetic between nodes takes simulated time, and is done where results count.
void combine(const Request& request, const void* const* inputs, int p, void* out, size_t n) {
  if (n == 0 || p < 2) return;
  if (scale::check) scale::add(inputs, p, out, n);
  scale::charge_add(n * request.element * size_t(p - 1));
}

void combine_before(const Request& request, const void* left, void* inout, size_t n) {
  const void* inputs[] = {left, inout};
  combine(request, inputs, 2, inout, n);
}

// Nobody waits in shared memory here.
void Waiter::rest() const {}

}  // namespace stretto::collective
