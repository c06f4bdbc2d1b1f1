// A reader of the fields of a protocol buffer message, in the order they are stored.
#ifndef LATTICE_TEXT_PROTOBUF_H_
#define LATTICE_TEXT_PROTOBUF_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace lattice::text {

struct ProtobufField {
  enum class Type { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  uint64_t number = 0;
  Type type = Type::kVarint;
  uint64_t value = 0;      // of a varint
  std::string_view bytes;  // of everything else

  bool Is(uint64_t wanted, Type as) const { return number == wanted && type == as; }
};

// Throws Error with the given message when the bytes are not a valid message; groups are not supported.
class ProtobufFields {
 public:
  ProtobufFields(std::string_view message, std::string_view error) : rest_(message), error_(error) {}

  bool Next(ProtobufField& field) {
    using Type = ProtobufField::Type;
    if (rest_.empty()) return false;
    const uint64_t tag = Varint();
    field = {tag >> 3, static_cast<Type>(tag & 7), 0, {}};
    switch (field.type) {
      case Type::kVarint:
        field.value = Varint();
        return true;
      case Type::kFixed64:
        field.bytes = Take(8);
        return true;
      case Type::kBytes:
        field.bytes = Take(Varint());
        return true;
      case Type::kFixed32:
        field.bytes = Take(4);
        return true;
    }
    Fail(error_);
  }

 private:
  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) Fail(error_);
      const auto byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    Fail(error_);
  }

  std::string_view Take(uint64_t size) {
    if (size > rest_.size()) Fail(error_);
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::string_view rest_;
  std::string_view error_;
};

}  // namespace lattice::text

#endif  // LATTICE_TEXT_PROTOBUF_H_
