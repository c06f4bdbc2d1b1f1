// Session files that are damaged, forged or something else entirely are refused with a message that says why.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/random.h"
#include "io/file.h"
#include "io/hash.h"
#include "io/safetensors.h"
#include "io/testing.h"
#include "runtime/engine.h"
#include "runtime/testing.h"

namespace lattice::runtime {
namespace {

std::shared_ptr<const Model> TinyModel(std::string_view mixer, uint64_t seed = 1,
                                       WeightFormat format = WeightFormat::kF32) {
  return Model::Untrained(TinyConfig(mixer), seed, format);
}

void SaveSession(const std::shared_ptr<const Model>& model, const std::filesystem::path& path) {
  Engine engine(model, 1);
  Session session(model);
  engine.Append(session, TestTokens(9));
  session.Save(path);
}

struct Tensor {
  std::string name;
  io::Dtype dtype = io::Dtype::kF32;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;

  void Set(size_t i, float value) { std::memcpy(bytes.data() + i * sizeof(value), &value, sizeof(value)); }
};

// The parsed contents of a session file, to be modified and written again.
struct Parts {
  explicit Parts(const std::filesystem::path& path) {
    const io::Safetensors file(path);
    metadata = file.metadata();
    for (const auto& [name, view] : file.tensors())
      tensors.push_back({name, view.dtype, view.shape, {view.bytes.begin(), view.bytes.end()}});
  }

  Tensor& Find(std::string_view part) {
    return *std::find_if(tensors.begin(), tensors.end(),
                         [&](const Tensor& tensor) { return tensor.name.find(part) != std::string::npos; });
  }

  // The checksum that belongs to the contents: docs/runtime.md.
  void Seal() {
    io::Sha256 hash;
    if (metadata.contains("position")) hash.Update(metadata.at("position"));
    std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    for (const Tensor& tensor : tensors) {
      hash.Update(StrCat("\n", tensor.name, " ", tensor.bytes.size(), "\n"));
      hash.Update(std::span<const std::byte>(tensor.bytes));
    }
    metadata["checksum"] = hash.Finish();
  }

  void Write(const std::filesystem::path& path) const {
    std::vector<io::TensorView> views;
    for (const Tensor& t : tensors) views.push_back({t.name, t.dtype, t.shape, t.bytes});
    io::WriteSafetensors(path, views, metadata);
  }

