// The Lattice rule with the similarity objective, compiled for every instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rules/lattice_sim.cc"
#include "hwy/foreach_target.h"

#include "kernels/dispatch.h"
#include "kernels/rules/lattice-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

template <typename T>
using Sim = LatticeRule<T, Objective::kSim>;

LATTICE_INSTANTIATE_RULE(LatticeSim, Sim)

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lattice::kernels {

LATTICE_DISPATCH_RULE(LatticeSim)

}  // namespace lattice::kernels
#endif
