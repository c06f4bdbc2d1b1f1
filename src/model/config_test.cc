#include "model/config.h"

#include <gtest/gtest.h>

#include <set>

#include "io/testing.h"
#include "model/keys.h"

namespace lattice::model {
namespace {

using io::ErrorOf;
using io::Says;

Config With(std::vector<std::string> overrides) { return LoadConfig("", overrides); }
std::string ParseError(std::string_view toml) {
  return ErrorOf([&] { ParseConfig(toml, "c.toml"); });
}
std::string OverrideError(std::string_view assignment) {
  Config config;
  const std::string message = ErrorOf([&] { Override(config, assignment); });
  EXPECT_EQ(config, Config()) << "a refused override changes nothing";
  return message;
}

TEST(Config, ReadsEveryType) {
  const Config config = ParseConfig(
      "[model]\nmixer = \"gla\"\nwidth = 256\nqk_norm = \"scale\"\ntie_embedding = false\n"
      "[train]\nlr = 1\nprecision = \"bf16\"\n[data]\ntrain = \"a b.txt\"\n",
      "c.toml");
  EXPECT_EQ(config.model.mixer, "gla");
  EXPECT_EQ(config.model.width, 256);
  EXPECT_EQ(config.model.qk_norm, VectorNorm::kScale);
  EXPECT_FALSE(config.model.tie_embedding);
  EXPECT_EQ(config.train.lr, 1.0);
  EXPECT_EQ(config.train.precision, Precision::kBf16);
  EXPECT_EQ(config.data.train, "a b.txt");
  EXPECT_EQ(config.model.layers, Config().model.layers);
}

TEST(Config, LayersMayDiffer) {
  const ModelConfig model = ParseConfig(
                                "[model]\nlayers = 5\nblock = \"attention\"\nwindow = 9\nsinks = 1\n"
                                "mixers = [\"lattice_dec+window\", \"transformer\"]\n",
                                "c.toml")
                                .model;
  Validate(model);
  EXPECT_EQ(model.MixerText(), "lattice_dec+window, transformer");
  EXPECT_EQ(model.MixerOf(3), "transformer");
  EXPECT_EQ(model.MixerOf(4), "lattice_dec+window");
  EXPECT_EQ(model.Layer(2).mixer, "lattice_dec");
  EXPECT_EQ(model.Layer(2).window, 9);
  EXPECT_EQ(model.Layer(3).window, 0);
  EXPECT_EQ(model.Layer(3).sinks, 0);
  EXPECT_TRUE(model.Grows() && model.HasMemory() && model.HasMemory(0) && !model.HasMemory(1));
  EXPECT_FALSE(With({"model.mixer=transformer+window", "model.block=attention"}).model.Grows());
  EXPECT_EQ(With({"model.mixers=deltanet,gla"}).model.MixerOf(1), "gla");
}

TEST(Config, RefusesStacksThatCannotBe) {
  const auto error = [](std::vector<std::string> overrides) { return ErrorOf([&] { With(overrides); }); };
  EXPECT_TRUE(Says(error({"model.mixers=deltanet,latice_dec"}), {"latice_dec", "lattice_dec"}));
  EXPECT_TRUE(Says(error({"model.mixers=deltanet,"}), {"unknown memory \"\""}));
  EXPECT_TRUE(Says(error({"model.mixer=deltanet+widow"}), {"deltanet+widow"}));
  EXPECT_TRUE(Says(error({"model.mixer=deltanet+window"}), {"deltanet+window", "block = \"attention\""}));
  EXPECT_TRUE(Says(error({"model.block=attention", "model.slots=7"}),
                   {"model.slots is 7", "64", "set model.slots to 0"}));
  EXPECT_TRUE(Says(error({"model.block=attention", "model.mixer=mamba2"}), {"mamba2", "paper"}));
  EXPECT_TRUE(Says(error({"model.block=attention", "model.rope_period=8"}), {"rope_period"}));
  EXPECT_TRUE(Says(error({"model.window=0"}), {"at least 1"}));
}

TEST(Config, UnknownKeyNamesPlaceAndNearest) {
  EXPECT_TRUE(Says(ParseError("[model]\nlayers = 2\nwidht = 3\n"),
                   {"c.toml:3:1", "unknown key \"widht\" in [model]", "did you mean \"width\"?"}));
  EXPECT_TRUE(Says(ParseError("[modle]\nwidth = 3\n"), {"c.toml:1:", "[modle]", "did you mean \"model\"?"}));
  EXPECT_TRUE(Says(ParseError("[extra]\n"), {"c.toml:1:", "unknown section [extra]"}));
  EXPECT_TRUE(Says(ParseError("[model]\nlr = 3\n"), {"c.toml:2:1", "did you mean \"train.lr\"?"}));
  EXPECT_TRUE(Says(ParseError("width = 3\n"), {"c.toml:1:1", "outside of [model], [train] and [data]"}));
}

TEST(Config, WrongTypeSaysWhatWasExpected) {
  EXPECT_TRUE(
      Says(ParseError("[model]\nwidth = \"3\"\n"), {"c.toml:2:1", "model.width", "an integer", "\"3\""}));
  EXPECT_TRUE(Says(ParseError("[model]\nwidth = 3.0\n"), {"an integer", "3.0"}));
  EXPECT_TRUE(Says(ParseError("[model]\ntie_embedding = 1\n"), {"true or false", "got 1"}));
  EXPECT_TRUE(Says(ParseError("[train]\nlr = true\n"), {"a number", "got true"}));
  EXPECT_TRUE(Says(ParseError("[data]\ntrain = 7\n"), {"a text", "got 7"}));
  EXPECT_TRUE(Says(ParseError("[model]\nqk_norm = 2\n"), {"one of: none, l2, scale"}));
  EXPECT_TRUE(Says(ParseError("[model]\nwidth = [3]\n"), {"c.toml:2:1"}));
}

TEST(Config, RangesAndChoices) {
  EXPECT_TRUE(Says(ParseError("[model]\nwidth = 0\n"), {"model.width must be at least 1, got 0"}));
  EXPECT_TRUE(Says(ParseError("[model]\nlayers = 9223372036854775807\n"), {"must be at most 4096"}));
  EXPECT_TRUE(Says(ParseError("[train]\nlr = -0.1\n"), {"train.lr must be at least 0.0, got -0.1"}));
  EXPECT_TRUE(Says(ParseError("[train]\nlr = nan\n"), {"got nan"}));
  EXPECT_TRUE(Says(ParseError("[train]\nlr = inf\n"), {"must be finite"}));
  EXPECT_TRUE(Says(ParseError("[train]\nbeta2 = 1.0\n"), {"train.beta2 must be at most"}));
  EXPECT_TRUE(
      Says(ParseError("[model]\nmixer = \"lattise_dec\"\n"),
           {"unknown model.mixer \"lattise_dec\"", "did you mean \"lattice_dec\"?", "gated_deltanet"}));
  EXPECT_TRUE(Says(ParseError("[model]\nqk_norm = \"l1\"\n"), {"unknown model.qk_norm", "none, l2, scale"}));
}

TEST(Config, OverridesEveryType) {
  const Config config = With({"model.width=256", "model.heads=4", "train.steps=1_000_000", "train.lr=1e-3",
                              "train.min_lr=+0.5", "model.tie_embedding=false", "model.mixer=mamba2",
                              "model.conv_activation=\"silu\"", "data.train=x=y.txt", "data.valid="});
  EXPECT_EQ(config.model.width, 256);
  EXPECT_EQ(config.train.steps, 1000000);
  EXPECT_EQ(config.train.lr, 1e-3);
  EXPECT_EQ(config.train.min_lr, 0.5);
  EXPECT_FALSE(config.model.tie_embedding);
  EXPECT_EQ(config.model.mixer, "mamba2");
  EXPECT_EQ(config.model.conv_activation, Activation::kSilu);
  EXPECT_EQ(config.data.train, "x=y.txt");
  EXPECT_EQ(config.data.valid, "");
}

TEST(Config, OverridesThatAreWrong) {
  EXPECT_TRUE(Says(OverrideError("model.width"), {"section.key=value"}));
  EXPECT_TRUE(Says(OverrideError("width=3"), {"section.key=value"}));
  EXPECT_TRUE(Says(OverrideError(""), {"section.key=value"}));
  EXPECT_TRUE(Says(OverrideError("modle.width=3"), {"did you mean \"model\"?"}));
  EXPECT_TRUE(Says(OverrideError("model.widht=3"), {"did you mean \"width\"?"}));
  EXPECT_TRUE(Says(OverrideError("train.step=3"), {"did you mean \"steps\"?"}));
  EXPECT_TRUE(Says(OverrideError("model.=3"), {"unknown key"}));
  for (const char* text :
       {"", "x", "3x", "3.5", "0x10", "1__0", "_1", "--3", "1e3", "99999999999999999999", " 3"}) {
    EXPECT_TRUE(Says(OverrideError("model.width=" + std::string(text)), {"an integer"})) << text;
  }
  for (const char* text : {"", "abc", "1.2.3", "1e", "++1"}) {
    EXPECT_TRUE(Says(OverrideError("train.lr=" + std::string(text)), {"a number"})) << text;
  }
  EXPECT_TRUE(Says(OverrideError("train.lr=nan"), {"got nan"}));
  EXPECT_TRUE(Says(OverrideError("model.tie_embedding=yes"), {"true or false", "\"yes\""}));
  EXPECT_TRUE(Says(OverrideError("model.mixer=LATTICE"), {"did you mean \"lattice_dec\"?"}));
}

TEST(Config, ValidatesWhatKeysCannotSay) {
  const auto message = [](std::vector<std::string> overrides) { return ErrorOf([&] { With(overrides); }); };
  EXPECT_TRUE(Says(message({"model.heads=3"}), {"heads = 3 does not divide model.width = 128"}));
  EXPECT_TRUE(Says(message({"model.mixer=gla", "model.method=linear1"}), {"lattice mixers only"}));
  EXPECT_TRUE(Says(message({"model.mixer=gla", "model.lam=0.1"}), {"lattice mixers only"}));
  EXPECT_TRUE(Says(message({"model.chunk=16"}), {"no chunks"}));
  EXPECT_TRUE(Says(message({"model.normalize=chunk"}), {"needs method linear1 or linear2"}));
  EXPECT_TRUE(Says(message({"model.state_init=zeros"}), {"cannot start from a zero state"}));
  EXPECT_TRUE(Says(message({"model.mixer=transformer", "model.heads=128"}), {"even number of features"}));
  EXPECT_TRUE(Says(message({"model.slots=3", "model.rope_period=64"}), {"even number of slots"}));
  EXPECT_TRUE(Says(message({"train.seq_len=8192"}), {"train.batch_tokens = 4096 is less than one sequence"}));
  EXPECT_NO_THROW(With({"model.method=linear1", "model.chunk=16", "model.normalize=chunk"}));
}

TEST(Config, TomlReadsBackEqual) {
  const Config config =
      With({"model.mixer=rwkv7", "model.slots=32", "train.lr=0.1234567890123456", "train.recompute=true",
            "data.train=C:\\a \"b\"\n\xc3\xa9.txt", "model.rope_period=64", "train.precision=fp32"});
  EXPECT_EQ(ParseConfig(ToToml(config), "printed"), config);
  EXPECT_EQ(ParseConfig(ToToml(Config()), "printed"), Config());
  EXPECT_TRUE(Says(ToToml(Config()), {"[model]\n", "\n[train]\n", "\n[data]\n", "width = 128"}));
}

TEST(Config, EveryKeyHasHelpAndAMemberOfItsOwn) {
  const Config defaults;
  std::set<std::string> names;
  const std::string help = ConfigHelp();
  for (const Key& key : Keys()) {
    const std::string name = std::string(key.section) + "." + std::string(key.name);
    SCOPED_TRACE(name);
    EXPECT_TRUE(names.insert(name).second);
    EXPECT_FALSE(key.help.empty());
    EXPECT_TRUE(Says(help, {"  " + name + " = "}));
    EXPECT_NO_THROW(CheckValue(key, key.get(defaults), "default"));
    // Setting the key changes the config, and the value that is read back.
    Value other = key.get(defaults);
    if (key.type == KeyType::kBool) other = !std::get<bool>(other);
    if (key.type == KeyType::kInteger) other = std::get<int64_t>(other) + 1;
    if (key.type == KeyType::kNumber) other = std::get<double>(other) / 2 + 0.25;
    if (key.type == KeyType::kText) other = std::get<std::string>(other) + "x";
    if (key.type == KeyType::kChoice) other = std::string(key.choices().back());
    Config changed = defaults;
    key.set(changed, other);
    EXPECT_EQ(key.get(changed), other);
    EXPECT_EQ(changed == defaults, other == key.get(defaults));
    for (const Key& unchanged : Keys()) {
      if (&unchanged == &key) continue;
      EXPECT_EQ(unchanged.get(changed), unchanged.get(defaults)) << unchanged.name;
    }
  }
}

TEST(Config, PresetsLoadAndTinyIsTheDefault) {
  EXPECT_EQ(LoadConfig("configs/tiny.toml"), Config());
  for (const char* name : {"small", "110m", "340m", "760m"}) {
    EXPECT_NO_THROW(LoadConfig("configs/" + std::string(name) + ".toml")) << name;
  }
  const Config large = LoadConfig("configs/340m.toml");
  EXPECT_EQ(large.model.Hidden(), 2736);
  EXPECT_EQ(large.model.HeadDim(), 64);
  EXPECT_EQ(large.model.Slots(), 64);
  EXPECT_EQ(large.train.warmup, 1000);
  EXPECT_EQ(large.train.min_lr, 3e-5);
  EXPECT_TRUE(Says(ErrorOf([] { LoadConfig("configs/none.toml"); }), {"configs/none.toml", "No such file"}));
}

TEST(Config, PresetsAreFoundByNameAndFromAnyDirectory) {
  const Config small = LoadConfig("configs/small.toml");
  const std::filesystem::path tree = std::filesystem::current_path();
  const io::TestDir elsewhere;
  std::filesystem::current_path(elsewhere.path());
  EXPECT_EQ(LoadConfig("configs/small.toml"), small);
  EXPECT_EQ(LoadConfig("small"), small);
  EXPECT_EQ(LoadConfig("small.toml"), small);
  // A local file takes precedence; a directory of that name is ignored.
  std::filesystem::create_directory(elsewhere / "small");
  EXPECT_EQ(LoadConfig("small"), small);
  elsewhere.Put("110m", "[train]\nsteps = 3\n");
  EXPECT_EQ(LoadConfig("110m").train.steps, 3);
  EXPECT_TRUE(Says(ErrorOf([] { LoadConfig("smal"); }), {"smal: No such file", "such as tiny"}));
  std::filesystem::current_path(tree);
}

}  // namespace
}  // namespace lattice::model
