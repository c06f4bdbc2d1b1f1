// The only file that sees Arrow; becomes lattice_parquet.so.
#include <arrow/api.h>
#include <arrow/io/file.h>
#include <parquet/arrow/reader.h>
#include <parquet/exception.h>

#include <algorithm>

#include "base/error.h"
#include "data/parquet.h"

namespace lattice::data {
namespace {

// Rows decoded at a time: bounds the memory, however large a row group is.
constexpr int64_t kRows = 256;

void CheckStatus(const arrow::Status& status, const std::string& name) {
  Check(status.ok(), "[data] cannot read ", name, ": ", status.message());
}

template <typename T>
T Get(arrow::Result<T> result, const std::string& name) {
  CheckStatus(result.status(), name);
  return std::move(result).ValueUnsafe();
}

// No string or list of the metadata is longer than the file. By default Arrow believes a file of a few bytes that says that
// 100 MB of text follow, and allocates them.
parquet::ReaderProperties Limits(int64_t file_size) {
  parquet::ReaderProperties properties;
  const auto most = static_cast<int32_t>(std::min<int64_t>(file_size, properties.thrift_string_size_limit()));
  properties.set_thrift_string_size_limit(most);
  properties.set_thrift_container_size_limit(std::min(most, properties.thrift_container_size_limit()));
  return properties;
}

class ParquetSource : public TextSource {
 public:
  ParquetSource(const std::string& name, const std::string& column) : name_(name) {
    file_ = Get(arrow::io::ReadableFile::Open(name), name_);
    parquet::arrow::FileReaderBuilder builder;
    CheckStatus(builder.Open(file_, Limits(Get(file_->GetSize(), name_))), name_);
    parquet::ArrowReaderProperties properties;
    properties.set_batch_size(kRows);
    properties.set_pre_buffer(false);
    reader_ = Get(builder.properties(properties)->Build(), name_);

    std::shared_ptr<arrow::Schema> schema;
    CheckStatus(reader_->GetSchema(&schema), name_);
    const int leaf = LeafOf(*schema, column);
    std::vector<int> groups(static_cast<size_t>(reader_->num_row_groups()));
    for (size_t i = 0; i < groups.size(); ++i) groups[i] = static_cast<int>(i);
    batches_ = Get(reader_->GetRecordBatchReader(groups, {leaf}), name_);
  }

  std::optional<Record> Next() override {
    while (true) {
      if (row_ == rows_ && !Advance()) return std::nullopt;
      const int64_t row = row_++;
      if (values_->IsNull(row)) continue;
      Record record;
      record.text = std::string(View(row));
      return record;
    }
  }
  int64_t consumed() const override { return Get(file_->Tell(), name_); }

 private:
  int LeafOf(const arrow::Schema& schema, const std::string& column) const {
    const auto& parquet = *reader_->parquet_reader()->metadata()->schema();
    for (int i = 0; i < parquet.num_columns(); ++i) {
      if (parquet.Column(i)->path()->ToDotString() != column) continue;
      Check(parquet.Column(i)->physical_type() == parquet::Type::BYTE_ARRAY, "[data] the column \"", column,
            "\" of ", name_, " holds no text");
      return i;
    }
    std::string names;
    for (const auto& field : schema.fields()) names += StrCat(names.empty() ? "" : ", ", field->name());
    Fail("[data] ", name_, " has no column \"", column, "\"; there are: ", names, "; pass --field NAME");
  }

  bool Advance() {
    std::shared_ptr<arrow::RecordBatch> batch;
    do {
      CheckStatus(batches_->ReadNext(&batch), name_);
      if (batch == nullptr) return false;
    } while (batch->num_rows() == 0);
    values_ = batch->column(0);
    rows_ = values_->length();
    row_ = 0;
    return true;
  }

  std::string_view View(int64_t row) const {
    switch (values_->type_id()) {
      case arrow::Type::STRING:
      case arrow::Type::BINARY:
        return static_cast<const arrow::BinaryArray&>(*values_).GetView(row);
      case arrow::Type::LARGE_STRING:
      case arrow::Type::LARGE_BINARY:
        return static_cast<const arrow::LargeBinaryArray&>(*values_).GetView(row);
      case arrow::Type::DICTIONARY: {
        const auto& coded = static_cast<const arrow::DictionaryArray&>(*values_);
        return static_cast<const arrow::BinaryArray&>(*coded.dictionary()).GetView(coded.GetValueIndex(row));
      }
      default:
        Fail("[data] ", name_, " holds ", values_->type()->ToString(), " where text was expected");
    }
  }

  std::string name_;
  std::shared_ptr<arrow::io::ReadableFile> file_;
  std::unique_ptr<parquet::arrow::FileReader> reader_;
  std::unique_ptr<arrow::RecordBatchReader> batches_;
  std::shared_ptr<arrow::Array> values_;
  int64_t row_ = 0, rows_ = 0;
};

}  // namespace
}  // namespace lattice::data

extern "C" __attribute__((visibility("default"))) lattice::data::TextSource* lattice_open_parquet(
    const char* path, const char* column) {
  try {
    return new lattice::data::ParquetSource(path, column);
  } catch (const parquet::ParquetException& error) {
    lattice::Fail("[data] cannot read ", path, ": ", error.what());
  }
}
