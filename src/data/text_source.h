// The documents of a file, one after the other, in bounded memory.
#ifndef LATTICE_DATA_TEXT_SOURCE_H_
#define LATTICE_DATA_TEXT_SOURCE_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace lattice::data {

struct SourceOptions {
  std::string field = "text";   // key of a JSON line, column of a parquet file
  bool split_documents = true;  // .txt: a line <|endoftext|> ends a document
};

struct Record {
  std::string text;
  bool json = false;  // `text` is a line of JSON, still to be read by io::JsonStringField()
  bool ends = true;   // a document ends here; false for a piece of one that is too long to hold
  int64_t line = 0;   // from 1: of the line of JSON
};

// One thread at a time.
class TextSource {
 public:
  virtual ~TextSource() = default;
  // The next record, or nothing at the end. Throws Error that names the file.
  virtual std::optional<Record> Next() = 0;
  // Bytes of the file read so far, for progress.
  virtual int64_t consumed() const = 0;
};

// By the ending: .txt, .jsonl (or .ndjson, .json), each also with .gz, .zst or .xz behind it, and .parquet.
// Throws Error for other endings, and for a parquet file without the column, naming those it has.
std::unique_ptr<TextSource> OpenTextSource(const std::filesystem::path& path, const SourceOptions& options);

// True when OpenTextSource() knows the ending.
bool HasTextEnding(const std::filesystem::path& path);

// Documents longer than this come in pieces, cut at the end of a line where there is one.
inline constexpr size_t kLongestPiece = size_t{8} << 20;

}  // namespace lattice::data

#endif  // LATTICE_DATA_TEXT_SOURCE_H_
