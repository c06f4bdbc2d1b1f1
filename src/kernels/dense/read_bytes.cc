#include "kernels/dense/read_bytes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/dense/read_bytes.cc"
#include "hwy/foreach_target.h"

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/isa.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

uint64_t Read(const void* data, int64_t bytes) {
  const hn::ScalableTag<uint64_t> d;
  const int64_t N = hn::Lanes(d);
  const auto* at = static_cast<const uint64_t*>(data);
  auto a = hn::Zero(d), b = a, c = a, e = a;
  for (int64_t i = 0; i + 4 * N <= bytes / 8; i += 4 * N) {
    for (int64_t line = 0; line < 4 * N; line += 8) hwy::Prefetch(at + i + line + 2048);
    a = hn::Xor(a, hn::LoadU(d, at + i));
    b = hn::Xor(b, hn::LoadU(d, at + i + N));
    c = hn::Xor(c, hn::LoadU(d, at + i + 2 * N));
    e = hn::Xor(e, hn::LoadU(d, at + i + 3 * N));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Xor(hn::Xor(a, b), hn::Xor(c, e))));
}

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lattice::kernels {

HWY_EXPORT(Read);

uint64_t ReadBytes(const void* data, int64_t bytes) {
  InitIsa();
  return HWY_DYNAMIC_DISPATCH(Read)(data, bytes);
}

}  // namespace lattice::kernels
#endif
