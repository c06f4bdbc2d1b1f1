// Escaping of text for XML and HTML.
#ifndef LATTICE_TEXT_MARKUP_H_
#define LATTICE_TEXT_MARKUP_H_

#include <string>

namespace lattice::text {

// & < > " become entities: safe between tags and inside quoted attributes.
std::string Escaped(const std::string& text);

}  // namespace lattice::text

#endif  // LATTICE_TEXT_MARKUP_H_
