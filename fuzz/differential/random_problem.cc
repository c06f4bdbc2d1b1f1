#include "random_problem.h"

#include <cmath>

#include "base/error.h"
#include "base/random.h"

namespace lattice::differential {
namespace {

using namespace kernels;

// Draws one after the other from a stream of random numbers.
class Draw {
 public:
  Draw(uint64_t seed, uint64_t stream) : random_(seed, stream) {}

  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_.Below(static_cast<uint64_t>(high - low + 1), next_++));
  }
  double Uniform() { return random_.Uniform(next_++); }
  bool Chance(double share) { return Uniform() < share; }

 private:
  Random random_;
  uint64_t next_ = 0;
};

// Streams of random numbers beside those that MakeCase uses, which count from one.
constexpr uint64_t kShapeStream = 1000, kHostileStream = 1001, kShiftStream = 1002;

// Small sizes, where tails are, more often than large ones.
int64_t DrawSize(Draw& draw) { return draw.Chance(0.6) ? draw.Between(1, 9) : draw.Between(10, 70); }

int64_t DrawLength(Draw& draw) {
  if (draw.Chance(0.6)) return draw.Between(1, 6);
  return draw.Chance(0.7) ? draw.Between(kBlock - 2, kBlock + 3) : draw.Between(1, 2 * kBlock + 4);
}

Shape DrawShape(Draw& draw) {
  Shape shape{DrawSize(draw), DrawSize(draw), DrawLength(draw)};
  shape.H = draw.Between(1, 3), shape.N = draw.Between(1, 4);
  shape.layout = static_cast<Layout>(draw.Between(0, 2));
  // The references are slow: most problems are small, some are large.
  const int64_t most = draw.Chance(0.95) ? 6'000 : 100'000;
  const auto elements = [&] { return shape.M * shape.D * shape.T * shape.H * shape.N; };
  while (shape.N > 1 && elements() > most) --shape.N;
  while (shape.H > 1 && elements() > most) --shape.H;
  while (shape.T > 1 && elements() > most) shape.T = (shape.T + 1) / 2;
  if (draw.Chance(0.4)) {
    shape.ragged = true;
    for (int64_t n = 0; n < shape.N; ++n)
      shape.lengths.push_back(draw.Chance(0.2) ? 0 : draw.Between(1, shape.T));
  }
  return shape;
}

Hostility DrawHostility(Draw& draw) {
  Hostility h;
  if (draw.Chance(0.3)) return h;
  const auto share = [&] { return draw.Chance(0.5) ? 0 : draw.Chance(0.3) ? 1 : 0.5 * draw.Uniform(); };
  h.gates_at_ends = share(), h.zero_keys = 0.5 * share(), h.zero_values = 0.5 * share();
  h.repeated = draw.Chance(0.1);
  h.extreme = draw.Chance(0.05);
  if (h.extreme || draw.Chance(0.3)) {
    for (int& exponent : h.exponents)
      exponent =
          draw.Chance(0.4) ? 0 : static_cast<int>(h.extreme ? draw.Between(-30, 30) : draw.Between(-6, 3));
  }
  return h;
}

template <typename T, class Change>
void ChangeEach(Tensor<T>& x, const Change& change) {
  x.ForEach([&](int64_t b, int64_t t, int64_t h, int64_t i) {
    T& value = x.At(b, t, h, i);
    value = static_cast<T>(change(value));
  });
}

// Sets the vectors of some tokens to zero.
template <typename T>
void ZeroTokens(double share, Draw& draw, Tensor<T>& x) {
  if (share == 0) return;
  for (int64_t b = 0; b < x.B(); ++b) {
    for (int64_t t = 0; t < x.length(); ++t) {
      for (int64_t h = 0; h < x.H(); ++h) {
        if (!draw.Chance(share)) continue;
        for (int64_t i = 0; i < x.X(); ++i) x.At(b, t, h, i) = 0;
      }
    }
  }
}

