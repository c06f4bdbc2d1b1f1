// Where a figure comes from.
#ifndef LATTICE_REPRODUCE_PROVENANCE_H_
#define LATTICE_REPRODUCE_PROVENANCE_H_

#include <string>

namespace lattice::reproduce {

// The commit this program was built from, with "+changes" when the sources differed from it; "unknown" when
// they were no checkout.
std::string Commit();

// Such as "Intel(R) Xeon(R) Platinum, 2 cores, avx512".
std::string CpuName();

}  // namespace lattice::reproduce

#endif  // LATTICE_REPRODUCE_PROVENANCE_H_
