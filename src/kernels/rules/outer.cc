// Linear attention and its gated forms, compiled for every instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rules/outer.cc"
#include "hwy/foreach_target.h"

#include "kernels/dispatch.h"
#include "kernels/rules/outer-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

template <typename T>
using LinearAttention = OuterRule<T, Decay::kNone>;
template <typename T>
using Mamba2 = OuterRule<T, Decay::kScalar>;
template <typename T>
using Gla = OuterRule<T, Decay::kSlots>;

LATTICE_INSTANTIATE_RULE(LinearAttention, LinearAttention)
LATTICE_INSTANTIATE_RULE(Mamba2, Mamba2)
LATTICE_INSTANTIATE_RULE(Gla, Gla)

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lattice::kernels {

LATTICE_DISPATCH_RULE(LinearAttention)
LATTICE_DISPATCH_RULE(Mamba2)
LATTICE_DISPATCH_RULE(Gla)

}  // namespace lattice::kernels
#endif
