// lattice-differential: random problems through every instruction set of this machine and the reference, forward and
// gradients. Prints a line of JSON with what was compared; the first disagreement ends it with exit code 1 and is told
// with its seed.
#include <charconv>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "compare.h"

namespace {

using namespace lattice;

constexpr const char* kUsage =
    "Usage: lattice-differential [--first SEED] [--problems N] [--spoil]\n"
    "Compares N problems (default 1), those of the seeds from SEED (default 0) on. --spoil changes a result "
    "of each, to\n"
    "show that it is found. Exit code: 0 all agree, 1 a disagreement, 2 wrong use.\n";

struct Options {
  uint64_t first = 0, problems = 1;
  bool spoil = false;
};

std::optional<Options> ParseOptions(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--spoil") {
      options.spoil = true;
      continue;
    }
    uint64_t* value = flag == "--first" ? &options.first : flag == "--problems" ? &options.problems : nullptr;
    if (value == nullptr || ++i == argc) return std::nullopt;
    const char* end = argv[i] + std::strlen(argv[i]);
    const auto [read, error] = std::from_chars(argv[i], end, *value);
    if (error != std::errc() || read != end) return std::nullopt;
  }
  return options;
}

int Run(const Options& options) {
  std::map<std::string, int64_t> rules;
  int64_t tensors = 0, skipped = 0;
  double largest = 0;
  for (uint64_t seed = options.first; seed < options.first + options.problems; ++seed) {
    const differential::RandomProblem problem = differential::DrawProblem(seed);
    const differential::Comparison compared = differential::Compare(problem, options.spoil);
    ++rules[problem.variant.rule];
    tensors += compared.tensors, skipped += compared.skipped, largest = std::max(largest, compared.largest);
    if (compared.disagreements.empty()) continue;
    std::cout << "seed " << seed << ": " << Text(problem) << "\n";
    for (const std::string& disagreement : compared.disagreements)
      std::cout << "    " << disagreement << "\n";
    std::cout << "repeat with: lattice-differential --first " << seed << "\n";
    return 1;
  }
  const nlohmann::ordered_json line = {
      {"problems", options.problems},     {"tensors", tensors}, {"skipped", skipped}, {"largest", largest},
      {"isas", kernels::AvailableIsas()}, {"rules", rules}};
  std::cout << line.dump() << "\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<Options> options = ParseOptions(argc, argv);
  if (!options) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  try {
    return Run(*options);
  } catch (const Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
