// Builds GGUF files for tests, right or wrong.
#ifndef LATTICE_IO_GGUF_TESTING_H_
#define LATTICE_IO_GGUF_TESTING_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace lattice::io {

class GgufBuilder {
 public:
  GgufBuilder& Text(std::string_view key, std::string_view value) {
    Key(key, 8);
    AddText(keys_, value);
    return *this;
  }
  GgufBuilder& Uint32(std::string_view key, uint32_t value) { return Plain(key, 4, value); }
  GgufBuilder& Float32(std::string_view key, float value) { return Plain(key, 6, value); }
  GgufBuilder& Bool(std::string_view key, bool value) { return Plain(key, 7, static_cast<uint8_t>(value)); }
  GgufBuilder& Texts(std::string_view key, const std::vector<std::string>& values) {
    ListOf(key, 8, values.size());
    for (const std::string& value : values) AddText(keys_, value);
    return *this;
  }
  GgufBuilder& Int32s(std::string_view key, const std::vector<int32_t>& values) {
    ListOf(key, 5, values.size());
    for (const int32_t value : values) Add(keys_, value);
    return *this;
  }
  // Any bytes behind a key and its type.
  GgufBuilder& Raw(std::string_view key, uint32_t type, std::string_view bytes) {
    Key(key, type);
    keys_ += bytes;
    return *this;
  }
  // `shape` with rows first. The data goes to the next multiple of 32, or where `offset` says.
  GgufBuilder& Tensor(std::string_view name, std::vector<uint64_t> shape, uint32_t type,
                      std::string_view data, int64_t offset = -1) {
    data_.resize((data_.size() + 31) / 32 * 32);
    AddText(infos_, name);
    Add(infos_, static_cast<uint32_t>(shape.size()));
    for (size_t i = shape.size(); i-- > 0;) Add(infos_, shape[i]);
    Add(infos_, type);
    Add(infos_, offset < 0 ? static_cast<uint64_t>(data_.size()) : static_cast<uint64_t>(offset));
    data_ += data;
    ++tensors_;
    return *this;
  }

  std::string File(uint32_t version = 3) const {
    std::string file = "GGUF";
    Add(file, version);
    Add(file, tensors_);
    Add(file, count_);
    file += keys_ + infos_;
    file.resize((file.size() + 31) / 32 * 32);
    return file + data_;
  }

  template <typename T>
  static void Add(std::string& out, const T& value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }

 private:
  static void AddText(std::string& out, std::string_view text) {
    Add(out, static_cast<uint64_t>(text.size()));
    out += text;
  }
  void Key(std::string_view key, uint32_t type) {
    AddText(keys_, key);
    Add(keys_, type);
    ++count_;
  }
  template <typename T>
  GgufBuilder& Plain(std::string_view key, uint32_t type, T value) {
    Key(key, type);
    Add(keys_, value);
    return *this;
  }
  void ListOf(std::string_view key, uint32_t type, size_t count) {
    Key(key, 9);
    Add(keys_, type);
    Add(keys_, static_cast<uint64_t>(count));
  }

  std::string keys_, infos_, data_;
  uint64_t count_ = 0, tensors_ = 0;
};

}  // namespace lattice::io

#endif  // LATTICE_IO_GGUF_TESTING_H_
