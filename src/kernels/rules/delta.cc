// The delta rule and its gated forms, compiled for every instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rules/delta.cc"
#include "hwy/foreach_target.h"

#include "kernels/dispatch.h"
#include "kernels/rules/delta-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

template <typename T>
using DeltaNet = DeltaRule<T, Decay::kNone>;
template <typename T>
using GatedDeltaNet = DeltaRule<T, Decay::kScalar>;
template <typename T>
using Rwkv7 = DeltaRule<T, Decay::kSlots>;

LATTICE_INSTANTIATE_RULE(DeltaNet, DeltaNet)
LATTICE_INSTANTIATE_RULE(GatedDeltaNet, GatedDeltaNet)
LATTICE_INSTANTIATE_RULE(Rwkv7, Rwkv7)

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lattice::kernels {

LATTICE_DISPATCH_RULE(DeltaNet)
LATTICE_DISPATCH_RULE(GatedDeltaNet)
LATTICE_DISPATCH_RULE(Rwkv7)

}  // namespace lattice::kernels
#endif
