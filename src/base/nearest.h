// The nearest of several names by edit distance, for "did you mean".
#ifndef LATTICE_BASE_NEAREST_H_
#define LATTICE_BASE_NEAREST_H_

#include <span>
#include <string>
#include <string_view>

namespace lattice {

// Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`, ignoring case. A swap
// counts as one; a letter takes part in at most one swap.
int EditDistance(std::string_view a, std::string_view b);

// The candidate with the smallest edit distance to `name`; the earliest wins a tie. A candidate that starts
// with `name` beats any that does not. Empty when there are no candidates.
std::string_view Nearest(std::string_view name, std::span<const std::string_view> candidates);

// `; did you mean "width"?`, or an empty string when there are no candidates.
std::string DidYouMean(std::string_view name, std::span<const std::string_view> candidates);

}  // namespace lattice

#endif  // LATTICE_BASE_NEAREST_H_
