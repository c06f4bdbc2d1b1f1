// The project's exception, lattice::Error, and the two ways to throw it: Fail and Check.
//
// Messages name what was expected, what was got and what to do, and start with the operation in brackets:
//   [scan] k has 64 slots but state has 32; pass a state of shape [B,H,M,D] = [2,12,64,64]
#ifndef LATTICE_BASE_ERROR_H_
#define LATTICE_BASE_ERROR_H_

#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace lattice {

// `text` if it has at most `most` bytes; otherwise its beginning and its end, with the number of bytes left
// out.
inline std::string Shortened(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  const size_t tail = most / 4, head = most - tail;
  return std::string(text.substr(0, head)) + " ... (" + std::to_string(text.size() - most) + " bytes) ... " +
         std::string(text.substr(text.size() - tail));
}

class Error : public std::runtime_error {
 public:
  // Messages quote untrusted input, such as a name in a file, which may have megabytes.
  static constexpr size_t kLongestMessage = 4096;

  explicit Error(std::string_view message) : std::runtime_error(Shortened(message, kLongestMessage)) {}
};

// The arguments as text, one after the other.
template <typename... Args>
std::string StrCat(const Args&... args) {
  std::ostringstream out;
  (out << ... << args);
  return out.str();
}

// Throws Error with the printed arguments.
template <typename... Args>
[[noreturn]] void Fail(const Args&... args) {
  throw Error(StrCat(args...));
}

// The system's message for an errno.
inline std::string SystemReason(int error) { return std::generic_category().message(error); }

// Throws Error with the printed arguments unless `ok`.
template <typename... Args>
void Check(bool ok, const Args&... args) {
  if (!ok) [[unlikely]]
    Fail(args...);
}

}  // namespace lattice

#endif  // LATTICE_BASE_ERROR_H_
