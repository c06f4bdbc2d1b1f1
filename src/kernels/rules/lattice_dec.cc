#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rules/lattice_dec.cc"
#include "hwy/foreach_target.h"

#include "kernels/dispatch.h"
#include "kernels/rules/lattice_shrink-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

template <typename T>
using Dec = LatticeRule<T, Objective::kDec>;
template <typename T>
using DecShrink = LatticeShrinkRule<T, Objective::kDec>;

LATTICE_INSTANTIATE_RULE(LatticeDec, Dec)
LATTICE_INSTANTIATE_RULE(LatticeDecShrink, DecShrink)

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lattice::kernels {

LATTICE_DISPATCH_RULE(LatticeDec)
LATTICE_DISPATCH_RULE(LatticeDecShrink)

}  // namespace lattice::kernels
#endif
