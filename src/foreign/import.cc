#include "foreign/import.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "foreign/foreign_model.h"
#include "io/directory.h"
#include "io/file.h"
#include "io/json.h"
#include "model/checkpoint.h"
#include "runtime/model.h"
#include "runtime/weights.h"

namespace lattice::foreign {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kBelongings[] = {kImportFile, "chat_template.jinja", "generation_config.json"};
constexpr size_t kMaxBytes = size_t{1} << 20;

std::string NameOf(const fs::path& path) {
  const fs::path name = path.has_filename() ? path.filename() : path.parent_path().filename();
  return name.string();
}

void WriteOrigin(const Origin& origin, const fs::path& directory) {
  io::WriteFileAtomic(directory / kImportFile, io::DumpJsonIndented({{"source", origin.source},
                                                                     {"format", origin.format},
                                                                     {"architecture", origin.architecture},
                                                                     {"name", origin.name},
                                                                     {"license", origin.license},
                                                                     {"weights", origin.weights},
                                                                     {"context", origin.context},
                                                                     {"license_files", origin.licenses}}));
}

}  // namespace

Imported Import(const fs::path& from, const fs::path& out, kernels::WeightFormat format) {
  const ForeignModel model = OpenForeign(from);
  const auto tokenizer = OpenForeignTokenizer(from);
  runtime::RequireTokenizer(model.config, *tokenizer, from.string());
  Imported imported = {{NameOf(from),
                        model.format,
                        model.architecture,
                        model.name,
                        model.license,
                        model.weights,
                        model.context,
                        {}},
                       model.config};
  const runtime::Weights weights(model.config, model.fill, format);
  io::AtomicDirectory directory(out);
  runtime::WriteWeights(model.config, weights, directory.path() / model::kWeightsFile);
  io::WriteFileAtomic(directory.path() / model::kConfigFile,
                      model::ModelToJson(model.config, runtime::TorchName(format)));
  text::SaveTokenizer(*tokenizer, directory.path());
  for (const text::TokenizerFile& file : model.files) {
    io::WriteFileAtomic(directory.path() / file.name, file.content);
    if (file.name.starts_with("LICEN") || file.name == "NOTICE")
      imported.origin.licenses.push_back(file.name);
  }
  WriteOrigin(imported.origin, directory.path());
  directory.Commit();
  return imported;
}

std::optional<Origin> ReadOrigin(const fs::path& directory) {
  const fs::path path = directory / kImportFile;
  if (!fs::exists(path)) return std::nullopt;
  const json saved = io::ReadJson(path, {.bytes = kMaxBytes});
  const auto text = [&](const char* key) { return io::GetJson<std::string>(saved, key, path.string()); };
  Origin origin = {text("source"),
                   text("format"),
                   text("architecture"),
                   text("name"),
                   text("license"),
                   text("weights"),
                   io::GetJson<int64_t>(saved, "context", path.string()),
                   {}};
  const json files = saved.value("license_files", json::array());
  Check(files.is_array(), "[import] ", path.string(), ": \"license_files\" must be a list");
  for (const json& file : files) {
    const bool name =
        file.is_string() && fs::path(file.get<std::string>()).filename() == file.get<std::string>();
    Check(name, "[import] ", path.string(), ": \"license_files\" must have names of files beside it");
    origin.licenses.push_back(file.get<std::string>());
  }
  return origin;
}

void CopyBelongings(const fs::path& from, const fs::path& to) {
  const std::optional<Origin> origin = ReadOrigin(from);
  if (!origin.has_value()) return;
  std::vector<std::string> names(std::begin(kBelongings), std::end(kBelongings));
  names.insert(names.end(), origin->licenses.begin(), origin->licenses.end());
  for (const std::string& name : names) {
    if (fs::is_regular_file(from / name))
      io::WriteFileAtomic(to / name, io::ReadFile(from / name, kMaxBytes));
  }
}

}  // namespace lattice::foreign
