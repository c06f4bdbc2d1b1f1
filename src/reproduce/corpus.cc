#include "reproduce/corpus.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "io/file.h"
#include "io/hash.h"

namespace lattice::reproduce {
namespace {

namespace fs = std::filesystem;

std::string Fingerprint(const fs::path& train, const fs::path& valid) {
  io::Sha256 hash;
  for (const fs::path& part : {train, valid}) {
    for (const fs::path& file : FilesOf(part))
      hash.Update(StrCat(file.filename().string(), " ", io::FileChecksum(file), "\n"));
  }
  return hash.Finish().substr(0, 16);
}

}  // namespace

std::vector<fs::path> FilesOf(const fs::path& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

Corpus FindCorpus(const fs::path& directory, const std::string& name) {
  const std::array<std::array<std::string, 2>, 3> candidates = {
      {{name + "_train.txt", name + "_valid.txt"}, {"train.txt", "valid.txt"}, {"train", "valid"}}};
  for (const auto& [train, valid] : candidates) {
    if (!fs::exists(directory / train) || !fs::exists(directory / valid)) continue;
    Corpus out;
    out.train = fs::absolute(directory / train);
    out.valid = fs::absolute(directory / valid);
    out.fingerprint = Fingerprint(out.train, out.valid);
    out.shown_train = "DATA/" + train;
    out.shown_valid = "DATA/" + valid;
    return out;
  }
  Fail("[reproduce] ", directory.string(), " holds neither ", name, "_train.txt and ", name,
       "_valid.txt nor train and valid; pass --data DIRECTORY with one of them");
}

}  // namespace lattice::reproduce
