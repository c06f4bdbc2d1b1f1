// The contract of a recurrent rule, as parameterised tests over all registered memories that have kernels. A
// memory that is registered before the tests are listed gets them all. A file of the suite defines tests with
// TEST_P(X, ...) on a fixture derived from RuleTest and closes with LATTICE_FOR_EVERY_RULE(X).
#ifndef LATTICE_KERNELS_CONTRACT_CONTRACT_TEST_H_
#define LATTICE_KERNELS_CONTRACT_CONTRACT_TEST_H_

#include <gtest/gtest.h>

#include <string>

#include "kernels/contract/test_case.h"

namespace lattice::kernels {

class RuleTest : public ::testing::TestWithParam<std::string> {
 public:
  // run(variant) for every variant of the rule.
  template <class Run>
  void ForEachVariant(const Run& run) const {
    for (const Variant& variant : VariantsOf(GetParam())) {
      SCOPED_TRACE(Text(variant));
      run(variant);
      if (HasFatalFailure()) return;
    }
  }
};

#define LATTICE_FOR_EVERY_RULE(fixture)                                      \
  INSTANTIATE_TEST_SUITE_P(Rules, fixture, ::testing::ValuesIn(RuleNames()), \
                           [](const auto& named) { return named.param; })

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_CONTRACT_CONTRACT_TEST_H_
