// Reads the documents of a file one after the other, in bounded memory.
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
  bool json = false;  // `text` is a JSON line, still to be parsed by io::JsonStringField()
  bool ends = true;   // a document ends here; false for a piece of a very long document
  int64_t line = 0;   // line number of a JSON line, from 1
};

// Used by one thread at a time.
class TextSource {
 public:
  virtual ~TextSource() = default;
  // The next record, or nothing at the end. Throws Error that names the file.
  virtual std::optional<Record> Next() = 0;
  // Bytes of the file read so far, for progress.
  virtual int64_t consumed() const = 0;
};

// Opens a file by its extension: .txt, .jsonl (or .ndjson, .json), each optionally followed by .gz, .zst or
// .xz, and .parquet. Throws Error for other extensions, and for a parquet file without the column, listing
// those it has.
std::unique_ptr<TextSource> OpenTextSource(const std::filesystem::path& path, const SourceOptions& options);

// Whether OpenTextSource() knows the extension.
bool HasTextEnding(const std::filesystem::path& path);

// Longer documents are returned in pieces, cut at the end of a line if there is one.
inline constexpr size_t kLongestPiece = size_t{8} << 20;

}  // namespace lattice::data

#endif  // LATTICE_DATA_TEXT_SOURCE_H_
