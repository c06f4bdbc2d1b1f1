#include "model/mixers.h"

#include <gtest/gtest.h>

#include <set>

#include "io/testing.h"

namespace lattice::model {
namespace {

TEST(Mixers, AreTheTwelve) {
  const std::set<std::string_view> names(MixerNames().begin(), MixerNames().end());
  EXPECT_EQ(names, (std::set<std::string_view>{"lattice_dec", "lattice_enc", "lattice_sim",
                                               "linear_attention", "mamba2", "gla", "deltanet",
                                               "gated_deltanet", "rwkv7", "ttt", "mlstm", "transformer"}));
  EXPECT_EQ(Mixers().size(), names.size());
}

TEST(Mixers, HaveAnOperatorEach) {
  for (const MixerInfo& mixer : Mixers()) {
    SCOPED_TRACE(mixer.name);
    EXPECT_NE(mixer.objective.empty(), mixer.rule.empty());
    EXPECT_EQ(FindMixer(mixer.name).name, mixer.name);
    EXPECT_FALSE(mixer.summary.empty());
    EXPECT_EQ(mixer.flops_per_cell == 0, mixer.attention);
    EXPECT_TRUE(!mixer.needs_state || mixer.learned_state);
  }
}

TEST(Mixers, UnknownNamesTheNearest) {
  EXPECT_TRUE(
      io::Says(io::ErrorOf([] { FindMixer("lattice_dek"); }), {"lattice_dek", "mean \"lattice_dec\""}));
  EXPECT_TRUE(io::Says(io::ErrorOf([] { FindMixer("delta_net"); }), {"mean \"deltanet\""}));
}

}  // namespace
}  // namespace lattice::model
