#include "train/segments.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace lattice::train {
namespace {

TEST(Segments, StartAtEveryEndOfText) {
  const std::vector<int64_t> tokens = {1, 2, 9, 3, 4, 9, 9, 5, 6, 9};
  const std::vector<Segment> expected = {{0, 0, 2}, {0, 2, 2}, {1, 0, 1}, {1, 1, 3}};
  EXPECT_EQ(DocumentSegments(tokens, 4, 9), expected);
  EXPECT_EQ(DocumentSegments(tokens, 9, 77), (std::vector<Segment>{{0, 0, 9}}));
}

TEST(Segments, AreGroupedWithLittlePadding) {
  const Random random(2);
  std::vector<int64_t> tokens(8 * 101);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int64_t>(random.Below(20, i));
  const std::vector<Segment> segments = DocumentSegments(tokens, 100, 3);
  int64_t sum = 0;
  size_t count = 0;
  for (const std::vector<Segment>& group : GroupSegments(segments, 200)) {
    int64_t own = 0;
    for (const Segment& segment : group) own += segment.length;
    const int64_t padded = group.front().length * static_cast<int64_t>(group.size());
    EXPECT_LE(padded, 200);
    EXPECT_LT(padded, 2 * own);
    sum += own;
    count += group.size();
  }
  EXPECT_EQ(sum, 800);
  EXPECT_EQ(count, segments.size());
}

}  // namespace
}  // namespace lattice::train
