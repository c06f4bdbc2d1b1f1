// The references of the library's rules, for reference.cc.
#ifndef LATTICE_KERNELS_REFERENCE_RULES_H_
#define LATTICE_KERNELS_REFERENCE_RULES_H_

#include <map>
#include <string>

#include "kernels/reference/reference.h"

namespace lattice::kernels {

template <typename T>
using ReferenceTable = std::map<std::string, ReferenceRule<T>>;

template <typename T>
void AddLatticeReferences(ReferenceTable<T>& table);
// The linear and the delta rules.
template <typename T>
void AddLinearReferences(ReferenceTable<T>& table);
// ttt and mlstm.
template <typename T>
void AddNonlinearReferences(ReferenceTable<T>& table);

}  // namespace lattice::kernels

#endif  // LATTICE_KERNELS_REFERENCE_RULES_H_
