// Collectives and point-to-point calls, and groups of them.
#include "nccl/wrap.hpp"

namespace stretto::nccl {

Result run_group_end(Function function, void* info, const void* caller) {
  auto forward = [&] {
    if (function == GroupEnd) return reinterpret_cast<Result (*)()>(real(function, caller))();
    return reinterpret_cast<Result (*)(void*)>(real(function, caller))(info);
  };
  if (passes_through()) return forward();
  Thread& t = this_thread;
  const Inside inside;
  Call call;
  if (t.depth > 1) {  // an inner end does nothing yet
    begin_plain(call, function);
    const Result result = forward();
    end_call(call, result);
    --t.depth;
    return result;
  }
  before_group_end(function == GroupSimulateEnd);
  t.depth = 0;
  begin_plain(call, function);
  const Result result = forward();
  const bool good = result == success || result == in_progress;
  after_group_end(!good ? Outcome::failed : function == GroupEnd ? Outcome::done : Outcome::simulated);
  complete_creations(result);
  end_call(call, result);
  return result;
}

}  // namespace stretto::nccl

using namespace stretto::nccl;

#define STRETTO_CALLER __builtin_return_address(0)

// One collective and, of newer libraries, its variant with a trailing configuration.
#define STRETTO_NCCL_WRAP(name, parameters, arguments, ...)                                                  \
  STRETTO_EXPORT Result nccl##name parameters {                                                              \
    return run_operation(Operands{name, __VA_ARGS__}, real(name, STRETTO_CALLER), STRETTO_UNWRAP arguments); \
  }
#define STRETTO_NCCL_WRAP_VARIANT(name, parameters, arguments, ...)                                                          \
  STRETTO_EXPORT Result nccl##name##Config(STRETTO_UNWRAP parameters, const void* config) {                                  \
    return run_operation(Operands{name, __VA_ARGS__}, real(name##Config, STRETTO_CALLER), STRETTO_UNWRAP arguments, config); \
  }
#define STRETTO_UNWRAP(...) __VA_ARGS__
#define STRETTO_NCCL_WRAP_BOTH(name, parameters, arguments, ...) \
  STRETTO_NCCL_WRAP(name, parameters, arguments, __VA_ARGS__)    \
  STRETTO_NCCL_WRAP_VARIANT(name, parameters, arguments, __VA_ARGS__)

STRETTO_NCCL_WRAP_BOTH(AllReduce,
                       (const void* send, void* receive, size_t count, Datatype datatype, Op op, Comm comm, Stream stream),
                       (send, receive, count, datatype, op, comm, stream), send, receive, count, datatype, op, -1, comm)

STRETTO_NCCL_WRAP_BOTH(Reduce,
                       (const void* send, void* receive, size_t count, Datatype datatype, Op op, int root, Comm comm,
                        Stream stream),
                       (send, receive, count, datatype, op, root, comm, stream), send, receive, count, datatype, op, root, comm)

STRETTO_NCCL_WRAP_BOTH(Broadcast,
                       (const void* send, void* receive, size_t count, Datatype datatype, int root, Comm comm, Stream stream),
                       (send, receive, count, datatype, root, comm, stream), send, receive, count, datatype, -1, root, comm)

STRETTO_NCCL_WRAP(Bcast, (void* buffer, size_t count, Datatype datatype, int root, Comm comm, Stream stream),
                  (buffer, count, datatype, root, comm, stream), buffer, buffer, count, datatype, -1, root, comm)

STRETTO_NCCL_WRAP_BOTH(AllGather, (const void* send, void* receive, size_t count, Datatype datatype, Comm comm, Stream stream),
                       (send, receive, count, datatype, comm, stream), send, receive, count, datatype, -1, -1, comm)

STRETTO_NCCL_WRAP_BOTH(ReduceScatter,
                       (const void* send, void* receive, size_t count, Datatype datatype, Op op, Comm comm, Stream stream),
                       (send, receive, count, datatype, op, comm, stream), send, receive, count, datatype, op, -1, comm)

STRETTO_NCCL_WRAP_BOTH(AlltoAll, (const void* send, void* receive, size_t count, Datatype datatype, Comm comm, Stream stream),
                       (send, receive, count, datatype, comm, stream), send, receive, count, datatype, -1, -1, comm)

STRETTO_NCCL_WRAP_BOTH(Gather,
                       (const void* send, void* receive, size_t count, Datatype datatype, int root, Comm comm, Stream stream),
                       (send, receive, count, datatype, root, comm, stream), send, receive, count, datatype, -1, root, comm)

STRETTO_NCCL_WRAP_BOTH(Scatter,
                       (const void* send, void* receive, size_t count, Datatype datatype, int root, Comm comm, Stream stream),
                       (send, receive, count, datatype, root, comm, stream), send, receive, count, datatype, -1, root, comm)

STRETTO_NCCL_WRAP(Send, (const void* send, size_t count, Datatype datatype, int peer, Comm comm, Stream stream),
                  (send, count, datatype, peer, comm, stream), send, nullptr, count, datatype, -1, peer, comm)

STRETTO_NCCL_WRAP(Recv, (void* receive, size_t count, Datatype datatype, int peer, Comm comm, Stream stream),
                  (receive, count, datatype, peer, comm, stream), nullptr, receive, count, datatype, -1, peer, comm)

STRETTO_EXPORT Result ncclGroupStart() {
  const AnyFunction function = real(GroupStart, STRETTO_CALLER);
  const Result result = run_plain(GroupStart, [&] { return reinterpret_cast<Result (*)()>(function)(); });
  if (result == success && !passes_through()) enter_group();
  return result;
}

STRETTO_EXPORT Result ncclGroupEnd() {
  return run_group_end(GroupEnd, nullptr, STRETTO_CALLER);
}

STRETTO_EXPORT Result ncclGroupSimulateEnd(void* info) {
  return run_group_end(GroupSimulateEnd, info, STRETTO_CALLER);
}
