// Strict UTF-8 decoding, with invalid and incomplete sequences told apart.
#include "text/utf8.h"

#include <algorithm>
#include <cstdint>

namespace lattice::text {
namespace {

using Kind = Utf8Char::Kind;

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

// What the first byte of a character determines: its length, and the limits of its second byte, which exclude
// overlong forms, surrogates and code points above U+10FFFF.
struct Lead {
  size_t length;
  uint8_t second_min;
  uint8_t second_max;
};

Lead LeadOf(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte < 0xF0)
    return {3, static_cast<uint8_t>(byte == 0xE0 ? 0xA0 : 0x80),
            static_cast<uint8_t>(byte == 0xED ? 0x9F : 0xBF)};
  if (byte < 0xF5)
    return {4, static_cast<uint8_t>(byte == 0xF0 ? 0x90 : 0x80),
            static_cast<uint8_t>(byte == 0xF4 ? 0x8F : 0xBF)};
  return {0, 0, 0};
}

// Calls visit(char) for every character or invalid part.
template <typename Visit>
void ForEach(std::string_view text, Visit&& visit) {
  while (!text.empty()) {
    const Utf8Char next = DecodeUtf8(text);
    visit(next, text.substr(0, next.length));
    text.remove_prefix(next.length);
  }
}

}  // namespace

Utf8Char DecodeUtf8(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const Lead lead = LeadOf(byte(0));
  if (lead.length == 0) return {Kind::kInvalid, 0, 1};
  if (lead.length == 1) return {Kind::kValid, byte(0), 1};
  char32_t code = byte(0) & (0x7Fu >> lead.length);
  for (size_t i = 1; i < lead.length; ++i) {
    if (i == text.size()) return {Kind::kIncomplete, 0, i};
    const uint8_t min = i == 1 ? lead.second_min : 0x80, max = i == 1 ? lead.second_max : 0xBF;
    if (byte(i) < min || byte(i) > max) return {Kind::kInvalid, 0, i};
    code = (code << 6) | (byte(i) & 0x3Fu);
  }
  return {Kind::kValid, code, lead.length};
}

void AppendUtf8(char32_t code, std::string& out) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((code >> shift) & 0x3F)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

size_t IncompleteTail(std::string_view text) {
  for (size_t length = std::min<size_t>(3, text.size()); length > 0; --length) {
    const Utf8Char last = DecodeUtf8(text.substr(text.size() - length));
    if (last.kind == Kind::kIncomplete && last.length == length) return length;
  }
  return 0;
}

std::string ReplaceInvalidUtf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  ForEach(text, [&](const Utf8Char& c, std::string_view bytes) {
    out += c.kind == Kind::kValid ? bytes : kReplacement;
  });
  return out;
}

size_t CountInvalidUtf8(std::string_view text) {
  size_t count = 0;
  ForEach(text, [&](const Utf8Char& c, std::string_view) {
    if (c.kind != Kind::kValid) count += c.length;
  });
  return count;
}

}  // namespace lattice::text
