// Runs the references over the tokens, heads and sequences of a problem.
#include "kernels/reference/reference.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "kernels/reference/rules.h"
#include "kernels/registry.h"

namespace lattice::kernels {
namespace {

template <typename T>
ReferenceTable<T>& References() {
  static ReferenceTable<T> table = [] {
    ReferenceTable<T> t;
    AddLatticeReferences(t);
    AddLinearReferences(t);
    AddNonlinearReferences(t);
    return t;
  }();
  return table;
}

template <typename T>
const ReferenceRule<T>& FindReference(const std::string& rule) {
  const auto found = References<T>().find(rule);
  Check(found != References<T>().end(), "[reference] rule '", rule,
        "' has no reference; state its step and adjoint and name them in src/kernels/reference/*.cc or with "
        "RegisterReference");
  return found->second;
}

// Token t of sequence n, head h.
template <typename T>
ReferenceToken<T> TokenOf(const MemoryInfo& memory, const Problem<T>& p, int64_t n, int64_t t, int64_t h) {
  const auto at = [&](const View<const T>& view) {
    return view.At(p.sequences[n].batch, p.sequences[n].begin + t, h);
  };
  ReferenceToken<T> x{p.slots, p.width, at(p.q), at(p.k), at(p.v)};
  for (size_t i = 0; i < memory.gates.size(); ++i) {
    if (!p.gates[i]) continue;
    x.given[i] = true;
    if (memory.gates[i].per_slot) {
      x.slot_gate = at(p.gates[i]);
    } else {
      x.gates[i] = *at(p.gates[i]);
    }
  }
  x.normalize = p.normalize;
  return x;
}

// Gradients of a token: buffers for the adjoint, and their copy to the problem's tensors.
template <typename T>
class TokenGrad {
 public:
  TokenGrad(int64_t M, int64_t D) : dq_(M), dk_(M), dv_(D), dslot_gate_(M) {}

  ReferenceGrad<T> Zero() {
    for (auto* x : {&dq_, &dk_, &dv_, &dslot_gate_}) std::fill(x->begin(), x->end(), T(0));
    return {dq_.data(), dk_.data(), dv_.data(), dslot_gate_.data()};
  }

  void Store(const BackwardProblem<T>& p, int64_t n, int64_t t, int64_t h, const MemoryInfo& memory,
             const ReferenceGrad<T>& g) const {
    const auto at = [&](const View<T>& view) {
      return view.At(p.sequences[n].batch, p.sequences[n].begin + t, h);
    };
    std::copy(dq_.begin(), dq_.end(), at(p.dq));
    std::copy(dk_.begin(), dk_.end(), at(p.dk));
    std::copy(dv_.begin(), dv_.end(), at(p.dv));
    for (size_t i = 0; i < memory.gates.size(); ++i) {
      if (!p.dgates[i]) continue;
      if (memory.gates[i].per_slot) {
        std::copy(dslot_gate_.begin(), dslot_gate_.end(), at(p.dgates[i]));
      } else {
        *at(p.dgates[i]) = g.dgates[i];
      }
    }
  }

 private:
  std::vector<T> dq_, dk_, dv_, dslot_gate_;
};

// The states of head h of sequence n before every token and after the last; y of every token goes to `read`.
template <typename T, class Read>
std::vector<std::vector<T>> States(const std::string& name, const Problem<T>& p, int64_t n, int64_t h,
                                   const Read& read) {
  const ReferenceRule<T>& rule = FindReference<T>(name);
  const MemoryInfo& memory = FindMemory(name);
  const T* first = p.state + (n * p.heads + h) * p.state_size;
  std::vector<std::vector<T>> S{std::vector<T>(first, first + p.state_size)};
  std::vector<T> y(p.width);
  for (int64_t t = 0; t < p.sequences[n].length; ++t) {
    S.emplace_back(p.state_size);
    rule.step(TokenOf(memory, p, n, t, h), S[t].data(), S[t + 1].data(), y.data());
    read(t, y);
  }
  return S;
}

}  // namespace

template <typename T>
void ReferenceForward(const std::string& name, const ForwardProblem<T>& p) {
  for (int64_t n = 0; n < p.count; ++n) {
    for (int64_t h = 0; h < p.heads; ++h) {
      const auto S = States(name, p, n, h, [&](int64_t t, const std::vector<T>& y) {
        std::copy(y.begin(), y.end(), p.y.At(p.sequences[n].batch, p.sequences[n].begin + t, h));
      });
      std::copy(S.back().begin(), S.back().end(), p.state_out + (n * p.heads + h) * p.state_size);
    }
  }
}

template <typename T>
void ReferenceBackward(const std::string& name, const BackwardProblem<T>& p) {
  const ReferenceRule<T>& rule = FindReference<T>(name);
  const MemoryInfo& memory = FindMemory(name);
  TokenGrad<T> grad(p.slots, p.width);
  for (int64_t n = 0; n < p.count; ++n) {
    for (int64_t h = 0; h < p.heads; ++h) {
      const auto S = States(name, p, n, h, [](int64_t, const std::vector<T>&) {});
      const int64_t cell = (n * p.heads + h) * p.state_size;
      std::vector<T> dS_new(p.state_size), dS(p.state_size);
      if (p.dstate_out != nullptr) std::copy_n(p.dstate_out + cell, p.state_size, dS_new.begin());
      for (int64_t t = p.sequences[n].length - 1; t >= 0; --t) {
        const T* dy = p.dy.At(p.sequences[n].batch, p.sequences[n].begin + t, h);
        ReferenceGrad<T> g = grad.Zero();
        rule.adjoint(TokenOf(memory, p, n, t, h), S[t].data(), dS_new.data(), dy, dS.data(), g);
        grad.Store(p, n, t, h, memory, g);
        dS_new.swap(dS);
      }
      std::copy(dS_new.begin(), dS_new.end(), p.dstate + cell);
    }
  }
}

void RegisterReference(const std::string& rule, ReferenceRule<float> f32, ReferenceRule<double> f64) {
  Check(!References<float>().contains(rule), "[reference] rule '", rule, "' has a reference already");
  References<float>()[rule] = f32;
  References<double>()[rule] = f64;
}

template void ReferenceForward(const std::string&, const ForwardProblem<float>&);
template void ReferenceForward(const std::string&, const ForwardProblem<double>&);
template void ReferenceBackward(const std::string&, const BackwardProblem<float>&);
template void ReferenceBackward(const std::string&, const BackwardProblem<double>&);

}  // namespace lattice::kernels
