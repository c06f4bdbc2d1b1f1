// TTT with a normalised read, compiled for every instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rules/ttt.cc"
#include "hwy/foreach_target.h"

#include "kernels/dispatch.h"
#include "kernels/rules/ttt-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

LATTICE_INSTANTIATE_RULE(Ttt, TttRule)

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lattice::kernels {

LATTICE_DISPATCH_RULE(Ttt)

}  // namespace lattice::kernels
#endif
