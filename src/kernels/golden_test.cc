// The kernels and the reference against the golden vectors (tests/golden/README.md), in both precisions and
// under every instruction set.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "io/json.h"
#include "io/safetensors.h"
#include "kernels/contract/test_case.h"

namespace lattice::kernels {
namespace {

const std::filesystem::path kFolder = "tests/golden";

// One file of golden vectors, with the tolerances that it states.
class Golden {
 public:
  explicit Golden(const std::string& name)
      : name_(name),
        file_(kFolder / (name + ".safetensors")),
        meta_(io::ParseJson(file_.metadata().at("json"), name)) {}

  bool Has(const std::string& key) const { return file_.Has(key); }
  const io::TensorView& Get(const std::string& key) const { return file_.Get(key); }

  Variant variant() const {
    if (meta_["kind"] == "baseline") return {meta_["name"], true};
    const Normalize normalize = meta_["normalize"] == "token" ? Normalize::kToken : Normalize::kNone;
    const Objective objective = ObjectiveNamed(std::string(meta_["objective"])).value();
    return {FindMemory(objective).name, true, Has("lam"), normalize};
  }

  // [B,L,H] gates become [B,L,H,1].
  template <typename T>
  Tensor<T> Load(const std::string& key) const {
    const io::TensorView& x = Get(key);
    Tensor<T> tensor(x.shape[0], x.shape[1], x.shape[2], x.shape.size() == 4 ? x.shape[3] : 1,
                     Layout::kDense);
    const auto values = x.As<double>();
    for (size_t i = 0; i < values.size(); ++i) tensor.data()[i] = static_cast<T>(values[i]);
    return tensor;
  }

  // A state and what follows it in mlstm: `prefix`S`suffix` [B,H,M,D], n [B,H,M], m [B,H], as
  // [B,1,H,state_size].
  std::vector<std::string> StateParts(const std::string& prefix, const std::string& suffix) const {
    std::vector<std::string> keys = {prefix + "S" + suffix};
    if (Has(prefix + "n" + suffix)) keys.insert(keys.end(), {prefix + "n" + suffix, prefix + "m" + suffix});
    return keys;
  }
  template <typename T>
  Tensor<T> LoadState(const std::string& prefix, const std::string& suffix, int64_t size) const {
    const std::vector<std::string> keys = StateParts(prefix, suffix);
    const int64_t B = Get(keys[0]).shape[0], H = Get(keys[0]).shape[1];
    Tensor<T> state(B, 1, H, size, Layout::kDense);
    int64_t at = 0;
    for (const std::string& key : keys) {
      const auto values = Get(key).As<double>();
      const int64_t part = static_cast<int64_t>(values.size()) / (B * H);
      for (size_t i = 0; i < values.size(); ++i) {
        state.data()[i / part * size + at + i % part] = static_cast<T>(values[i]);
      }
      at += part;
    }
    return state;
  }

  template <typename T>
  double Tolerance(const std::string& key) const {
    const auto measured = [&](const char* table) {
      return meta_.contains(table) && meta_[table].contains(key) ? meta_[table][key].get<double>() : 0.0;
    };
    if (sizeof(T) == 8) return std::max(1e-11, 100 * measured("float64_noise"));
    const double floor = name_.find("mlstm") == std::string::npos ? 1e-5 : 1e-4;
    return std::max(floor, 20 * measured("float32_rel_err"));
  }