template <typename T>
void GatesToEnds(double share, const std::vector<GateInfo>& gates, Draw& draw, Tensors<T>& in) {
  for (const GateInfo& gate : gates) {
    if (!in.contains(gate.name) || share == 0) continue;
    const bool bounded = gate.form != GateForm::kLinear;
    // A shrink gate is a threshold, not a share: 1 would leave nothing of a slot.
    const double top = gate.role == GateRole::kShrink ? 0.01 : bounded ? 1 : 20;
    ChangeEach(in.at(gate.name), [&](T value) -> double {
      if (!draw.Chance(share)) return value;
      return draw.Chance(0.5) ? top : bounded ? 0 : -top;
    });
  }
}

template <typename T>
void RepeatFirstToken(const std::vector<Sequence>& sequences, Tensor<T>& x) {
  for (const Sequence& s : sequences) {
    for (int64_t t = s.begin + 1; t < s.begin + s.length; ++t) {
      for (int64_t h = 0; h < x.H(); ++h) {
        for (int64_t i = 0; i < x.X(); ++i) x.At(s.batch, t, h, i) = x.At(s.batch, s.begin, h, i);
      }
    }
  }
}

template <typename T>
void Scale(int exponent, Tensor<T>& x) {
  const double factor = std::pow(10.0, exponent);
  if (exponent != 0) ChangeEach(x, [&](T value) { return static_cast<float>(factor * value); });
}

template <typename T>
void MakeHostile(const RandomProblem& problem, Case<T>& c) {
  const Hostility& hostility = problem.hostility;
  Draw draw(problem.seed, kHostileStream);
  ZeroTokens(hostility.zero_keys, draw, c.in.at("k"));
  ZeroTokens(hostility.zero_values, draw, c.in.at("v"));
  GatesToEnds(hostility.gates_at_ends, FindMemory(problem.variant.rule).gates, draw, c.in);
  if (hostility.repeated) {
    for (auto& [name, x] : c.in) {
      if (name != "state") RepeatFirstToken(c.sequences, x);
    }
  }
  const char* const scaled[] = {"k", "v", "q", "state"};
  for (size_t i = 0; i < std::size(scaled); ++i) Scale(hostility.exponents[i], c.in.at(scaled[i]));
}

template <typename T>
void Shift(uint64_t seed, double most, Case<T>& c) {
  Draw draw(seed, kShiftStream);
  for (auto& [name, x] : c.in)
    ChangeEach(x, [&](T value) { return value * (1 + most * (2 * draw.Uniform() - 1)); });
}

}  // namespace

RandomProblem DrawProblem(uint64_t seed) {
  Draw draw(seed, kShapeStream);
  const std::vector<std::string> rules = RuleNames();
  const std::string& rule =
      rules[static_cast<size_t>(draw.Between(0, static_cast<int64_t>(rules.size()) - 1))];
  const std::vector<Variant> variants = VariantsOf(rule);
  RandomProblem problem;
  problem.seed = seed;
  problem.variant = variants[static_cast<size_t>(draw.Between(0, static_cast<int64_t>(variants.size()) - 1))];
  problem.shape = DrawShape(draw);
  // A slot of width one cannot turn: what a hostile step leaves of it is rounding, whatever computes it.
  if (problem.shape.D > 1) problem.hostility = DrawHostility(draw);
  return problem;
}

std::string Text(const RandomProblem& problem) {
  const Hostility& h = problem.hostility;
  std::string text = Text(problem.variant) + ", " + Text(problem.shape);
  if (h.gates_at_ends > 0) text += StrCat(", gates at their ends ", h.gates_at_ends);
  if (h.zero_keys > 0) text += StrCat(", zero keys ", h.zero_keys);
  if (h.zero_values > 0) text += StrCat(", zero values ", h.zero_values);
  if (h.repeated) text += ", repeated";
  for (size_t i = 0; i < h.exponents.size(); ++i) {
    const char* const names[] = {"k", "v", "q", "state"};
    if (h.exponents[i] != 0) text += StrCat(", ", names[i], " x 1e", h.exponents[i]);
  }
  return text;
}

template <typename T>
Case<T> MakeProblem(const RandomProblem& problem, double shift) {
  Case<T> c = MakeCase<T>(problem.variant, problem.shape, problem.seed);
  MakeHostile(problem, c);
  if (shift > 0) Shift(problem.seed, shift, c);
  return c;
}

template Case<float> MakeProblem(const RandomProblem&, double);
template Case<double> MakeProblem(const RandomProblem&, double);

}  // namespace lattice::differential