  io::Metadata metadata;
  std::vector<Tensor> tensors;
};

struct Case {
  std::string name;
  std::string mixer;
  std::function<void(Parts&)> change;
  std::string expected;
  bool seal = true;  // with a checksum that fits: the other checks must hold alone
};

std::vector<Case> Values(const std::string& mixer) {
  std::vector<Case> cases;
  for (const auto& [name, value] : {std::pair<std::string, float>{"nan", std::nanf("")},
                                    {"infinity", std::numeric_limits<float>::infinity()},
                                    {"minus_infinity", -std::numeric_limits<float>::infinity()}}) {
    for (const bool last : {false, true}) {
      cases.push_back({name + (last ? "_last" : "_first"), mixer,
                       [value = value, last](Parts& parts) {
                         Tensor& tensor = last ? parts.tensors.back() : parts.tensors.front();
                         tensor.Set(last ? tensor.bytes.size() / sizeof(float) - 1 : 0, value);
                       },
                       "not a number"});
    }
  }
  cases.push_back({"changed_value", mixer, [](Parts& parts) { parts.tensors[0].Set(0, 0.125f); },
                   "checksum does not match", false});
  return cases;
}

std::vector<Case> Positions(const std::string& mixer) {
  std::vector<Case> cases;
  const std::vector<std::pair<std::string, std::string>> wrong = {{"empty", ""},
                                                                  {"negative", "-1"},
                                                                  {"word", "nine"},
                                                                  {"trailing", "9 "},
                                                                  {"plus", "+9"},
                                                                  {"fraction", "9.0"},
                                                                  {"hexadecimal", "0x9"},
                                                                  {"over_the_limit", "281474976710657"},
                                                                  {"overflow", "99999999999999999999999"},
                                                                  {"wraps_to_nine", "18446744073709551625"}};
  for (const auto& [name, text] : wrong) {
    cases.push_back({"position_" + name, mixer,
                     [text = text](Parts& parts) { parts.metadata["position"] = text; },
                     "not a count of tokens"});
  }
  cases.push_back({"position_changed", mixer, [](Parts& parts) { parts.metadata["position"] = "8"; },
                   mixer == "transformer" ? "has shape" : "checksum does not match", false});
  return cases;
}

std::vector<Case> Metadata(const std::string& mixer) {
  std::vector<Case> cases;
  for (const std::string key : {"kind", "model", "position"}) {
    cases.push_back({"without_" + key, mixer, [key](Parts& parts) { parts.metadata.erase(key); },
                     "lacks \"" + key + "\""});
  }
  cases.push_back({"without_checksum", mixer, [](Parts& parts) { parts.metadata.erase("checksum"); },
                   "lacks \"checksum\"", false});
  cases.push_back({"without_metadata", mixer, [](Parts& parts) { parts.metadata.clear(); }, "lacks", false});
  cases.push_back({"kind_of_the_future", mixer,
                   [](Parts& parts) { parts.metadata["kind"] = "lattice session 2"; }, "of the kind"});
  cases.push_back(
      {"model_empty", mixer, [](Parts& parts) { parts.metadata["model"] = ""; }, "another model"});
  cases.push_back({"model_in_capitals", mixer,
                   [](Parts& parts) {
                     for (char& c : parts.metadata["model"]) c = static_cast<char>(std::toupper(c));
                   },
                   "another model"});
  cases.push_back({"checksum_empty", mixer, [](Parts& parts) { parts.metadata["checksum"] = ""; },
                   "checksum does not match", false});
  return cases;
}

std::vector<Case> Tensors(const std::string& mixer) {
  return {
      {"no_tensors", mixer, [](Parts& parts) { parts.tensors.clear(); }, "holds 0 tensors"},
      {"one_missing", mixer, [](Parts& parts) { parts.tensors.pop_back(); }, "tensors; a session"},
      {"one_more", mixer,
       [](Parts& parts) {
         parts.tensors.push_back({"more", io::Dtype::kF32, {0}, {}});
       },
       "tensors; a session"},
      {"renamed", mixer, [](Parts& parts) { parts.tensors[0].name += "x"; }, "x"},
      {"other_layer", mixer, [](Parts& parts) { parts.tensors[0].name[7] = '7'; }, "blocks"},
      {"transposed", mixer,
       [](Parts& parts) { std::reverse(parts.tensors[0].shape.begin(), parts.tensors[0].shape.end()); },
       "has shape"},
      {"flat", mixer,
       [](Parts& parts) {
         parts.tensors[0].shape = {static_cast<int64_t>(parts.tensors[0].bytes.size() / sizeof(float))};
       },
       "has shape"},
      {"more_dimensions", mixer, [](Parts& parts) { parts.tensors[0].shape.push_back(1); }, "has shape"},
      {"empty_tensor", mixer,
       [](Parts& parts) {
         parts.tensors[0].shape[0] = 0;
         parts.tensors[0].bytes.clear();
       },
       "has shape"},
      {"integers", mixer, [](Parts& parts) { parts.tensors[0].dtype = io::Dtype::kI32; }, "expected F32"},
      {"half_the_width", mixer,
       [](Parts& parts) {
         parts.tensors[0].dtype = io::Dtype::kBF16;
         parts.tensors[0].bytes.resize(parts.tensors[0].bytes.size() / 2);
       },
       "expected F32"},
  };
}

std::vector<Case> AllCases() {
  std::vector<Case> all;
  for (const std::string mixer : {"lattice_dec", "mlstm", "transformer"}) {
    for (const auto& part : {Values(mixer), Positions(mixer), Metadata(mixer), Tensors(mixer)})
      all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

class HostileSession : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Files, HostileSession, testing::ValuesIn(AllCases()),
                         [](const auto& each) { return each.param.mixer + "_" + each.param.name; });

TEST_P(HostileSession, IsRefused) {
  const auto model = TinyModel(GetParam().mixer);
  const io::TestDir dir;
  const auto path = dir / "session.safetensors";
  SaveSession(model, path);
  Parts parts(path);
  parts.Seal();
  parts.Write(path);
  ASSERT_EQ(Session::Load(model, path).position(), 9) << "the file must be good before the change";
  GetParam().change(parts);
  if (GetParam().seal) parts.Seal();
  parts.Write(path);
  EXPECT_TRUE(io::Says(io::ErrorOf([&] { Session::Load(model, path); }), {GetParam().expected}));
}

class DamagedSession : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Mixers, DamagedSession,
                         testing::Values("lattice_dec", "transformer", "lattice_dec+window"),
                         [](const auto& mixer) { return model::TestName(mixer.param); });

TEST_P(DamagedSession, EveryTruncationIsRefused) {
  const auto model = TinyModel(GetParam());
  const io::TestDir dir;
  SaveSession(model, dir / "good");
  const std::string good = io::ReadFile(dir / "good");
  for (size_t size = 0; size < good.size(); size += size < 64 || size + 64 > good.size() ? 1 : 13) {
    const auto path = dir.Put("cut", std::string_view(good).substr(0, size));
    ASSERT_NE(io::ErrorOf([&] { Session::Load(model, path); }), "no error") << size;
  }
  EXPECT_NE(io::ErrorOf([&] { Session::Load(model, dir.Put("long", good + "x")); }), "no error");
  EXPECT_NE(io::ErrorOf([&] { Session::Load(model, dir.Put("twice", good + good)); }), "no error");
}

TEST_P(DamagedSession, EveryFlippedBitIsRefused) {
  const auto model = TinyModel(GetParam());
  const io::TestDir dir;
  SaveSession(model, dir / "good");
  std::string bytes = io::ReadFile(dir / "good");
  const Random random(8);
  for (size_t i = 0; i < bytes.size(); ++i) {
    const char before = bytes[i];
    bytes[i] = static_cast<char>(before ^ (1 << random.Below(8, i)));
    const auto path = dir.Put("flipped", bytes);
    ASSERT_NE(io::ErrorOf([&] { Session::Load(model, path); }), "no error") << i;
    bytes[i] = before;
  }
}

TEST(ForeignSession, OfAnotherModelOrFormatIsRefused) {
  const auto model = TinyModel("lattice_dec");
  const io::TestDir dir;
  const auto path = dir / "session.safetensors";
  for (const auto& other : {TinyModel("lattice_dec", 2), TinyModel("deltanet"), TinyModel("transformer"),
                            TinyModel("lattice_dec", 1, WeightFormat::kInt8)}) {
    SaveSession(other, path);
    EXPECT_TRUE(io::Says(io::ErrorOf([&] { Session::Load(model, path); }), {"another model"}));
  }
  EXPECT_NE(io::ErrorOf([&] { Session::Load(model, dir / "none"); }), "no error");
  EXPECT_NE(io::ErrorOf([&] { Session::Load(model, dir.path()); }), "no error");
}

TEST(ForeignSession, ChunkedModelsAreRefused) {
  for (const model::Method method : {model::Method::kLinear1, model::Method::kLinear2}) {
    for (const int64_t sweeps : {1, 3}) {
      model::ModelConfig config = TinyConfig("lattice_dec");
      config.method = method;
      config.chunk = 16;
      config.sweeps = sweeps;
      EXPECT_TRUE(io::Says(io::ErrorOf([&] { Model::Untrained(config, 1, WeightFormat::kF32); }),
                           {"exact recurrence only", "model.chunk = 16"}));
    }
  }
}

}  // namespace
}  // namespace lattice::runtime
