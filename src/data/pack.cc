// Packs a corpus into token shards: a pipeline of one reader and several tokenizers, and a journal that makes
// it resumable.
#include "data/pack.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/error.h"
#include "data/pack_input.h"
#include "data/token_store.h"
#include "io/directory_lock.h"
#include "io/hash.h"
#include "io/json.h"
#include "io/sealed_json.h"
#include "io/write_calls.h"

namespace lattice::data {
namespace {

constexpr int64_t kJournalVersion = 1;

// A tokenised batch.
struct EncodedBatch {
  std::vector<int32_t> tokens;
  int64_t text_bytes = 0;
  int64_t documents = 0;
  int64_t malformed = 0;
  std::string first_malformed;
  InputPosition end;
  int64_t input_bytes = 0;
  size_t record_bytes = 0;
};

EncodedBatch Encode(const RecordBatch& batch, const text::Tokenizer& tokenizer, const std::string& field) {
  EncodedBatch out;
  out.end = batch.end;
  out.input_bytes = batch.input_bytes;
  out.record_bytes = batch.record_bytes;
  const int32_t eot = tokenizer.special().eot;
  std::string parsed;
  for (const Record& record : batch.records) {
    const std::string* text = &record.text;
    if (record.json) {
      try {
        parsed = io::JsonStringField(record.text, field);
      } catch (const Error& error) {
        if (out.malformed++ == 0)
          out.first_malformed = StrCat(batch.file, ":", record.line, ": ", error.what());
        continue;
      }
      text = &parsed;
    }
    tokenizer.EncodeTo(*text, out.tokens);
    out.text_bytes += static_cast<int64_t>(text->size());
    if (!record.ends) continue;
    ++out.documents;
    if (eot >= 0) out.tokens.push_back(eot);
  }
  return out;
}

// Limits the memory of records in the pipeline: a batch has little more than half a MiB, but a single record
// may have 64 MiB.
constexpr size_t kMostRecordBytes = size_t{64} << 20;

// One thread reads, several tokenise, and the caller takes the results in the order of the input. At most a
// few batches per thread are in the pipeline.
class Pipeline {
 public:
  Pipeline(BatchReader& reader, const text::Tokenizer& tokenizer, const std::string& field, int threads)
      : most_under_way_(4 * threads + 4) {
    threads_.emplace_back([this, &reader] { Guarded([&] { ReadAll(reader); }); });
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this, &tokenizer, &field] { Guarded([&] { EncodeAll(tokenizer, field); }); });
    }
  }
  ~Pipeline() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  // The next result, or nothing at the end. Throws what a thread has thrown.
  std::optional<EncodedBatch> Next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock,
                  [this] { return error_ || done_.contains(taken_) || (all_read_ && taken_ == read_); });
    if (error_) std::rethrow_exception(error_);
    const auto found = done_.find(taken_);
    if (found == done_.end()) return std::nullopt;
    EncodedBatch batch = std::move(found->second);
    done_.erase(found);
    ++taken_;
    record_bytes_ -= batch.record_bytes;
    changed_.notify_all();
    return batch;
  }

 private:
  template <typename Action>
  void Guarded(Action&& action) {
    try {
      action();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
      stopping_ = true;
    }
    changed_.notify_all();
  }

  bool HasRoomFor(const RecordBatch& batch) const {
    const int64_t under_way = read_ - taken_;
    return under_way == 0 ||
           (under_way < most_under_way_ && record_bytes_ + batch.record_bytes <= kMostRecordBytes);
  }

  void ReadAll(BatchReader& reader) {
    while (std::optional<RecordBatch> batch = reader.Next()) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || HasRoomFor(*batch); });
      if (stopping_) return;
      record_bytes_ += batch->record_bytes;
      waiting_.emplace_back(read_++, std::move(*batch));
      changed_.notify_all();
    }
    const std::lock_guard lock(mutex_);
    all_read_ = true;
  }

  void EncodeAll(const text::Tokenizer& tokenizer, const std::string& field) {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stopping_ || !waiting_.empty() || all_read_; });
      if (stopping_ || waiting_.empty()) return;
      const auto [number, batch] = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      EncodedBatch encoded = Encode(batch, tokenizer, field);
      lock.lock();
      done_.emplace(number, std::move(encoded));
      changed_.notify_all();
    }
  }

  const int64_t most_under_way_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<int64_t, RecordBatch>> waiting_;
  std::map<int64_t, EncodedBatch> done_;
  int64_t read_ = 0, taken_ = 0;
  size_t record_bytes_ = 0;  // of batches that have been read and not yet taken
  bool all_read_ = false, stopping_ = false;
  std::exception_ptr error_;
  std::vector<std::thread> threads_;
};

