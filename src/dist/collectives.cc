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

// Puts the time until an operation of all ranks is done on the timeline.
c10::intrusive_ptr<c10d::Work> Recorded(Group& group, const char* name, c10::intrusive_ptr<c10d::Work> work) {
  Timeline* timeline = group.timeline();
  if (timeline == nullptr) return work;
  work->getFuture()->addCallback([timeline, name, begin = Timeline::Clock::now()](c10::ivalue::Future&) {
    timeline->Add(Timeline::Lane::kNetwork, name, begin, Timeline::Clock::now());
  });
  return work;
}

}  // namespace

void Pending::Wait() {
  if (!work_) return;
  Guarded([&] { return work_->wait(); });
  work_.reset();
}

Pending AllReduce(Group& group, at::Tensor tensor) {
  std::vector<at::Tensor> tensors = {std::move(tensor)};
  return Pending(Recorded(group, "sum", Guarded([&] { return group.parts().backend->allreduce(tensors); })));
}

Pending Send(Group& group, at::Tensor tensor, int to, Message kind) {
  std::vector<at::Tensor> tensors = {std::move(tensor)};
  return Pending(Guarded([&] { return group.parts().backend->send(tensors, to, static_cast<int>(kind)); }));
}

Pending Receive(Group& group, at::Tensor tensor, int from, Message kind) {
  std::vector<at::Tensor> tensors = {std::move(tensor)};
  return Pending(Guarded([&] { return group.parts().backend->recv(tensors, from, static_cast<int>(kind)); }));
}

Pending AllGather(Group& group, std::vector<at::Tensor> outputs, at::Tensor own) {
  std::vector<std::vector<at::Tensor>> all = {std::move(outputs)};
  std::vector<at::Tensor> inputs = {std::move(own)};
  return Pending(
      Recorded(group, "gather", Guarded([&] { return group.parts().backend->allgather(all, inputs); })));
}

}  // namespace lattice::dist
