#include "kernels/registry.h"

#include <gtest/gtest.h>

#include "io/testing.h"
#include "kernels/isa.h"

namespace lattice::kernels {
namespace {

using io::ErrorOf;
using io::Says;

TEST(Registry, RulesAreComplete) {
  for (const RuleInfo& rule : Rules()) {
    EXPECT_EQ(&FindRule(rule.name), &rule);
    EXPECT_NE(rule.kernels.forward_f32, nullptr) << rule.name;
    EXPECT_NE(rule.kernels.forward_f64, nullptr) << rule.name;
    EXPECT_NE(rule.kernels.backward_f32, nullptr) << rule.name;
    EXPECT_NE(rule.kernels.backward_f64, nullptr) << rule.name;
    EXPECT_EQ(rule.gates & rule.optional_gates, 0u) << rule.name;
  }
}

TEST(Registry, UnknownNameListsTheKnown) {
  EXPECT_TRUE(
      Says(ErrorOf([] { FindRule("delta"); }), {"[rule]", "'delta'", "deltanet", "lattice_dec", "mlstm"}));
}

TEST(Registry, RefusesBadRules) {
  RuleInfo taken = FindRule("mlstm");
  EXPECT_TRUE(Says(ErrorOf([&] { RegisterRule(taken); }), {"[rule]", "'mlstm'"}));
  RuleInfo half = taken;
  half.name = "half";
  half.kernels.backward_f64 = nullptr;
  EXPECT_TRUE(Says(ErrorOf([&] { RegisterRule(half); }), {"[rule]", "'half'", "kernels"}));
  EXPECT_TRUE(Says(ErrorOf([] { FindRule("half"); }), {"unknown"}));
}

TEST(Isa, KnownNamesCanBeSet) {
  const std::string before = CurrentIsa();
  for (const std::string& name : AvailableIsas()) {
    SetIsa(name);
    EXPECT_EQ(CurrentIsa(), name);
  }
  SetIsa(before);
  EXPECT_EQ(AvailableIsas().front(), "scalar");
}

TEST(Isa, UnknownNameIsRefusedAndChangesNothing) {
  const std::string before = CurrentIsa();
  EXPECT_TRUE(Says(ErrorOf([] { SetIsa("mmx"); }), {"[isa]", "'mmx'", "scalar"}));
  EXPECT_EQ(CurrentIsa(), before);
}

}  // namespace
}  // namespace lattice::kernels
