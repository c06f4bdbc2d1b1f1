// Sequences of tokens as a tree, so that what several begin with is read once.
#ifndef LATTICE_EVAL_PREFIX_TREE_H_
#define LATTICE_EVAL_PREFIX_TREE_H_

#include <cstdint>
#include <span>
#include <vector>

namespace lattice::eval {

struct TreeSequence {
  std::span<const int32_t> tokens;
  size_t border = 0;  // a node ends here: behind the context
};

// Tokens [begin, end) of the sequences listed, which agree in their first `end` tokens.
struct TreeNode {
  size_t begin = 0, end = 0;
  int64_t parent = -1;  // -1: reads from the start
  int64_t level = 0;    // nodes on the way from the start
  std::vector<size_t> sequences;
};

// Every token of every sequence is in exactly one node; parents come before their children. With `share`
// false no node has two sequences. The views must stay valid only for the call.
std::vector<TreeNode> MakePrefixTree(std::span<const TreeSequence> sequences, bool share);

}  // namespace lattice::eval

#endif  // LATTICE_EVAL_PREFIX_TREE_H_
