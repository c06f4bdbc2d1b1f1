// Special tokens in what a chat template makes of strangers' messages: those that the template places count, those
// that a message spells are text.
#ifndef LATTICE_TEXT_GUARDED_TEXT_H_
#define LATTICE_TEXT_GUARDED_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "text/spellings.h"
#include "text/tokenizer.h"

namespace lattice::text {

// A template mixes its own text with the messages, and afterwards nobody can tell which is which. So whatever a
// message has of a special token's spelling is replaced by a mark before the template sees it, and put back as text
// when the result is encoded: whole spellings anywhere, and parts of one where the message begins or ends, which the
// text around it could complete. A template that looks for such a spelling in a message does not find it.
class GuardedText {
 public:
  // `secret`: decimal digits that nobody can guess, so that no message contains a mark; letters could be changed by
  // the filters of a template. The tokenizer must outlive the object.
  GuardedText(const Tokenizer& tokenizer, const std::string& secret);
  GuardedText(const GuardedText&) = delete;
  GuardedText& operator=(const GuardedText&) = delete;

  // A text that stands for the special token of this id.
  std::string Special(int32_t id);
  // What the template may see of a message. Throws Error when that has more than `most_bytes` bytes.
  std::string Guard(std::string_view message, size_t most_bytes);
  // The ids of what the template made.
  std::vector<int32_t> Encode(std::string_view rendered) const;

 private:
  using Piece = std::variant<std::string, int32_t>;

  std::string Mark(Piece stands_for);
  // The piece of the mark at rendered[at], which is moved behind it; null, and nothing changes, when there is none.
  const Piece* TakeMark(std::string_view rendered, size_t& at) const;
  // How many bytes at the beginning, or at the end, of `text` a spelling could have that begins before it, or ends
  // behind it.
  size_t SharedAtStart(std::string_view text) const;
  size_t SharedAtEnd(std::string_view text) const;

  const Tokenizer& tokenizer_;
  const std::vector<SpecialToken>
      reversed_;  // the special tokens with their spellings from the last byte to the first
  const Spellings spellings_, backwards_;
  const std::string prefix_;        // of every mark
  std::vector<Piece> pieces_;       // by the number in the mark
  std::vector<std::string> marks_;  // of the whole spellings, in the order of special_tokens()
};

}  // namespace lattice::text

#endif  // LATTICE_TEXT_GUARDED_TEXT_H_
