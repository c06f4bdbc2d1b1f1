// Makes random cases, describes them to kernels and reference as problems, and runs them.
#include "kernels/contract/test_case.h"

#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "kernels/reference/reference.h"

namespace lattice::kernels {
namespace {

bool Has(const Variant& variant, const GateInfo& gate) {
  return gate.role == GateRole::kShrink ? variant.shrinks : gate.required || variant.optional;
}

// For how many tokens of a sequence the forward pass of a variant saves activations.
int64_t SavedTokensOf(const Variant& variant, const Shape& shape, int64_t length) {
  const int64_t state_size = FindMemory(variant.rule).StateSize(shape.M, shape.D);
  return length - FirstSavedToken(length, state_size, KernelsOf(variant).saved_size.Of(shape.M, shape.D));
}

std::vector<Sequence> SequencesOf(const Shape& shape) {
  std::vector<Sequence> sequences;
  int64_t begin = 0;
  for (int64_t n = 0; n < shape.N; ++n) {
    const int64_t usual[] = {shape.T, 0, shape.T / 2};
    const int64_t packed = shape.lengths.empty() ? usual[n % 3] : shape.lengths[static_cast<size_t>(n)];
    const int64_t length = shape.ragged ? packed : shape.T;
    if (shape.ragged) {
      sequences.push_back({0, ++begin, length});
      begin += length;
    } else {
      sequences.push_back({n, 0, length});
    }
  }
  return sequences;
}

// Fills tensors with floats; every tensor draws from a stream of its own.
class Filler {
 public:
  explicit Filler(uint64_t seed) : seed_(seed) {}

  template <typename T>
  void Normal(Tensor<T>& x) {
    Fill(x, [](const Random& random, uint64_t i) { return random.Normal(i); });
  }

  template <typename T>
  void Uniform(double low, double high, Tensor<T>& x) {
    Fill(x, [&](const Random& random, uint64_t i) { return low + (high - low) * random.Uniform(i); });
  }

  // Scales the first `rows` rows of `width` elements of the last dimension to lengths between low and high.
  template <typename T>
  void Lengths(int64_t width, int64_t rows, double low, double high, Tensor<T>& x) {
    const Random random(seed_, ++stream_);
    uint64_t index = 0;
    for (int64_t b = 0; b < x.B(); ++b) {
      for (int64_t t = 0; t < x.length(); ++t) {
        for (int64_t h = 0; h < x.H(); ++h) {
          for (int64_t r = 0; r < rows; ++r) {
            T* row = &x.At(b, t, h, r * width);
            double norm = 0;
            for (int64_t j = 0; j < width; ++j) norm += static_cast<double>(row[j]) * row[j];
            const double scale = (low + (high - low) * random.Uniform(index++)) / std::sqrt(norm + 1e-30);
            for (int64_t j = 0; j < width; ++j) row[j] = static_cast<float>(scale * row[j]);
          }
        }
      }
    }
  }

 private:
  template <typename T, class Draw>
  void Fill(Tensor<T>& x, const Draw& draw) {
    const Random random(seed_, ++stream_);
    uint64_t index = 0;
    x.ForEach([&](int64_t b, int64_t t, int64_t h, int64_t i) {
      x.At(b, t, h, i) = static_cast<float>(draw(random, index++));
    });
  }

