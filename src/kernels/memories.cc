// The one list of the memories of the library: no other code knows them by name.
#include "kernels/memories.h"

#include "kernels/registry.h"

namespace lattice::kernels {

// Defined by LATTICE_DISPATCH_RULE in rules/*.cc.
KernelSet LatticeDecKernels();
KernelSet LatticeDecShrinkKernels();
KernelSet LatticeEncKernels();
KernelSet LatticeEncShrinkKernels();
KernelSet LatticeSimKernels();
KernelSet LatticeSimShrinkKernels();
KernelSet LinearAttentionKernels();
KernelSet Mamba2Kernels();
KernelSet GlaKernels();
KernelSet DeltaNetKernels();
KernelSet GatedDeltaNetKernels();
KernelSet Rwkv7Kernels();
KernelSet TttKernels();
KernelSet MlstmKernels();

namespace {

GateInfo Gamma() { return {.name = "gamma", .role = GateRole::kWrite, .form = GateForm::kSigmoid}; }
GateInfo Mu(GateForm form) { return {.name = "mu", .role = GateRole::kForget, .form = form}; }
GateInfo SlotMu() {
  return {.name = "mu", .role = GateRole::kForget, .form = GateForm::kSlotSigmoid, .per_slot = true};
}

// gamma, mu and lam, in the order of LatticeGate. With kNone for mu, the operator accepts it, but a model
// does not make it.
std::vector<GateInfo> LatticeGates(GateForm mu_form) {
  GateInfo mu = Mu(mu_form), lam = {.name = "lam", .role = GateRole::kShrink};
  mu.required = lam.required = false;
  return {Gamma(), mu, lam};
}

Memory LatticeDec() {
  return {{.name = "lattice_dec",
           .summary = "Lattice, decoding objective",
           .gates = LatticeGates(GateForm::kSigmoid),
           .target = Target::kDirectionError,
           .objective = Objective::kDec,
           .zeros = ZeroStart::kInvalid,
           .flops_per_cell = 9},
          LatticeDecKernels(),
          LatticeDecShrinkKernels()};
}

Memory LatticeEnc() {
  return {{.name = "lattice_enc",
           .summary = "Lattice, encoding objective",
           .gates = LatticeGates(GateForm::kSigmoid),
           .objective = Objective::kEnc,
           .zeros = ZeroStart::kInvalid,
           .flops_per_cell = 7},
          LatticeEncKernels(),
          LatticeEncShrinkKernels()};
}

Memory LatticeSim() {
  return {{.name = "lattice_sim",
           .summary = "Lattice, similarity objective (the paper's Dot)",
           .gates = LatticeGates(GateForm::kNone),
           .objective = Objective::kSim,
           .zeros = ZeroStart::kInvalid,
           .flops_per_cell = 7},
          LatticeSimKernels(),
          LatticeSimShrinkKernels()};
}

Memory LinearAttention() {
  return {{.name = "linear_attention",
           .summary = "linear attention: sum of outer products",
           .chunk_form = true,
           .flops_per_cell = 4},
          LinearAttentionKernels(),
          {}};
}

Memory Mamba2() {
  return {{.name = "mamba2",
           .summary = "Mamba-2: scalar decay per head",
           .gates = {Mu(GateForm::kDecay)},
           .chunk_form = true,
           .step_scales_values = true,
           .conv_v = true,
           .skip = true,
           .flops_per_cell = 5},
          Mamba2Kernels(),
          {}};
}

Memory Gla() {
  return {{.name = "gla",
           .summary = "gated linear attention: decay per slot",
           .gates = {SlotMu()},
           .chunk_form = true,
           .flops_per_cell = 5},
          GlaKernels(),
          {}};
}

Memory DeltaNet() {
  return {{.name = "deltanet",
           .summary = "DeltaNet: delta rule",
           .gates = {Gamma()},
           .target = Target::kError,
           .chunk_form = true,
           .flops_per_cell = 6},
          DeltaNetKernels(),
          {}};
}

Memory GatedDeltaNet() {
  return {{.name = "gated_deltanet",
           .summary = "Gated DeltaNet: decay, then delta rule",
           .gates = {Gamma(), Mu(GateForm::kDecay)},
           .target = Target::kError,
           .chunk_form = true,
           .flops_per_cell = 7},
          GatedDeltaNetKernels(),
          {}};
}

Memory Rwkv7() {
  return {{.name = "rwkv7",
           .summary = "RWKV-7: decay per slot and delta rule",
           .gates = {Gamma(), SlotMu()},
           .target = Target::kError,
           .flops_per_cell = 7},
          Rwkv7Kernels(),
          {}};
}

// From a state of zeros its first step would divide by the length of z = k@S, which is zero but for eps.
Memory Ttt() {
  return {{.name = "ttt",
           .summary = "TTT: gradient step through a normalised output",
           .gates = {Gamma()},
           .target = Target::kError,
           .zeros = ZeroStart::kComputable,
           .flops_per_cell = 6},
          TttKernels(),
          {}};
}

Memory Mlstm() {
  return {{.name = "mlstm",
           .summary = "mLSTM of xLSTM: exponential gates, normaliser state",
           .gates = {{.name = "igate", .role = GateRole::kWrite, .form = GateForm::kLinear},
                     {.name = "fgate", .role = GateRole::kForget, .form = GateForm::kLinear}},
           .learned_state = false,
           .extra_state = {{"normalizer", /*per_slot=*/true}, {"max"}},
           .flops_per_cell = 5},
          MlstmKernels(),
          {}};
}

Memory Transformer() {
  return {{.name = "transformer",
           .summary = "Transformer++: softmax attention with rotary positions",
           .recur_name = "softmax_attention",
           .attention = true,
           .learned_state = false},
          {},
          {}};
}

}  // namespace

std::deque<Memory> LibraryMemories() {
  return {LatticeDec(),    LatticeEnc(), LatticeSim(), LinearAttention(), Mamba2(),     Gla(), DeltaNet(),
          GatedDeltaNet(), Rwkv7(),      Ttt(),        Mlstm(),           Transformer()};
}

}  // namespace lattice::kernels
