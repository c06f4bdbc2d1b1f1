#include "cli/demo_recall.h"

#include <gtest/gtest.h>

#include <sstream>

namespace lattice::cli {
namespace {

constexpr const char* kLattice = "lattice_dec";
constexpr const char* kDelta = "deltanet";
constexpr const char* kLinear = "linear_attention";

class DemoOfSeed : public ::testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, DemoOfSeed, ::testing::Values(0, 100, 200));

// What the first table shows and claims does not depend on its seed.
TEST_P(DemoOfSeed, TheTableOfRecallShowsWhatItClaims) {
  const auto recall = [](const char* mixer, int64_t pairs, int64_t writes, double gate = 1) {
    return Recall(mixer, {.pairs = pairs, .writes = writes, .gate = gate, .seed = GetParam()});
  };
  for (const char* mixer : {kLattice, kDelta, kLinear}) EXPECT_GT(recall(mixer, 16, 1), 0.98) << mixer;
  // With more keys than slots and open gates, Lattice recalls more of them than DeltaNet.
  for (const int64_t writes : {1, 4}) {
    EXPECT_GT(recall(kLattice, 64, writes), recall(kDelta, 64, writes) - 0.01) << writes;
    EXPECT_GT(recall(kLattice, 96, writes), recall(kDelta, 96, writes)) << writes;
  }
  // Linear attention keeps what was written once, and cannot replace it.
  EXPECT_GT(recall(kLinear, 96, 1), recall(kLattice, 96, 1));
  EXPECT_LT(recall(kLinear, 32, 4), 0.4);
  EXPECT_GT(recall(kLattice, 32, 4), 0.95);
  // With gates half open, DeltaNet recalls more of what is replaced, as the table says.
  EXPECT_GT(recall(kDelta, 96, 4, 0.5), recall(kLattice, 96, 4, 0.5));
}

TEST_P(DemoOfSeed, TheTableOfChangesShowsWhatItClaims) {
  const auto change = [](const char* mixer, Offer offer) {
    return ChangeBy(mixer, offer, 32, 8, GetParam());
  };
  for (const char* mixer : {kLattice, kDelta}) {
    const double last = change(mixer, Offer::kLastPair).write,
                 early = change(mixer, Offer::kEarlierPair).write;
    EXPECT_LT(last, 0.5 * early) << mixer;
    EXPECT_LT(early, 0.7 * change(mixer, Offer::kNewValue).write) << mixer;
    EXPECT_LT(early, 0.7 * change(mixer, Offer::kNewPair).write) << mixer;
  }
  // Linear attention writes a known pair as strongly as a new one.
  EXPECT_NEAR(change(kLinear, Offer::kLastPair).write, change(kLinear, Offer::kNewPair).write, 0.02);
  EXPECT_LT(*change(kLattice, Offer::kLastPair).novelty, *change(kLattice, Offer::kNewValue).novelty - 0.1);
  EXPECT_FALSE(change(kDelta, Offer::kNewPair).novelty.has_value());
}

// The columns are aligned with their headings.
TEST(Demo, TablesAreAligned) {
  std::ostringstream out;
  ShowMemory(out);
  std::string line, head;
  int rows = 0;
  for (std::istringstream in(out.str()); std::getline(in, line);) {
    if (line.find("lattice deltanet   linear") != std::string::npos) head = line;
    if (head.empty() || line.find(" %") == std::string::npos ||
        line.find("from lattice") != std::string::npos)
      continue;
    ++rows;
    EXPECT_EQ(line.find(" %"), head.find("lattice") + 5) << line;
  }
  EXPECT_EQ(rows, 8);
}

}  // namespace
}  // namespace lattice::cli
