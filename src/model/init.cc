// Fills a tensor with its initial values.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "io/hash.h"
#include "model/tensors.h"

namespace lattice::model {
namespace {

void NormalizeRows(std::span<float> values, int64_t row) {
  for (size_t begin = 0; begin < values.size(); begin += static_cast<size_t>(row)) {
    const std::span<float> slot = values.subspan(begin, static_cast<size_t>(row));
    double square = 0;
    for (const float x : slot) square += static_cast<double>(x) * x;
    const double scale = 1 / std::sqrt(square);
    for (float& x : slot) x = static_cast<float>(x * scale);
  }
}

}  // namespace

void FillInit(const TensorInfo& info, uint64_t seed, std::span<float> out) {
  Check(static_cast<int64_t>(out.size()) == info.Elements(), "[init] ", info.name, " has ", info.Elements(),
        " elements but ", out.size(), " were given");
  const Random random(seed, io::Fnv1a(info.name));
  const auto a = static_cast<float>(info.init.a), b = static_cast<float>(info.init.b);
  switch (info.init.kind) {
    case InitKind::kConstant:
      std::fill(out.begin(), out.end(), a);
      break;
    case InitKind::kNormal:
      random.FillNormal(out, 0, a);
      break;
    case InitKind::kUniform:
      random.FillUniform(out, a, b);
      break;
    case InitKind::kLogUniform:
      random.FillUniform(out, a, b);
      for (float& x : out) x = std::log(x);
      break;
    case InitKind::kInverseSoftplus:
      random.FillUniform(out, std::log(a), std::log(b));
      // softplus(y) = x gives y = log(exp(x) - 1).
      for (float& x : out) x = std::log(std::expm1(std::exp(x)));
      break;
    case InitKind::kSphere:
      random.FillNormal(out, 0, 1);
      NormalizeRows(out, info.shape.back());
      break;
  }
}

}  // namespace lattice::model
