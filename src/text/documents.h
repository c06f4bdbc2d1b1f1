// Splits a text into documents: a line with nothing but <|endoftext|> ends one.
#ifndef LATTICE_TEXT_DOCUMENTS_H_
#define LATTICE_TEXT_DOCUMENTS_H_

#include <string_view>
#include <vector>

namespace lattice::text {

inline constexpr std::string_view kEndOfText = "<|endoftext|>";

struct Document {
  std::string_view text;  // including its last newline, without the line of the marker
  bool ended;             // a marker follows; false only for the rest after the last marker
};

// Whether a line, with or without its newline, ends a document.
bool IsEndOfTextLine(std::string_view line);

// Views into `text`, in order. Two markers in a row enclose an empty document; an empty rest is left out.
std::vector<Document> SplitDocuments(std::string_view text);

}  // namespace lattice::text

#endif  // LATTICE_TEXT_DOCUMENTS_H_
