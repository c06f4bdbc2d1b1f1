// What the code uses of C++20's standard library and Debian's emscripten (3.1.6) lacks. Included before everything else.
#ifndef LATTICE_CMAKE_EMSCRIPTEN_STD_H_
#define LATTICE_CMAKE_EMSCRIPTEN_STD_H_

#include <bit>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

_LIBCPP_BEGIN_NAMESPACE_STD

#ifndef __cpp_lib_bit_cast
template <typename To, typename From>
constexpr To bit_cast(const From& from) noexcept {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}
#endif

#if _LIBCPP_VERSION < 15000
span(string_view)->span<const char>;
#endif

#ifndef __cpp_lib_to_chars
// The shortest text that reads as the same number. The one locale of emscripten is "C".
inline to_chars_result to_chars(char* first, char* last, double value) {
  char text[32];
  int length = 0;
  for (int digits = 1; digits <= 17; ++digits) {
    length = std::snprintf(text, sizeof(text), "%.*g", digits, value);
    if (std::strtod(text, nullptr) == value) break;
  }
  if (last - first < length) return {last, errc::value_too_large};
  std::memcpy(first, text, static_cast<size_t>(length));
  return {first + length, errc()};
}

// Unlike strtod, takes no plus, no space and no hexadecimal digits.
inline from_chars_result from_chars(const char* first, const char* last, double& value) {
  const string_view text(first, static_cast<size_t>(last - first));
  const string whole(text.substr(0, text.find_first_not_of("0123456789.+-eEinfaINFA")));
  const bool plain = !whole.empty() && whole[0] != '+';
  char* end = nullptr;
  const double read = std::strtod(whole.c_str(), &end);
  if (!plain || end == whole.c_str()) return {first, errc::invalid_argument};
  value = read;
  return {first + (end - whole.c_str()), errc()};
}
#endif

_LIBCPP_END_NAMESPACE_STD

#endif  // LATTICE_CMAKE_EMSCRIPTEN_STD_H_