 private:
  std::string name_;
  io::Safetensors file_;
  nlohmann::json meta_;
};

template <typename T>
Case<T> CaseOf(const Golden& golden) {
  Case<T> c;
  c.variant = golden.variant();
  const auto& k = golden.Get("K").shape;
  c.shape = {k[3], golden.Get("V").shape[3], k[1], k[2], k[0]};
  for (int64_t b = 0; b < k[0]; ++b) c.sequences.push_back({b, 0, k[1]});
  PlaceSaved(c.variant, c.shape, c.sequences);
  c.in["q"] = golden.Load<T>("Q");
  c.in["k"] = golden.Load<T>("K");
  c.in["v"] = golden.Load<T>("V");
  for (const GateInfo& gate : FindMemory(c.variant.rule).gates) {
    if (golden.Has(gate.name)) c.in[gate.name] = golden.Load<T>(gate.name);
  }
  const int64_t size = FindMemory(c.variant.rule).StateSize(c.shape.M, c.shape.D);
  c.in["state"] = golden.LoadState<T>("", "0", size);
  c.dy = golden.Load<T>("dY");
  c.dstate_out = golden.LoadState<T>("d", "_final", size);
  return c;
}

template <typename T>
void Compare(const Golden& golden, const std::string& key, const Tensor<T>& got, const Tensor<double>& want) {
  EXPECT_LE(MaxError(got, want), golden.Tolerance<T>(key) * MaxAbs(want)) << key;
}

// Part by part: n and m of mlstm have scales of their own.
template <typename T>
void CompareState(const Golden& golden, const std::string& prefix, const std::string& suffix,
                  const Tensor<T>& got) {
  const Tensor<double> want = golden.LoadState<double>(prefix, suffix, got.X());
  int64_t at = 0;
  for (const std::string& key : golden.StateParts(prefix, suffix)) {
    const int64_t part = golden.Get(key).elements() / (got.B() * got.H());
    Tensor<T> got_part(got.B(), 1, got.H(), part, Layout::kDense);
    Tensor<double> want_part(got.B(), 1, got.H(), part, Layout::kDense);
    got_part.ForEach([&](int64_t b, int64_t t, int64_t h, int64_t x) {
      got_part.At(b, t, h, x) = got.At(b, t, h, at + x);
      want_part.At(b, t, h, x) = want.At(b, t, h, at + x);
    });
    Compare(golden, key, got_part, want_part);
    at += part;
  }
}

template <typename T>
void CompareResults(const Golden& golden, const Results<T>& r) {
  Compare(golden, "Y", r.y, golden.Load<double>("Y"));
  CompareState(golden, "", "_final", r.state_out);
  CompareState(golden, "d", "0", r.grads.at("state"));
  std::vector<std::pair<std::string, std::string>> grads = {{"q", "dQ"}, {"k", "dK"}, {"v", "dV"}};
  for (const GateInfo& gate : FindMemory(golden.variant().rule).gates)
    grads.push_back({gate.name, "d" + gate.name});
  for (const auto& [name, key] : grads) {
    const auto grad = r.grads.find(name);
    ASSERT_EQ(grad != r.grads.end(), golden.Has(key)) << key;
    if (grad != r.grads.end()) Compare(golden, key, grad->second, golden.Load<double>(key));
  }
}

std::vector<std::string> GoldenNames() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    const std::string name = entry.path().stem().string();
    const bool recurrent = name.starts_with("exact_") || name.starts_with("baseline_");
    if (recurrent && name != "baseline_softmax_attention") names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

class GoldenTest : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenTest, Kernels) {
  const Golden golden(GetParam());
  ForEachIsa([&](const std::string& isa) {
    SCOPED_TRACE(isa);
    CompareResults(golden, RunKernels(CaseOf<double>(golden)));
    CompareResults(golden, RunKernels(CaseOf<float>(golden)));
  });
}

TEST_P(GoldenTest, Reference) {
  const Golden golden(GetParam());
  CompareResults(golden, RunReference(CaseOf<double>(golden)));
  CompareResults(golden, RunReference(CaseOf<float>(golden)));
}

INSTANTIATE_TEST_SUITE_P(Files, GoldenTest, ::testing::ValuesIn(GoldenNames()),
                         [](const auto& named) { return named.param; });

// Nine memories and fourteen cases of the exact recurrence: a file that disappears is noticed.
TEST(GoldenFiles, AreAllThere) { EXPECT_EQ(GoldenNames().size(), 23u); }

}  // namespace
}  // namespace lattice::kernels