// Identifies everything that must be the same when an interrupted call is resumed.
std::string InputsFingerprint(const PackOptions& options, const std::vector<InputFile>& files,
                              const text::Tokenizer& tokenizer) {
  std::string all = StrCat(tokenizer.hash(), "\n", options.source.field, "\n", options.source.split_documents,
                           "\n", options.shard_tokens, "\n");
  for (const InputFile& file : files) {
    all += StrCat(std::filesystem::absolute(file.path).lexically_normal().string(), "\n", file.bytes, "\n");
  }
  return io::Sha256Hex(all);
}

class Journal {
 public:
  Journal(const std::filesystem::path& out, std::string mark)
      : path_(out / kPackJournal), mark_(std::move(mark)) {}

  void Load(PackProgress& progress, InputPosition& position) const {
    if (!std::filesystem::exists(path_)) return;
    const std::string source = path_.string();
    const nlohmann::json object = io::ReadSealedJson(path_);
    Check(io::GetJson<int64_t>(object, "version", source) == kJournalVersion &&
              io::GetJson<std::string>(object, "mark", source) == mark_,
          "[pack] ", path_.parent_path().string(),
          " was begun with other inputs, another tokenizer or other options; go on with those, or give "
          "another --out");
    position = {io::GetJson<int64_t>(object, "file", source), io::GetJson<int64_t>(object, "record", source)};
    progress.shards = io::GetJson<int64_t>(object, "shards", source);
    progress.tokens = io::GetJson<int64_t>(object, "tokens", source);
    progress.documents = io::GetJson<int64_t>(object, "documents", source);
    progress.text_bytes = io::GetJson<int64_t>(object, "text_bytes", source);
    progress.malformed = io::GetJson<int64_t>(object, "malformed", source);
    progress.first_malformed = io::GetJson<std::string>(object, "first_malformed", source);
    progress.resumed = true;
  }

  void Save(const PackProgress& progress, const InputPosition& position) const {
    // Paths need not be UTF-8.
    const std::string shown = nlohmann::json(progress.first_malformed)
                                  .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    io::WriteSealedJson(path_, {{"version", kJournalVersion},
                                {"mark", mark_},
                                {"file", position.file},
                                {"record", position.record},
                                {"shards", progress.shards},
                                {"tokens", progress.tokens},
                                {"documents", progress.documents},
                                {"text_bytes", progress.text_bytes},
                                {"malformed", progress.malformed},
                                {"first_malformed", nlohmann::json::parse(shown)}});
  }

  void Remove() const { io::CurrentWriteCalls().Unlink(path_.c_str()); }

 private:
  std::filesystem::path path_;
  std::string mark_;
};

void Add(PackProgress& progress, const EncodedBatch& batch) {
  progress.input_bytes = batch.input_bytes;
  progress.text_bytes += batch.text_bytes;
  progress.tokens += static_cast<int64_t>(batch.tokens.size());
  progress.documents += batch.documents;
  if (progress.malformed == 0) progress.first_malformed = batch.first_malformed;
  progress.malformed += batch.malformed;
}

}  // namespace

PackProgress Pack(const PackOptions& options, const text::Tokenizer& tokenizer,
                  const std::function<void(const PackProgress&)>& report) {
  const std::vector<InputFile> files = ListInputs(options.inputs);
  // Locked first: another process may be about to complete the directory.
  const io::DirectoryLock lock(options.out, "packing");
  Check(!IsTokenStore(options.out), "[pack] ", options.out.string(),
        " holds complete token shards already; give another --out");
  const Journal journal(options.out, InputsFingerprint(options, files, tokenizer));
  PackProgress progress;
  for (const InputFile& file : files) progress.total_input_bytes += file.bytes;
  InputPosition position;
  journal.Load(progress, position);

  BatchReader reader(files, options.source, position);
  TokenStoreWriter writer(options.out, tokenizer.hash(), options.shard_tokens, progress.shards);
  Pipeline pipeline(reader, tokenizer, options.source.field, options.threads);
  while (const std::optional<EncodedBatch> batch = pipeline.Next()) {
    writer.AppendWhole(batch->tokens, batch->text_bytes);
    Add(progress, *batch);
    if (writer.shards() > progress.shards) {
      progress.shards = writer.shards();
      journal.Save(progress, batch->end);
    }
    if (report) report(progress);
  }
  Check(progress.tokens > 0, "[pack] the input holds no text",
        progress.malformed > 0
            ? StrCat("; the first of ", progress.malformed, " malformed lines: ", progress.first_malformed)
            : "");
  writer.Finish(progress.documents);
  progress.shards = writer.shards();
  journal.Remove();
  return progress;
}

}  // namespace lattice::data
