// The Lattice rules with l1 shrinkage, compiled for every instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rules/lattice_shrink.cc"
#include "hwy/foreach_target.h"

#include "kernels/dispatch.h"
#include "kernels/rules/lattice_shrink-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

template <typename T>
using DecShrink = LatticeShrinkRule<T, Objective::kDec>;
template <typename T>
using EncShrink = LatticeShrinkRule<T, Objective::kEnc>;
template <typename T>
using SimShrink = LatticeShrinkRule<T, Objective::kSim>;

LATTICE_INSTANTIATE_RULE(LatticeDecShrink, DecShrink)
LATTICE_INSTANTIATE_RULE(LatticeEncShrink, EncShrink)
LATTICE_INSTANTIATE_RULE(LatticeSimShrink, SimShrink)

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lattice::kernels {

LATTICE_DISPATCH_RULE(LatticeDecShrink)
LATTICE_DISPATCH_RULE(LatticeEncShrink)
LATTICE_DISPATCH_RULE(LatticeSimShrink)

}  // namespace lattice::kernels
#endif
