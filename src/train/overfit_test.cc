// A correctly wired model can memorise one paragraph, whatever its memory.
#include <gtest/gtest.h>

#include <string>

#include "io/testing.h"
#include "kernels/registry.h"
#include "train/learner.h"

namespace lattice::train {
namespace {

constexpr std::string_view kParagraph =
    "She had been forced into prudence in her youth, she learned romance as she grew older: the natural "
    "sequel of an "
    "unnatural beginning. How eloquent could Anne Elliot have been; how eloquent, at least, were her wishes "
    "on the side "
    "of early warm attachment.";

class EveryMixer : public ::testing::TestWithParam<std::string_view> {};

INSTANTIATE_TEST_SUITE_P(Registry, EveryMixer,
                         ::testing::ValuesIn(kernels::MemoryNames().begin(), kernels::MemoryNames().end()),
                         [](const auto& name) { return std::string(name.param); });

TEST_P(EveryMixer, LearnsAParagraphByHeart) {
  const io::TestDir dir;
  model::Config config;
  config.data.train = dir.Put("paragraph.txt", kParagraph).string();
  config.data.valid_fraction = 0;
  config.model.mixer = std::string(GetParam());
  config.model.layers = 2;
  config.model.width = 64;
  config.train.seq_len = config.train.batch_tokens = static_cast<int64_t>(kParagraph.size()) - 1;
  config.train.steps = 400;
  config.train.warmup = 20;
  // Enc's update grows with the length of the values, so it diverges at the learning rate of the others.
  config.train.lr = GetParam() == "lattice_enc" ? 3e-3 : 1e-2;
  config.train.weight_decay = 0;
  config.train.precision = model::Precision::kFp32;
  Learner learner(config, dir / "cache", {});
  double bits = 8;
  while (learner.state().step < config.train.steps && bits >= 0.1) bits = learner.Step().bits_per_byte;
  EXPECT_LT(bits, 0.1);
  RecordProperty("steps", static_cast<int>(learner.state().step));
}

}  // namespace
}  // namespace lattice::train
