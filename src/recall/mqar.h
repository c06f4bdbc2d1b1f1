// Multi-query associative recall (MQAR): D pairs of a key and a value, then a query of every key among noise.
// The answer to a query is the value of its key.
//
//   position         token            label   how it is drawn
//   0 .. 2D-1        k0 v0 k1 v1 ..   none    keys from 1 .. V/2-1, values from V/2 .. V-1, all distinct
//   2D + 2 gap(j)    kj               vj      the gaps are D of the (L - 2D)/2 slots, drawn one after the
//                                             other without replacement, with weights i^(a-1), i = 1, 2, ..
//   all others       noise            none    from 0 .. V-1; without noise 0
//
// An example is a function of (seed, index), so nothing needs to be stored.
#ifndef LATTICE_RECALL_MQAR_H_
#define LATTICE_RECALL_MQAR_H_

#include <cstdint>
#include <span>
#include <vector>

namespace lattice::recall {

struct MqarTask {
  int64_t vocab = 8192;   // V
  int64_t length = 1024;  // L
  int64_t pairs = 48;     // D
  double power = 0.01;    // a
  bool noise = true;      // random tokens between the queries
  uint64_t seed = 0;

  bool operator==(const MqarTask&) const = default;
};

// Immutable; may be used by several threads.
class MqarGenerator {
 public:
  static constexpr int64_t kNoLabel = -1;

  // Throws Error unless L is even, V even and larger than L, and 4 D <= L.
  explicit MqarGenerator(const MqarTask& task);

  const MqarTask& task() const { return task_; }

  // Writes tokens and labels, both [L]; a label is at the position of its query.
  void Make(uint64_t index, std::span<int64_t> tokens, std::span<int64_t> labels) const;

 private:
  MqarTask task_;
  std::vector<double> inverse_weights_;  // by slot
};

}  // namespace lattice::recall

#endif  // LATTICE_RECALL_MQAR_H_
