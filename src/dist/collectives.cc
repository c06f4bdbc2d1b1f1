#include "dist/collectives.h"

#include <utility>

#include "dist/group_parts.h"

namespace lattice::dist {
namespace {

// Calls c10d; what it throws becomes LostPeer.
template <typename Call>
auto Guarded(Call&& call) {
  try {
    return call();
  } catch (const std::exception& error) {
    const std::string what = error.what();
    throw LostPeer(StrCat("[dist] the connection to another rank failed: ", what.substr(0, what.find('\n'))));
  }
}

}  // namespace

void Pending::Wait() {
  if (!work_) return;
  Guarded([&] { return work_->wait(); });
  work_.reset();
}

Pending AllReduce(Group& group, at::Tensor tensor) {
  std::vector<at::Tensor> tensors = {std::move(tensor)};
  return Pending(Guarded([&] { return group.parts().backend->allreduce(tensors); }));
}

Pending AllGather(Group& group, std::vector<at::Tensor> outputs, at::Tensor own) {
  std::vector<std::vector<at::Tensor>> all = {std::move(outputs)};
  std::vector<at::Tensor> inputs = {std::move(own)};
  return Pending(Guarded([&] { return group.parts().backend->allgather(all, inputs); }));
}

}  // namespace lattice::dist
