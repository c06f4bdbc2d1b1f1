// A prefix tree of token sequences, so that a shared prefix is read once.
#ifndef LATTICE_EVAL_PREFIX_TREE_H_
#define LATTICE_EVAL_PREFIX_TREE_H_

#include <cstdint>
#include <span>
#include <vector>

namespace lattice::eval {

struct TreeSequence {
  std::span<const int32_t> tokens;
  size_t border = 0;  // a node must end here, at the end of the context
};

// Tokens [begin, end) of the listed sequences, which agree in their first `end` tokens.
struct TreeNode {
  size_t begin = 0, end = 0;
  int64_t parent = -1;  // -1: a root, which reads from the initial state
  int64_t level = 0;    // distance from its root
  std::vector<size_t> sequences;
};

// Every token of every sequence is in exactly one node, and parents come before their children. With `share`
// false, no node has two sequences. The views need to be valid only during the call.
std::vector<TreeNode> MakePrefixTree(std::span<const TreeSequence> sequences, bool share);

}  // namespace lattice::eval

#endif  // LATTICE_EVAL_PREFIX_TREE_H_
