// Operations of all ranks on tensors, over c10d.
#ifndef LATTICE_DIST_COLLECTIVES_H_
#define LATTICE_DIST_COLLECTIVES_H_

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

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

// Every rank's `own` (all of one size) into outputs[rank].
Pending AllGather(Group& group, std::vector<at::Tensor> outputs, at::Tensor own);

}  // namespace lattice::dist

#endif  // LATTICE_DIST_COLLECTIVES_H_
