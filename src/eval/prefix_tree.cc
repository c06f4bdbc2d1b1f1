// Builds a prefix tree of token sequences by sorting them and splitting where they diverge.
#include "eval/prefix_tree.h"

#include <algorithm>
#include <numeric>

namespace lattice::eval {
namespace {

class TreeBuilder {
 public:
  explicit TreeBuilder(std::span<const TreeSequence> sequences) : sequences_(sequences) {}

  // Adds the nodes below `parent`: the tokens from `depth` on of the sequences `sorted`, which agree before.
  void Add(std::span<const size_t> sorted, size_t depth, int64_t parent, int64_t level) {
    // Sequences that end here; sorting has put them first.
    while (!sorted.empty() && Tokens(sorted.front()).size() == depth) sorted = sorted.subspan(1);
    while (!sorted.empty()) {
      const int32_t token = Tokens(sorted.front())[depth];
      size_t count = 1;
      while (count < sorted.size() && Tokens(sorted[count])[depth] == token) ++count;
      AddNode(sorted.first(count), depth, parent, level);
      sorted = sorted.subspan(count);
    }
  }

  std::vector<TreeNode> Take() { return std::move(nodes_); }

 private:
  std::span<const int32_t> Tokens(size_t sequence) const { return sequences_[sequence].tokens; }

  void AddNode(std::span<const size_t> group, size_t depth, int64_t parent, int64_t level) {
    // In sorted order, the common prefix of all is that of the first and the last.
    const std::span<const int32_t> first = Tokens(group.front()), last = Tokens(group.back());
    auto end = static_cast<size_t>(std::mismatch(first.begin(), first.end(), last.begin(), last.end()).first -
                                   first.begin());
    for (const size_t sequence : group) {
      const size_t border = sequences_[sequence].border;
      if (border > depth) end = std::min(end, border);
    }
    nodes_.push_back({depth, end, parent, level, {group.begin(), group.end()}});
    Add(group, end, static_cast<int64_t>(nodes_.size()) - 1, level + 1);
  }

  std::span<const TreeSequence> sequences_;
  std::vector<TreeNode> nodes_;
};

}  // namespace

std::vector<TreeNode> MakePrefixTree(std::span<const TreeSequence> sequences, bool share) {
  std::vector<size_t> order(sequences.size());
  std::iota(order.begin(), order.end(), size_t{0});
  TreeBuilder builder(sequences);
  if (share) {
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::lexicographical_compare(sequences[a].tokens.begin(), sequences[a].tokens.end(),
                                          sequences[b].tokens.begin(), sequences[b].tokens.end());
    });
    builder.Add(order, 0, -1, 0);
  } else {
    for (const size_t& sequence : order) builder.Add({&sequence, 1}, 0, -1, 0);
  }
  return builder.Take();
}

}  // namespace lattice::eval
