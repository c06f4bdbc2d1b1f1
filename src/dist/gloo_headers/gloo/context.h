// See algorithm.h. Only pointers to it are held; setTimeout is named in an inline function that is not used.
#pragma once
#include <chrono>
#include <memory>

namespace gloo {
class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};
}  // namespace gloo
