#include "kernels/chunk/chunk.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/chunk/chunk.cc"
#include "hwy/foreach_target.h"

#include "kernels/chunk/chunk-inl.h"
#include "kernels/isa.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

void ChunkForwardF32(const ChunkRule& rule, const ForwardProblem<float>& p, int64_t a, int64_t b) {
  ForwardChunks(rule, p, a, b);
}
void ChunkForwardF64(const ChunkRule& rule, const ForwardProblem<double>& p, int64_t a, int64_t b) {
  ForwardChunks(rule, p, a, b);
}
void ChunkBackwardF32(const ChunkRule& rule, const BackwardProblem<float>& p, int64_t a, int64_t b) {
  BackwardChunks(rule, p, a, b);
}
void ChunkBackwardF64(const ChunkRule& rule, const BackwardProblem<double>& p, int64_t a, int64_t b) {
  BackwardChunks(rule, p, a, b);
}

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lattice::kernels {

HWY_EXPORT(ChunkForwardF32);
HWY_EXPORT(ChunkForwardF64);
HWY_EXPORT(ChunkBackwardF32);
HWY_EXPORT(ChunkBackwardF64);

void ChunkForward(const ChunkRule& rule, const ForwardProblem<float>& p, int64_t first, int64_t last) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(ChunkForwardF32)(rule, p, first, last);
}
void ChunkForward(const ChunkRule& rule, const ForwardProblem<double>& p, int64_t first, int64_t last) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(ChunkForwardF64)(rule, p, first, last);
}
void ChunkBackward(const ChunkRule& rule, const BackwardProblem<float>& p, int64_t first, int64_t last) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(ChunkBackwardF32)(rule, p, first, last);
}
void ChunkBackward(const ChunkRule& rule, const BackwardProblem<double>& p, int64_t first, int64_t last) {
  InitIsa();
  HWY_DYNAMIC_DISPATCH(ChunkBackwardF64)(rule, p, first, last);
}

}  // namespace lattice::kernels
#endif
