// The one exception of the project, and the two ways to throw it.
//
// Messages name what was expected, what was got and what to do, and start with the operation in brackets:
//   [scan] k has 64 slots but state has 32; pass a state of shape [B,H,M,D] = [2,12,64,64]
#ifndef LATTICE_BASE_ERROR_H_
#define LATTICE_BASE_ERROR_H_

#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>

namespace lattice {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// All arguments printed one after the other.
template <typename... Args>
std::string StrCat(const Args&... args) {
  std::ostringstream out;
  (out << ... << args);
  return out.str();
}

template <typename... Args>
[[noreturn]] void Fail(const Args&... args) {
  throw Error(StrCat(args...));
}

// What the system says of an errno.
inline std::string SystemReason(int error) { return std::generic_category().message(error); }

// Throws Error with the printed arguments unless `ok`.
template <typename... Args>
void Check(bool ok, const Args&... args) {
  if (!ok) [[unlikely]]
    Fail(args...);
}

}  // namespace lattice

#endif  // LATTICE_BASE_ERROR_H_
