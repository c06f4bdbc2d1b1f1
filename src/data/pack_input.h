// The input side of packing: which files, and their records in batches that one thread tokenises at a time.
#ifndef LATTICE_DATA_PACK_INPUT_H_
#define LATTICE_DATA_PACK_INPUT_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/text_source.h"

namespace lattice::data {

struct InputFile {
  std::filesystem::path path;
  int64_t bytes = 0;
};

// Throws Error when a path is not there, and when no file with a known ending is found.
std::vector<InputFile> ListInputs(const std::vector<std::filesystem::path>& paths);

// Where reading stands: so many records of that file are done, and all files before it.
struct InputPosition {
  int64_t file = 0;
  int64_t record = 0;
};

struct RecordBatch {
  std::vector<Record> records;  // of one file
  std::string file;
  InputPosition end;        // behind the batch
  int64_t input_bytes = 0;  // read up to there, over all files
  size_t record_bytes = 0;  // that the records take in memory, about
};

// Records from `position` on; those before are read and dropped, which is much faster than tokenising them.
class BatchReader {
 public:
  // `files` must outlive the object.
  BatchReader(const std::vector<InputFile>& files, const SourceOptions& options, InputPosition position);
  // Batches do not depend on where reading began, if that was the end of one.
  std::optional<RecordBatch> Next();

 private:
  const std::vector<InputFile>& files_;
  SourceOptions options_;
  InputPosition position_;
  int64_t earlier_bytes_ = 0;  // of the files before
  std::unique_ptr<TextSource> source_;
};

}  // namespace lattice::data

#endif  // LATTICE_DATA_PACK_INPUT_H_
