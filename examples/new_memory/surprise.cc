#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "new_memory/surprise.cc"
#include "hwy/foreach_target.h"

#include "kernels/dispatch.h"
#include "new_memory/surprise-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

LATTICE_INSTANTIATE_RULE(Surprise, SurpriseRule)

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lattice::kernels {

LATTICE_DISPATCH_RULE(Surprise)

}  // namespace lattice::kernels
#endif
