#include "reproduce/provenance.h"

#include <fstream>
#include <thread>

#include "base/error.h"
#include "kernels/isa.h"
#include "reproduce/commit.h"

namespace lattice::reproduce {

std::string Commit() { return kCommit; }

std::string CpuName() {
  std::ifstream file("/proc/cpuinfo");
  std::string line, name = "unknown CPU";
  while (std::getline(file, line)) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) {
      name = line.substr(colon + 2);
      break;
    }
  }
  return StrCat(name, ", ", std::thread::hardware_concurrency(), " cores, ", kernels::CurrentIsa());
}

}  // namespace lattice::reproduce
