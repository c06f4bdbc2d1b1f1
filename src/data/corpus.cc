// Maps text files, splits them into documents, and holds out a part for validation.
#include "data/corpus.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.h"
#include "io/checksum.h"

namespace lattice::data {
namespace {

constexpr std::array<std::string_view, 6> kPackedEndings = {".gz", ".xz", ".zst", ".bz2", ".zip", ".parquet"};

std::vector<std::filesystem::path> TextFiles(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.is_regular_file() && entry.path().extension() == ".txt") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  Check(!files.empty(), "[data] ", directory.string(), " holds neither token shards nor .txt files");
  return files;
}

// The end of the line around `at`; in a text without lines, the end of the character.
size_t CutIn(std::string_view text, size_t at) {
  const size_t newline = text.find('\n', at == 0 ? 0 : at - 1);
  if (newline != std::string_view::npos && newline + 1 < text.size()) return newline + 1;
  const size_t before = text.rfind('\n', at);
  if (before != std::string_view::npos) return before + 1;
  while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) ++at;
  return at;
}

}  // namespace

Corpus::Corpus(const std::filesystem::path& path, bool split_documents) {
  const std::string name = path.string();
  Check(!name.empty(), "[data] no text is given; pass --data FILE or set data.train");
  Check(std::filesystem::exists(path), "[data] there is no file or directory ", name);
  if (std::filesystem::is_directory(path)) {
    for (const std::filesystem::path& file : TextFiles(path)) Add(file, split_documents, true);
  } else {
    const std::string ending = path.extension().string();
    Check(std::find(kPackedEndings.begin(), kPackedEndings.end(), ending) == kPackedEndings.end(), "[data] ",
          name, " is packed; unpack it to a text file first");
    Add(path, split_documents, false);
  }
  Check(bytes_ > 0, "[data] ", name, " is empty; give a text to train on");
}

void Corpus::Add(const std::filesystem::path& path, bool split_documents, bool ends_document) {
  const std::string_view content = files_.emplace_back(path).text();
  hash_ = io::Checksum(content, hash_ * 4 + split_documents * 2 + ends_document);
  bytes_ += static_cast<int64_t>(content.size());
  std::vector<text::Document> added;
  if (split_documents) {
    added = text::SplitDocuments(content);
  } else if (!content.empty()) {
    added.push_back({content, false});
  }
  has_markers_ |= std::any_of(added.begin(), added.end(), [](const text::Document& d) { return d.ended; });
  if (!added.empty() && ends_document) added.back().ended = true;
  documents_.insert(documents_.end(), added.begin(), added.end());
}

Split HoldOut(const std::vector<text::Document>& documents, double fraction) {
  size_t total = 0;
  for (const text::Document& document : documents) total += document.text.size();
  const auto wanted = static_cast<size_t>(static_cast<double>(total) * fraction);
  if (wanted == 0) return {documents, {}};

  // Finds the document in which the held-out part begins.
  size_t index = documents.size();
  size_t held = 0;
  while (held < wanted) held += documents[--index].text.size();
  const text::Document& cut = documents[index];
  const size_t keep = held - wanted;
  Split split = {{documents.begin(), documents.begin() + static_cast<std::ptrdiff_t>(index)},
                 {documents.begin() + static_cast<std::ptrdiff_t>(index) + 1, documents.end()}};

  const size_t without = held - cut.text.size();  // bytes held out if the whole document stays in training
  const bool may_keep_all = without * 2 >= wanted;
  const bool may_keep_none = index > 0 && held <= wanted * 2;
  if (may_keep_all || may_keep_none) {
    const bool keep_all = may_keep_all && (!may_keep_none || wanted - without <= held - wanted);
    if (keep_all) {
      split.train.push_back(cut);
    } else {
      split.valid.insert(split.valid.begin(), cut);
    }
    return split;
  }
  const size_t at = CutIn(cut.text, keep);
  if (at > 0) split.train.push_back({cut.text.substr(0, at), false});
  if (at < cut.text.size()) split.valid.insert(split.valid.begin(), {cut.text.substr(at), cut.ended});
  return split;
}

}  // namespace lattice::data
