// Makes a model directory of ours from a model of another program.
#ifndef LATTICE_FOREIGN_IMPORT_H_
#define LATTICE_FOREIGN_IMPORT_H_

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/dense/matmul.h"
#include "model/config.h"

namespace lattice::foreign {

// In the directory of an imported model: where it came from.
inline constexpr std::string_view kImportFile = "lattice_import.json";

struct Origin {
  std::string source;  // the name of the file or directory, without its path
  std::string format, architecture, name, license, weights;
  int64_t context = 0;                // longest text it was trained on; 0: not known
  std::vector<std::string> licenses;  // names of the licence files beside it
};

struct Imported {
  Origin origin;
  model::ModelConfig config;
};

// Writes config.json, model.safetensors in `format`, the tokenizer, lattice_import.json and the files that belong to
// the model into the new directory `out`, which appears complete or not at all. Throws Error that names what is not
// known here, before anything is written (foreign/foreign_model.h).
Imported Import(const std::filesystem::path& from, const std::filesystem::path& out,
                kernels::WeightFormat format);

// What Import has recorded in a directory; none when the model was not imported.
std::optional<Origin> ReadOrigin(const std::filesystem::path& directory);

// Copies what belongs to an imported model, apart from weights, config and tokenizer, to another directory.
void CopyBelongings(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace lattice::foreign

#endif  // LATTICE_FOREIGN_IMPORT_H_
