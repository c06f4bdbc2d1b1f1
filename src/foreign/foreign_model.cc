#include "foreign/foreign_model.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "foreign/gguf_model.h"
#include "foreign/hugging_face.h"
#include "io/file.h"
#include "model/tensors.h"

namespace lattice::foreign {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxLicenseBytes = size_t{1} << 20;

// The GGUF file that `path` is or has; empty when there is none. Throws Error when there are several.
fs::path FindGguf(const fs::path& path) {
  Check(fs::exists(path), "[import] there is no file or directory ", path.string());
  if (!fs::is_directory(path)) return path;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(path)) {
    if (entry.path().extension() == ".gguf") found.push_back(entry.path());
  }
  Check(found.size() <= 1, "[import] ", path.string(), " has several GGUF files; name one of them");
  return found.empty() ? fs::path() : found[0];
}

bool HasConfig(const fs::path& path) { return fs::exists(path / "config.json"); }

fs::path RequireGguf(const fs::path& path) {
  fs::path file = FindGguf(path);
  Check(!file.empty(), "[import] ", path.string(),
        " has no model: expected config.json with safetensors, or a .gguf file");
  return file;
}

}  // namespace

ForeignModel OpenForeign(const fs::path& path) {
  return HasConfig(path) ? OpenHuggingFace(path) : OpenGguf(RequireGguf(path));
}

std::unique_ptr<text::Tokenizer> OpenForeignTokenizer(const fs::path& path) {
  return HasConfig(path) ? OpenHuggingFaceTokenizer(path) : OpenGgufTokenizer(RequireGguf(path));
}

std::string CountTypes(const std::vector<std::string>& types) {
  std::map<std::string, int64_t> counts;
  for (const std::string& type : types) ++counts[type];
  std::vector<std::pair<int64_t, std::string>> sorted;
  for (const auto& [type, count] : counts) sorted.emplace_back(-count, type);
  std::sort(sorted.begin(), sorted.end());
  std::string text;
  for (const auto& [count, type] : sorted) text += StrCat(text.empty() ? "" : ", ", -count, " ", type);
  return text;
}

std::vector<text::TokenizerFile> LicenseFiles(const fs::path& directory) {
  std::vector<text::TokenizerFile> files;
  for (const char* name : {"LICENSE", "LICENSE.txt", "LICENSE.md", "LICENCE", "NOTICE"}) {
    if (fs::is_regular_file(directory / name))
      files.push_back({name, io::ReadFile(directory / name, kMaxLicenseBytes)});
  }
  return files;
}

void CheckAllUsed(const model::ModelConfig& config, const std::vector<std::string>& names,
                  std::string (*name_of)(std::string_view ours), const std::string& source) {
  std::set<std::string> used;
  for (const model::TensorInfo& info : model::ModelTensors(config)) used.insert(name_of(info.name));
  for (const std::string& name : names) {
    Check(used.contains(name), "[import] ", source, " has the tensor \"", name,
          "\", which a model of this kind does not have here; it would be left out");
  }
}

}  // namespace lattice::foreign
