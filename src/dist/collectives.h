// Operations on tensors over c10d: of all ranks, and of two.
#ifndef LATTICE_DIST_COLLECTIVES_H_
#define LATTICE_DIST_COLLECTIVES_H_

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <vector>

#include "dist/group.h"

namespace lattice::dist {

// An operation that goes on in the background. Tensors must not be touched before Wait().
class Pending {
 public:
  Pending() = default;
  explicit Pending(c10::intrusive_ptr<c10d::Work> work) : work_(std::move(work)) {}
  // Throws LostPeer when the operation failed.
  void Wait();

 private:
  c10::intrusive_ptr<c10d::Work> work_;
};

// Sums a contiguous tensor over all ranks, in place. The order of the sums is fixed by the number of ranks
// and the tensor's size, and all ranks get the same bits.
Pending AllReduce(Group& group, at::Tensor tensor);

// What a message of two ranks carries. Messages of one kind arrive in the order in which they were sent.
enum class Message : uint8_t { kStateLayout, kState, kStateGradient };

// Sends a contiguous tensor to a rank, which receives it into one of the same size and type.
Pending Send(Group& group, at::Tensor tensor, int to, Message kind);
Pending Receive(Group& group, at::Tensor tensor, int from, Message kind);

// Every rank's `own` (all of one size) into outputs[rank].
Pending AllGather(Group& group, std::vector<at::Tensor> outputs, at::Tensor own);

}  // namespace lattice::dist

#endif  // LATTICE_DIST_COLLECTIVES_H_