  uint64_t seed_, stream_ = 0;
};

template <typename T>
void FillGate(const Variant& variant, const GateInfo& gate, Filler& fill, Tensor<T>& x) {
  const bool keeps_lengths = variant.normalize == Normalize::kToken;
  if (gate.form == GateForm::kLinear) return fill.Normal(x);
  if (gate.per_slot) return fill.Uniform(0, 1, x);
  switch (gate.role) {
    case GateRole::kForget:
      return fill.Uniform(keeps_lengths ? 0.5 : 0.97, 1, x);
    case GateRole::kShrink:
      return fill.Uniform(0.002, 0.006, x);
    case GateRole::kWrite:
    case GateRole::kOther:
      return fill.Uniform(0.05, 0.7, x);
  }
}

}  // namespace

std::vector<Variant> VariantsOf(const std::string& name) {
  const Memory& memory = FindMemory(name);
  bool has_optional = false;
  for (const GateInfo& gate : memory.gates) has_optional |= !gate.required && gate.role != GateRole::kShrink;
  std::vector<Variant> variants;
  for (const bool optional : {true, false}) {
    for (const bool shrinks : {false, true}) {
      for (const Normalize normalize : {Normalize::kToken, Normalize::kNone}) {
        const bool offered = (optional || has_optional) && (!shrinks || memory.Shrinks()) &&
                             (normalize == Normalize::kToken || memory.objective.has_value());
        if (offered) variants.push_back({name, optional, shrinks, normalize});
      }
    }
  }
  return variants;
}

std::string Text(const Variant& v) {
  return v.rule + (v.normalize == Normalize::kToken ? " token" : " none") + (v.optional ? " optional" : "") +
         (v.shrinks ? " shrinks" : "");
}

std::string Text(const Shape& s) {
  const char* layouts[] = {"", " gaps", " heads first"};
  std::string text = StrCat("M=", s.M, " D=", s.D, " T=", s.T, " H=", s.H, " N=", s.N,
                            s.ragged ? " ragged" : "", layouts[static_cast<int>(s.layout)]);
  for (const int64_t length : s.lengths)
    text += StrCat(&length == s.lengths.data() ? " lengths " : ",", length);
  return text;
}

void PlaceSaved(const Variant& variant, const Shape& shape, std::vector<Sequence>& sequences) {
  for (size_t n = 1; n < sequences.size(); ++n) {
    const Sequence& before = sequences[n - 1];
    sequences[n].checkpoint = before.checkpoint + CheckpointsOf(before.length);
    sequences[n].saved_token = before.saved_token + SavedTokensOf(variant, shape, before.length);
  }
}

std::vector<std::string> RuleNames() {
  std::vector<std::string> names;
  for (const Memory& memory : Memories()) {
    if (!memory.attention) names.push_back(memory.name);
  }
  return names;
}

template <typename T>
Problem<T> Case<T>::Describe() const {
  const auto view = [&](const std::string& name) {
    const auto found = in.find(name);
    return found == in.end() ? View<const T>{} : found->second.view();
  };
  Problem<T> p;
  p.heads = shape.H, p.slots = shape.M, p.width = shape.D;
  p.state_size = StateSize();
  p.sequences = sequences.data();
  p.count = static_cast<int64_t>(sequences.size());
  p.normalize = variant.normalize;
  p.q = view("q"), p.k = view("k"), p.v = view("v");
  const std::vector<GateInfo>& gates = FindMemory(variant.rule).gates;
  for (size_t i = 0; i < gates.size(); ++i) p.gates[i] = view(gates[i].name);
  p.state = in.at("state").data();
  return p;
}

template <typename T>
Case<T> MakeCase(const Variant& variant, const Shape& shape, uint64_t seed) {
  Case<T> c{variant, shape, SequencesOf(shape), {}, {}, {}};
  PlaceSaved(variant, shape, c.sequences);
  const int64_t H = shape.H, M = shape.M, D = shape.D;
  const int64_t B = shape.ragged ? 1 : shape.N;
  const int64_t length = shape.ragged ? c.sequences.back().begin + c.sequences.back().length : shape.T;
  const auto tensor = [&](int64_t X) { return Tensor<T>(B, length, H, X, shape.layout); };
  Filler fill(seed);

  fill.Normal(c.in["q"] = tensor(M));
  fill.Normal(c.in["k"] = tensor(M));
  fill.Lengths(M, 1, 1, 1, c.in["k"]);
  fill.Normal(c.in["v"] = tensor(D));
  fill.Lengths(D, 1, 0.5, 1, c.in["v"]);
  for (const GateInfo& gate : FindMemory(variant.rule).gates) {
    if (Has(variant, gate)) FillGate(variant, gate, fill, c.in[gate.name] = tensor(gate.per_slot ? M : 1));
  }

  const Tensor<T> state(shape.N, 1, H, FindMemory(variant.rule).StateSize(M, D), Layout::kDense);
  fill.Normal(c.in["state"] = state);
  fill.Lengths(D, M, 0.5, 1.5, c.in["state"]);
  fill.Normal(c.dy = tensor(D));
  fill.Normal(c.dstate_out = state);
  return c;
}

template <typename T>
Results<T> MakeResults(const Case<T>& c) {
  const int64_t B = c.in.at("q").B(), length = c.in.at("q").length(), H = c.shape.H;
  Results<T> r;
  r.y = Tensor<T>(B, length, H, c.shape.D, c.shape.layout);
  r.state_out = Tensor<T>(c.shape.N, 1, H, c.StateSize(), Layout::kDense);
  for (const auto& [name, x] : c.in) {
    r.grads[name] =
        Tensor<T>(x.B(), x.length(), x.H(), x.X(), name == "state" ? Layout::kDense : c.shape.layout);
  }
  const Sequence& last = c.sequences.back();
  r.checkpoints.assign((last.checkpoint + CheckpointsOf(last.length)) * H * c.StateSize(),
                       Tensor<T>::Poison());
  const int64_t tokens = last.saved_token + SavedTokensOf(c.variant, c.shape, last.length);
  r.activations.assign(tokens * H * KernelsOf(c.variant).saved_size.Of(c.shape.M, c.shape.D),
                       Tensor<T>::Poison());
  return r;
}

template <typename T>
ForwardProblem<T> DescribeForward(const Case<T>& c, Results<T>& r) {
  ForwardProblem<T> p;
  static_cast<Problem<T>&>(p) = c.Describe();
  p.y = r.y.view();
  p.state_out = r.state_out.data();
  p.checkpoints = r.checkpoints.data();
  p.saved_activations = r.activations.data();
  return p;
}

template <typename T>
BackwardProblem<T> DescribeBackward(const Case<T>& c, Results<T>& r) {
  const auto view = [&](const std::string& name) {
    const auto found = r.grads.find(name);
    return found == r.grads.end() ? View<T>{} : found->second.view();
  };
  BackwardProblem<T> p;
  static_cast<Problem<T>&>(p) = c.Describe();
  p.checkpoints = r.checkpoints.data();
  p.saved_activations = r.activations.data();
  p.dy = c.dy.view();
  p.dstate_out = c.dstate_out.data();
  p.dq = view("q"), p.dk = view("k"), p.dv = view("v");
  const std::vector<GateInfo>& gates = FindMemory(c.variant.rule).gates;
  for (size_t i = 0; i < gates.size(); ++i) p.dgates[i] = view(gates[i].name);
  p.dstate = r.grads.at("state").data();
  return p;
}

const KernelSet& KernelsOf(const Variant& variant) {
  const Memory& memory = FindMemory(variant.rule);
  return variant.shrinks ? memory.shrink_kernels : memory.kernels;
}

template <typename T>
Results<T> RunKernels(const Case<T>& c, bool with_saved) {
  Results<T> r = MakeResults(c);
  const KernelSet& kernels = KernelsOf(c.variant);
  auto forward = DescribeForward(c, r);
  auto backward = DescribeBackward(c, r);
  if (!with_saved) forward.saved_activations = nullptr, backward.saved_activations = nullptr;
  kernels.Forward<T>()(forward, 0, forward.Cells());
  kernels.Backward<T>()(backward, 0, forward.Cells());
  return r;
}

template <typename T>
Results<T> RunReference(const Case<T>& c) {
  Results<T> r = MakeResults(c);
  ReferenceForward(c.variant.rule, DescribeForward(c, r));
  ReferenceBackward(c.variant.rule, DescribeBackward(c, r));
  return r;
}

double Loss(const Case<double>& c, Results<double>& r) {
  const auto p = DescribeForward(c, r);
  KernelsOf(c.variant).Forward<double>()(p, 0, p.Cells());
  return Inner(r.y, c.dy) + Inner(r.state_out, c.dstate_out);
}

template struct Case<float>;
template struct Case<double>;
template Case<float> MakeCase(const Variant&, const Shape&, uint64_t);
template Case<double> MakeCase(const Variant&, const Shape&, uint64_t);
template Results<float> MakeResults(const Case<float>&);
template Results<double> MakeResults(const Case<double>&);
template ForwardProblem<float> DescribeForward(const Case<float>&, Results<float>&);
template ForwardProblem<double> DescribeForward(const Case<double>&, Results<double>&);
template BackwardProblem<float> DescribeBackward(const Case<float>&, Results<float>&);
template BackwardProblem<double> DescribeBackward(const Case<double>&, Results<double>&);
template Results<float> RunKernels(const Case<float>&, bool);
template Results<double> RunKernels(const Case<double>&, bool);
template Results<float> RunReference(const Case<float>&);
template Results<double> RunReference(const Case<double>&);

}  // namespace lattice::kernels
