// The input of packing: lists the files, and reads their records in batches, each of which one thread
// tokenises.
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

// Throws Error when a path does not exist, and when no file with a known extension is found.
std::vector<InputFile> ListInputs(const std::vector<std::filesystem::path>& paths);

// A position in the input: `record` records of file `file`, and all files before it, have been read.
struct InputPosition {
  int64_t file = 0;
  int64_t record = 0;
};

struct RecordBatch {
  std::vector<Record> records;  // of one file
  std::string file;
  InputPosition end;        // the position after the batch
  int64_t input_bytes = 0;  // bytes read up to there, over all files
  size_t record_bytes = 0;  // approximate size of the records in memory
};

// Reads records from `position` on. Those before it are read and dropped, which is much faster than
// tokenising them.
class BatchReader {
 public:
  // `files` must outlive the object.
  BatchReader(const std::vector<InputFile>& files, const SourceOptions& options, InputPosition position);
  // The batches do not depend on where reading started, provided that it was the end of a batch.
  std::optional<RecordBatch> Next();

 private:
  const std::vector<InputFile>& files_;
  SourceOptions options_;
  InputPosition position_;
  int64_t earlier_bytes_ = 0;  // of the files before the current one
  std::unique_ptr<TextSource> source_;
};

}  // namespace lattice::data

#endif  // LATTICE_DATA_PACK_INPUT_H_
