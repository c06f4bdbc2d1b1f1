// The inside of a Group, for the files of this folder.
#ifndef LATTICE_DIST_GROUP_PARTS_H_
#define LATTICE_DIST_GROUP_PARTS_H_

#include <functional>
#include <memory>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "dist/board.h"
#include "dist/group.h"
#include "dist/watch.h"

namespace lattice::dist {

struct Group::Parts {
  Place place;
  double patience = 0;
  std::unique_ptr<Timeline> timeline;  // before the backend, whose threads use it
  std::unique_ptr<Board> board;
  c10::intrusive_ptr<c10d::Backend> backend;
  std::unique_ptr<Watch> watch;
  bool left = false;   // the work is done, or the others know why it is not
  int64_t shared = 0;  // texts that rank 0 has shared so far
};

// The store of the run: made by rank 0 unless the launcher holds one, else connected to. Throws Error within
// `seconds` when it cannot be reached. `server` says whether this process holds it.
c10::intrusive_ptr<c10d::Store> OpenStore(const Place& place, double seconds, bool server);

// Gloo over all ranks.
c10::intrusive_ptr<c10d::Backend> MakeGloo(const Place& place, const c10::intrusive_ptr<c10d::Store>& store,
                                           double seconds);

}  // namespace lattice::dist

#endif  // LATTICE_DIST_GROUP_PARTS_H_
