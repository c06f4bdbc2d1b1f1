#include "eval/prefix_tree.h"

#include <gtest/gtest.h>

namespace lattice::eval {
namespace {

using Tokens = std::vector<int32_t>;

// Every sequence is the join of the nodes on its way, and nothing is read twice when it need not be.
void ExpectCovers(const std::vector<Tokens>& sequences, const std::vector<TreeNode>& nodes) {
  std::vector<size_t> covered(sequences.size(), 0);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const TreeNode& node = nodes[i];
    ASSERT_LT(node.parent, static_cast<int64_t>(i));
    ASSERT_LT(node.begin, node.end);
    const size_t before = node.parent < 0 ? 0 : nodes[static_cast<size_t>(node.parent)].end;
    EXPECT_EQ(node.begin, before);
    EXPECT_EQ(node.level, node.parent < 0 ? 0 : nodes[static_cast<size_t>(node.parent)].level + 1);
    for (const size_t sequence : node.sequences) {
      EXPECT_EQ(covered[sequence], node.begin);
      covered[sequence] = node.end;
      EXPECT_TRUE(std::equal(sequences[sequence].begin(),
                             sequences[sequence].begin() + static_cast<std::ptrdiff_t>(node.end),
                             sequences[node.sequences.front()].begin()));
    }
  }
  for (size_t i = 0; i < sequences.size(); ++i) EXPECT_EQ(covered[i], sequences[i].size());
}

std::vector<TreeNode> Tree(const std::vector<Tokens>& sequences, size_t border, bool share = true) {
  std::vector<TreeSequence> views;
  for (const Tokens& tokens : sequences) views.push_back({tokens, border});
  return MakePrefixTree(views, share);
}

TEST(PrefixTree, SharesWhatIsCommonAndEndsAtTheBorder) {
  const std::vector<Tokens> sequences = {
      {1, 2, 3, 4, 5}, {1, 2, 3, 4, 6}, {1, 2, 3, 9}, {1, 2, 3}, {7, 2, 3}};
  const std::vector<TreeNode> nodes = Tree(sequences, 2);
  ExpectCovers(sequences, nodes);
  size_t tokens = 0;
  for (const TreeNode& node : nodes) {
    tokens += node.end - node.begin;
    EXPECT_FALSE(node.begin < 2 && node.end > 2);
  }
  EXPECT_EQ(tokens, 4u + 1 + 1 + 1 + 3);
}

TEST(PrefixTree, EqualSequencesAreOne) {
  const std::vector<Tokens> sequences(3, Tokens{1, 2, 3});
  const std::vector<TreeNode> nodes = Tree(sequences, 3);
  ExpectCovers(sequences, nodes);
  ASSERT_EQ(nodes.size(), 1u);
  EXPECT_EQ(nodes[0].sequences.size(), 3u);
}

TEST(PrefixTree, WithoutSharingEachReadsAlone) {
  const std::vector<Tokens> sequences(3, Tokens{1, 2, 3});
  const std::vector<TreeNode> nodes = Tree(sequences, 2, false);
  ExpectCovers(sequences, nodes);
  EXPECT_EQ(nodes.size(), 6u);
}

}  // namespace
}  // namespace lattice::eval
