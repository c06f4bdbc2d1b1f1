#include "kernels/registry.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "io/testing.h"
#include "kernels/isa.h"
#include "kernels/plugin.h"

namespace lattice::kernels {
namespace {

using io::ErrorOf;
using io::Says;

TEST(Registry, MemoriesAreComplete) {
  for (const Memory& memory : Memories()) {
    SCOPED_TRACE(memory.name);
    EXPECT_EQ(&FindMemory(memory.name), &memory);
    EXPECT_FALSE(memory.summary.empty());
    EXPECT_EQ(memory.kernels.forward_f32 == nullptr, memory.attention);
    EXPECT_EQ(memory.kernels.forward_f64 == nullptr, memory.attention);
    EXPECT_EQ(memory.kernels.backward_f32 == nullptr, memory.attention);
    EXPECT_EQ(memory.kernels.backward_f64 == nullptr, memory.attention);
    EXPECT_EQ(memory.shrink_kernels.forward_f32 != nullptr, memory.Shrinks());
    EXPECT_EQ(memory.flops_per_cell == 0, memory.attention);
    EXPECT_TRUE(memory.zeros == ZeroStart::kValid || memory.learned_state);
    for (const GateInfo& gate : memory.gates)
      EXPECT_EQ(memory.gates[memory.FindGate(gate.name)].name, gate.name);
  }
}

TEST(Registry, EveryObjectiveHasItsMemory) {
  for (const Objective objective : {Objective::kDec, Objective::kEnc, Objective::kSim}) {
    EXPECT_EQ(FindMemory(objective).objective, objective);
    EXPECT_EQ(ObjectiveNamed(Name(objective)), objective);
  }
}

TEST(Registry, UnknownNameTellsTheNearestAndAll) {
  EXPECT_TRUE(Says(ErrorOf([] { FindMemory("delta_net"); }),
                   {"[memory]", "\"delta_net\"", "mean \"deltanet\"", "lattice_dec", "mlstm", "--plugin"}));
}

// A memory like deltanet, and the words of the error when it is registered after `change`.
std::string Refusal(const std::function<void(MemoryInfo&, KernelSet&, KernelSet&)>& change) {
  const Memory& like = FindMemory("deltanet");
  MemoryInfo info = like;
  KernelSet kernels = like.kernels, shrink;
  info.name = "other";
  info.chunk_form = false;
  change(info, kernels, shrink);
  return ErrorOf([&] { RegisterMemory(info, kernels, shrink); });
}

TEST(Registry, RefusesBadMemoriesAndKeepsNothingOfThem) {
  const size_t before = Memories().size();
  const auto refuses = [](const auto& change, const std::vector<std::string_view>& words) {
    const std::string error = Refusal(change);
    for (const std::string_view word : words) EXPECT_NE(error.find(word), std::string::npos) << error;
  };
  using Info = MemoryInfo;
  using Set = KernelSet;
  refuses([](Info& i, Set&, Set&) { i.name = "mlstm"; }, {"[memory]", "'mlstm'", "taken"});
  refuses([](Info& i, Set&, Set&) { i.name = "softmax_attention"; }, {"taken"});
  refuses([](Info& i, Set&, Set&) { i.name = "My Memory"; }, {"'My Memory'", "small letters"});
  refuses([](Info&, Set& k, Set&) { k.backward_f64 = nullptr; }, {"'other'", "lacks kernels"});
  refuses([](Info&, Set& k, Set& s) { s = k; }, {"shrink gate"});
  refuses([](Info& i, Set&, Set&) { i.gates.push_back(i.gates[0]); }, {"two gates", "'gamma'"});
  refuses([](Info& i, Set&, Set&) { i.gates[0].name = "state"; }, {"'state'"});
  refuses([](Info& i, Set&, Set&) { i.gates[0].per_slot = true; }, {"kSlotSigmoid"});
  refuses([](Info& i, Set&, Set&) { i.gates[0].form = GateForm::kNone; }, {"'gamma'", "form"});
  refuses([](Info& i, Set&, Set&) { i.gates.assign(5, {}); }, {"5 gates", "at most 4"});
  refuses([](Info& i, Set&, Set&) { i.objective = Objective::kDec; }, {"objective"});
  refuses([](Info& i, Set&, Set&) { i.step_scales_values = true; }, {"decay"});
  refuses([](Info& i, Set&, Set&) { i.zeros = ZeroStart::kInvalid, i.learned_state = false; }, {"zeros"});
  EXPECT_EQ(Memories().size(), before);
}

TEST(Plugin, OfAMissingFileOrOneThatIsNoPlugin) {
  EXPECT_TRUE(Says(ErrorOf([] { LoadMemory("/nowhere/libmine.so"); }), {"[plugin]", "/nowhere/libmine.so"}));
  EXPECT_TRUE(Says(ErrorOf([] { LoadMemory("CMakeLists.txt"); }), {"[plugin]", "shared library"}));
}

TEST(Isa, KnownNamesCanBeSet) {
  const std::string before = CurrentIsa();
  for (const std::string& name : AvailableIsas()) {
    SetIsa(name);
    EXPECT_EQ(CurrentIsa(), name);
  }
  SetIsa(before);
  const std::string slowest = AvailableIsas().front();
#if defined(__aarch64__)
  EXPECT_EQ(slowest, "neon");
#else
  EXPECT_EQ(slowest, "scalar");
#endif
}

TEST(Isa, UnknownNameIsRefusedAndChangesNothing) {
  const std::string before = CurrentIsa();
  EXPECT_TRUE(Says(ErrorOf([] { SetIsa("mmx"); }), {"[isa]", "'mmx'", AvailableIsas().front()}));
  EXPECT_EQ(CurrentIsa(), before);
}

}  // namespace
}  // namespace lattice::kernels
