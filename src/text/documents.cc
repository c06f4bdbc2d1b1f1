#include "text/documents.h"

namespace lattice::text {
namespace {

// End of the line that starts at `begin`, its newline included.
size_t LineEnd(std::string_view text, size_t begin) {
  const size_t newline = text.find('\n', begin);
  return newline == std::string_view::npos ? text.size() : newline + 1;
}

}  // namespace

bool IsEndOfTextLine(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line == kEndOfText;
}

std::vector<Document> SplitDocuments(std::string_view text) {
  std::vector<Document> documents;
  size_t begin = 0;
  size_t found = text.find(kEndOfText);
  while (found != std::string_view::npos) {
    const size_t end = LineEnd(text, found);
    const bool line_start = found == 0 || text[found - 1] == '\n';
    if (line_start && IsEndOfTextLine(text.substr(found, end - found))) {
      documents.push_back({text.substr(begin, found - begin), true});
      begin = end;
    }
    found = text.find(kEndOfText, end);
  }
  if (begin < text.size()) documents.push_back({text.substr(begin), false});
  return documents;
}

}  // namespace lattice::text
