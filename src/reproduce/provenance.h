// The provenance of results: source revision and machine.
#ifndef LATTICE_REPRODUCE_PROVENANCE_H_
#define LATTICE_REPRODUCE_PROVENANCE_H_

#include <string>

namespace lattice::reproduce {

// The commit that this program was built from, with "+changes" if the sources differed from it; "unknown" if
// they were not a checkout.
std::string Commit();

// Such as "Intel(R) Xeon(R) Platinum, 2 cores, avx512".
std::string CpuName();

}  // namespace lattice::reproduce

#endif  // LATTICE_REPRODUCE_PROVENANCE_H_
