// Reads documents from text, JSON lines and parquet files.
#include "data/text_source.h"

#include <array>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "data/byte_stream.h"
#include "data/parquet.h"
#include "text/documents.h"

namespace lattice::data {
namespace {

constexpr size_t kReadBytes = size_t{1} << 18;
// The longest JSON line: a line is tokenised as a whole, and its tokens may take eight times its bytes.
constexpr size_t kLongestLine = size_t{1} << 26;
constexpr std::array<std::string_view, 3> kJsonEndings = {".jsonl", ".ndjson", ".json"};

bool IsJson(const std::string& ending) {
  for (const std::string_view entry : kJsonEndings) {
    if (entry == ending) return true;
  }
  return false;
}

// Splits a stream into lines, each with its newline.
class Lines {
 public:
  explicit Lines(const std::filesystem::path& path)
      : name_(path.string()), stream_(OpenByteStream(path)), block_(kReadBytes) {}

  // Appends the next line to `out`, at most `most` bytes of it; false at the end of the stream. Sets `whole`
  // to whether the end of the line was reached.
  bool Append(std::string& out, size_t most, bool& whole) {
    const size_t before = out.size();
    whole = false;
    while (!whole && out.size() - before < most) {
      if (rest_.empty()) {
        rest_ = std::string_view(block_.data(), stream_->Read(block_));
        if (rest_.empty()) break;
      }
      const size_t newline = rest_.find('\n');
      const size_t size = newline == std::string_view::npos ? rest_.size() : newline + 1;
      const size_t take = std::min(size, most - (out.size() - before));
      out.append(rest_.substr(0, take));
      rest_.remove_prefix(take);
      whole = newline != std::string_view::npos && take == size;
    }
    return out.size() > before;
  }

  const std::string& name() const { return name_; }
  int64_t consumed() const { return stream_->consumed(); }

 private:
  std::string name_;
  std::unique_ptr<ByteStream> stream_;
  std::vector<char> block_;
  std::string_view rest_;
};

class JsonSource : public TextSource {
 public:
  explicit JsonSource(const std::filesystem::path& path) : lines_(path) {}

  std::optional<Record> Next() override {
    while (true) {
      Record record;
      record.json = true;
      bool whole = false;
      if (!lines_.Append(record.text, kLongestLine, whole)) return std::nullopt;
      ++line_;
      Check(record.text.size() < kLongestLine, "[data] ", lines_.name(), ":", line_,
            ": the line has more than ", kLongestLine >> 20, " MiB; is this a file of JSON lines?");
      record.line = line_;
      if (record.text.find_first_not_of(" \t\r\n") != std::string::npos) return record;
    }
  }
  int64_t consumed() const override { return lines_.consumed(); }

 private:
  Lines lines_;
  int64_t line_ = 0;
};

class PlainSource : public TextSource {
 public:
  PlainSource(const std::filesystem::path& path, bool split) : lines_(path), split_(split) {}

  std::optional<Record> Next() override {
    Record record;
    while (!ended_ && record.text.size() < kLongestPiece) {
      const size_t before = record.text.size();
      const bool at_start = std::exchange(line_start_, false);
      if (!lines_.Append(record.text, kLongestPiece, line_start_)) {
        ended_ = true;
        break;
      }
      if (split_ && at_start && text::IsEndOfTextLine(std::string_view(record.text).substr(before))) {
        record.text.resize(before);
        open_ = false;
        return record;
      }
      open_ = true;
    }
    if (!ended_) {
      record.ends = false;
      return record;
    }
    // The end of the file ends an open document; after a marker none is open.
    if (!std::exchange(open_, false)) return std::nullopt;
    return record;
  }
  int64_t consumed() const override { return lines_.consumed(); }

 private:
  Lines lines_;
  bool split_;
  bool line_start_ = true;
  bool open_ = false;  // there has been text since the last end of a document
  bool ended_ = false;
};

}  // namespace

bool HasTextEnding(const std::filesystem::path& path) {
  const std::string ending = ContentEnding(path);
  return ending == ".txt" || IsJson(ending) || path.extension() == ".parquet";
}

std::unique_ptr<TextSource> OpenTextSource(const std::filesystem::path& path, const SourceOptions& options) {
  if (path.extension() == ".parquet") return OpenParquet(path, options.field);
  const std::string ending = ContentEnding(path);
  if (IsJson(ending)) return std::make_unique<JsonSource>(path);
  if (ending == ".txt") return std::make_unique<PlainSource>(path, options.split_documents);
  OpenByteStream(path);  // throws a better message if the file is missing or the compression is unknown
  Fail("[data] ", path.string(), " ends in \"", ending,
       "\"; expected .txt, .jsonl or .parquet (.txt and .jsonl also with .gz, .zst or .xz behind)");
}

}  // namespace lattice::data
