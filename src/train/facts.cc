#include "train/facts.h"

#include <dlfcn.h>
#include <torch/headeronly/version.h>

#include <array>
#include <charconv>
#include <string>
#include <system_error>
#include <variant>

#include "base/error.h"
#include "io/file.h"
#include "kernels/isa.h"
#include "model/keys.h"
#include "ops/row_norm.h"

namespace lattice::train {
namespace {

// Checksums of the program and of its library of operators. Debug information and all: a rank of another build
// may compute other bits.
std::string ProgramChecksum() {
  std::string text = std::to_string(io::FileChecksum("/proc/self/exe"));
  Dl_info library = {};
  if (::dladdr(reinterpret_cast<const void*>(&RmsNorm), &library) != 0 && library.dli_fname != nullptr)
    text += StrCat("/", io::FileChecksum(library.dli_fname));
  return text;
}

// A value with all its digits.
std::string ExactText(const model::Value& value) {
  if (!std::holds_alternative<double>(value))
    return std::visit([](const auto& any) { return StrCat(any); }, value);
  std::array<char, 32> text = {};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), std::get<double>(value));
  return error == std::errc() ? std::string(text.data(), end) : "?";
}

}  // namespace

dist::Facts ProgramFacts(const model::Config& config) {
  dist::Facts facts = {{"program (checksum)", ProgramChecksum()},
                       {"torch", TORCH_VERSION},
                       {"instruction set (LATTICE_ISA)", kernels::CurrentIsa()}};
  for (const model::Key& key : model::Keys()) {
    const std::string name = StrCat(key.section, ".", key.name);
    if (name == "data.train" || name == "data.valid" || name == "data.tokenizer") continue;
    facts.emplace_back(name, ExactText(key.get(config)));
  }
  return facts;
}

dist::Facts ResolvedFacts(const TrainerState& state) {
  return {{"training text (fingerprint)", state.data}, {"precision", state.precision}};
}

}  // namespace lattice::train
