#include "engine/operation.hpp"

#include "base/clock.hpp"
#include "engine/communicator.hpp"
#include "engine/progress.hpp"

namespace stretto::engine {
namespace {

constexpr uint64_t look_around_ns = 100'000'000;

}  // namespace

__attribute__((tls_model("initial-exec"))) constinit thread_local Operation* operation_in_this_thread = nullptr;

__attribute__((noinline)) Operation* Operation::current() {
  return operation_in_this_thread;
}

void Operation::run(void* self) {
  auto* operation = static_cast<Operation*>(self);
  operation->body_(operation->argument_);
  operation->stage_ = Stage::ended;
}

void Operation::start(void (*body)(void*), void* argument) {
  body_ = body;
  argument_ = argument;
  stage_ = Stage::starting;
  communicator_ = nullptr;
  queue_ = nullptr;
  wait_ = nullptr;
  has_fiber_ = fiber_.reserve();
  if (has_fiber_) {
    fiber_.begin(run, this);
    return resume();
  }
  Operation* outer = operation_in_this_thread;
  operation_in_this_thread = this;
  run(this);
  operation_in_this_thread = outer;
}

void Operation::rehearse(void (*body)(void*), void* argument) {
  stage_ = Stage::rehearsing;
  algorithm = -1;
  Operation* outer = operation_in_this_thread;
  operation_in_this_thread = this;
  body(argument);
  operation_in_this_thread = outer;
  stage_ = Stage::ended;
}

void Operation::resume() {
  Operation* outer = operation_in_this_thread;
  operation_in_this_thread = this;
  fiber_.resume();
  operation_in_this_thread = outer;
}

void Operation::take_turn(Communicator& communicator, Queue& queue) {
  communicator_ = &communicator;
  queue_ = &queue;
  stage_ = Stage::queued;
  communicator.hold();
  if (has_fiber_) return fiber_.suspend();
  progress_->drain(queue);
}

void Operation::end_turn() {
  stage_ = Stage::executed;
  if (has_fiber_) fiber_.suspend();
}

void Operation::suspend(const collective::Wait& wait) {
  wait_ = &wait;
  look_around_ = now_ns() + look_around_ns;
  fiber_.suspend();
  wait_ = nullptr;
}

void Operation::until_done(bool (*done)(void*), void* context) {
  done_context_ = context;
  done_ = done;
  fiber_.suspend();
  done_ = nullptr;
}

bool Operation::ready(uint64_t now) const {
  return wait_ == nullptr || wait_->is_over() || now >= look_around_;
}

}  // namespace stretto::engine
