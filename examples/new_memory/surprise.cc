// Compiles the rule for every instruction set and makes it a plug-in.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "surprise.cc"
#include "hwy/foreach_target.h"

#include "kernels/dispatch.h"
#include "kernels/plugin.h"
#include "surprise-inl.h"
#include "surprise_reference.h"

HWY_BEFORE_NAMESPACE();
namespace lattice::kernels::HWY_NAMESPACE {

LATTICE_INSTANTIATE_RULE(Surprise, SurpriseRule)

}  // namespace lattice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lattice::kernels {

LATTICE_DISPATCH_RULE(Surprise)

Plugin MakeSurprise() {
  Plugin plugin;
  plugin.info.name = "surprise";
  plugin.info.summary = "a delta rule that writes as much as it is surprised";
  plugin.info.gates = {{.name = "gamma", .role = GateRole::kWrite, .form = GateForm::kSigmoid}};
  plugin.info.target = Target::kError;
  plugin.info.flops_per_cell = 6;
  plugin.kernels = SurpriseKernels();
  plugin.reference_f32 = {SurpriseStep<float>, SurpriseAdjoint<float>};
  plugin.reference_f64 = {SurpriseStep<double>, SurpriseAdjoint<double>};
  return plugin;
}

}  // namespace lattice::kernels

LATTICE_MEMORY_PLUGIN(lattice::kernels::MakeSurprise)
#endif
