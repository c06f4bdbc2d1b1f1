// Parses the header of a safetensors file in one pass over the events of the JSON library's SAX parser.
#include "io/safetensors_header.h"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"

namespace lattice::io {
namespace {

using nlohmann::json;

constexpr size_t kMaxRank = 32;

// Event handler of the SAX parser. The format has three levels:
//   { "__metadata__": { "key": "text", ... },
//     "name": { "dtype": "F32", "shape": [2,3], "data_offsets": [0,24] }, ... }
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view source) : source_(source) {}

  SafetensorsHeader Take() { return std::move(header_); }

  bool start_object(size_t) {
    if (level_ == Level::kOutside) {
      level_ = Level::kTop;
    } else if (level_ == Level::kTop && in_metadata_) {
      level_ = Level::kMetadata;
    } else if (level_ == Level::kTop) {
      level_ = Level::kTensor;
      seen_dtype_ = seen_shape_ = seen_offsets_ = false;
    } else {
      Unexpected("an object");
    }
    return true;
  }

  bool end_object() {
    if (level_ == Level::kTensor) FinishTensor();
    level_ = level_ == Level::kTop ? Level::kOutside : Level::kTop;
    return true;
  }

  bool key(std::string& text) {
    if (level_ == Level::kTop) {
      Require(names_.insert(text).second, "the name \"", text, "\" occurs twice");
      in_metadata_ = text == "__metadata__";
      tensor_ = {};
      tensor_.name = text;
    } else if (level_ == Level::kMetadata) {
      Require(!header_.metadata.contains(text), "the metadata key \"", text, "\" occurs twice");
    } else {
      bool* seen = text == "dtype"          ? &seen_dtype_
                   : text == "shape"        ? &seen_shape_
                   : text == "data_offsets" ? &seen_offsets_
                                            : nullptr;
      Require(seen != nullptr, Here(), "has the unknown field \"", text, "\"");
      Require(!*seen, Here(), "has the field \"", text, "\" twice");
      *seen = true;
    }
    key_ = text;
    return true;
  }

  bool string(std::string& text) {
    if (level_ == Level::kMetadata) {
      header_.metadata[key_] = text;
    } else if (level_ == Level::kTensor && key_ == "dtype") {
      const std::optional<Dtype> dtype = FindDtype(text);
      Require(dtype.has_value(), Here(), "has the unknown dtype \"", text, "\"");
      tensor_.dtype = *dtype;
    } else {
      Unexpected("a string");
    }
    return true;
  }

  bool start_array(size_t) {
    if (level_ != Level::kTensor || key_ == "dtype") Unexpected("a list");
    level_ = Level::kList;
    numbers_.clear();
    return true;
  }

  bool end_array() {
    level_ = Level::kTensor;
    if (key_ == "shape") {
      tensor_.shape.assign(numbers_.begin(), numbers_.end());
    } else {
      Require(numbers_.size() == 2, Here(), "has ", numbers_.size(), " data_offsets; expected 2");
      tensor_.begin = numbers_[0];
      tensor_.end = numbers_[1];
    }
    return true;
  }

  bool number_unsigned(uint64_t value) {
    if (level_ != Level::kList) Unexpected("a number");
    Require(value <= INT64_MAX, Here(), "has the number ", value, " in ", key_, ", beyond 2^63 - 1");
    Require(numbers_.size() < kMaxRank, Here(), "has more than ", kMaxRank, " numbers in ", key_);
    numbers_.push_back(value);
    return true;
  }

  bool null() { Unexpected("null"); }
  bool boolean(bool) { Unexpected("true or false"); }
  bool number_integer(int64_t) { Unexpected("a negative number"); }
  bool number_float(double, const std::string&) { Unexpected("a number that is no 64-bit integer"); }
  bool binary(json::binary_t&) { Unexpected("binary data"); }

  bool parse_error(size_t position, const std::string&, const json::exception&) {
    Fail("[safetensors] ", source_, ": the header is not valid JSON at byte ", position);
  }

 private:
  enum class Level { kOutside, kTop, kMetadata, kTensor, kList };

  template <typename... Args>
  void Require(bool ok, const Args&... args) const {
    Check(ok, "[safetensors] ", source_, ": ", args...);
  }

  // Names the tensor in a message. It is formatted only when the message is printed, because a name may be
  // long.
  struct Where {
    const std::string& name;
    friend std::ostream& operator<<(std::ostream& out, const Where& where) {
      return out << "tensor \"" << where.name << "\" ";
    }
  };
  Where Here() const { return {tensor_.name}; }

  [[noreturn]] void Unexpected(std::string_view what) const {
    switch (level_) {
      case Level::kOutside:
        Fail("[safetensors] ", source_, ": the header must be one JSON object, got ", what);
      case Level::kTop:
        Fail("[safetensors] ", source_, ": \"", key_, "\" must be an object, got ", what);
      case Level::kMetadata:
        Fail("[safetensors] ", source_, ": metadata \"", key_, "\" must be a string, got ", what);
      default:
        Fail("[safetensors] ", source_, ": ", Here(), "cannot have ", what, " in ", key_);
    }
  }

  void FinishTensor() {
    Require(seen_dtype_ && seen_shape_ && seen_offsets_, Here(), "lacks ",
            !seen_dtype_ ? "dtype" : (!seen_shape_ ? "shape" : "data_offsets"));
    header_.tensors.push_back(std::move(tensor_));
  }

  std::string_view source_;
  SafetensorsHeader header_;
  Level level_ = Level::kOutside;
  bool in_metadata_ = false;
  bool seen_dtype_ = false, seen_shape_ = false, seen_offsets_ = false;
  std::string key_;
  std::set<std::string> names_;
  TensorEntry tensor_;
  std::vector<uint64_t> numbers_;
};

}  // namespace

SafetensorsHeader ParseSafetensorsHeader(std::string_view text, std::string_view source) {
  Check(text.starts_with('{'), "[safetensors] ", source, ": the header must start with \"{\"");
  // The parser takes a NUL for the end of the text and would ignore what follows.
  Check(text.find('\0') == std::string_view::npos, "[safetensors] ", source,
        ": the header is not valid JSON: it has a NUL byte");
  HeaderReader reader(source);
  json::sax_parse(text.begin(), text.end(), &reader);
  return reader.Take();
}

}  // namespace lattice::io
