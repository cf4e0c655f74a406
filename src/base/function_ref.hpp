// A reference to something that can be called and outlives it: what a template does for its fast path alone need not be
// instantiated for the rest.
#pragma once

namespace stretto {

template <class Signature>
class FunctionRef;

template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  template <class Callable>
  FunctionRef(const Callable& callable)  // NOLINT(google-explicit-constructor): stands for what it refers to
      : callable_(&callable), call_([](const void* called, Arguments... arguments) -> Result {
          return (*static_cast<const Callable*>(called))(arguments...);
        }) {}
  Result operator()(Arguments... arguments) const { return call_(callable_, arguments...); }

 private:
  const void* callable_;
  Result (*call_)(const void*, Arguments...);
};

}  // namespace stretto
