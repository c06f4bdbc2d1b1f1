// What a template may cost. Templates come with checkpoints, which may come from anyone.
#ifndef LATTICE_TEXT_JINJA_LIMITS_H_
#define LATTICE_TEXT_JINJA_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace lattice::text::jinja {

struct Limits {
  size_t template_bytes = size_t{1} << 20;
  int depth = 200;                  // of the syntax tree, and so of the recursion over it
  int64_t steps = 1'000'000;        // nodes that are evaluated
  size_t output_bytes = 16u << 20;  // of the text, and of every string on the way
  size_t elements = 100'000;        // of every list on the way
};

}  // namespace lattice::text::jinja

#endif  // LATTICE_TEXT_JINJA_LIMITS_H_
