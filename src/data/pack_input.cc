// Lists the input files of packing, and reads their records in batches.
#include "data/pack_input.h"

#include <algorithm>

#include "base/error.h"

namespace lattice::data {
namespace {

namespace fs = std::filesystem;

// Small enough to balance the load of the threads, large enough to be worth handing over.
constexpr size_t kBatchBytes = size_t{1} << 19;

std::vector<fs::path> FilesBelow(const fs::path& directory) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file() && HasTextEnding(entry.path())) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  Check(!found.empty(), "[pack] ", directory.string(), " holds no .txt, .jsonl or .parquet file");
  return found;
}

}  // namespace

std::vector<InputFile> ListInputs(const std::vector<fs::path>& paths) {
  Check(!paths.empty(), "[pack] no input is given");
  std::vector<InputFile> files;
  for (const fs::path& path : paths) {
    Check(fs::exists(path), "[pack] there is no file or directory ", path.string());
    Check(fs::is_directory(path) || fs::is_regular_file(path), "[pack] ", path.string(),
          " is neither a regular file nor a directory");
    const std::vector<fs::path> found = fs::is_directory(path) ? FilesBelow(path) : std::vector{path};
    for (const fs::path& file : found) files.push_back({file, static_cast<int64_t>(fs::file_size(file))});
  }
  return files;
}

BatchReader::BatchReader(const std::vector<InputFile>& files, const SourceOptions& options,
                         InputPosition position)
    : files_(files), options_(options), position_(position) {
  for (int64_t i = 0; i < position.file; ++i) earlier_bytes_ += files[static_cast<size_t>(i)].bytes;
  if (position_.record == 0) return;
  source_ = OpenTextSource(files_[static_cast<size_t>(position_.file)].path, options_);
  for (int64_t i = 0; i < position_.record; ++i) source_->Next();
}

std::optional<RecordBatch> BatchReader::Next() {
  RecordBatch batch;
  while (position_.file < static_cast<int64_t>(files_.size())) {
    const InputFile& file = files_[static_cast<size_t>(position_.file)];
    if (source_ == nullptr) source_ = OpenTextSource(file.path, options_);
    bool ended = false;
    while (batch.record_bytes < kBatchBytes && !ended) {
      std::optional<Record> record = source_->Next();
      ended = !record.has_value();
      if (ended) break;
      // A constant for the overhead of a record, which dominates for short documents.
      batch.record_bytes += record->text.size() + 64;
      batch.records.push_back(std::move(*record));
      ++position_.record;
    }
    batch.input_bytes = earlier_bytes_ + source_->consumed();
    batch.file = file.path.string();
    if (ended) {
      source_.reset();
      earlier_bytes_ += file.bytes;
      position_ = {position_.file + 1, 0};
    }
    batch.end = position_;
    if (!batch.records.empty()) return batch;
  }
  return std::nullopt;
}

}  // namespace lattice::data
