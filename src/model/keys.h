// The table of configuration keys: adding an option is a member in config.h and one line in keys.cc.
#ifndef LATTICE_MODEL_KEYS_H_
#define LATTICE_MODEL_KEYS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "model/config.h"

namespace lattice::model {

using Value = std::variant<bool, int64_t, double, std::string>;

// Behind the name of a memory: attention over the last tokens and the first beside it.
inline constexpr std::string_view kWindowSuffix = "+window";

enum class KeyType { kBool, kInteger, kNumber, kText, kChoice };

struct Key {
  std::string_view section;
  std::string_view name;
  std::string_view help;
  KeyType type;
  // Limits of integers and numbers, inclusive.
  double min;
  double max;
  // The words that a kChoice accepts; null for the other types.
  std::span<const std::string_view> (*choices)();
  // A kChoice is exchanged as text. `set` takes a value of the key's own type that has passed CheckValue().
  Value (*get)(const Config&);
  void (*set)(Config&, const Value&);
  std::string_view hint = {};    // added to the error for a word that is not a choice
  std::string_view suffix = {};  // a word may end in this beside the choices themselves
  // Not written to config.json while it has its default: files of older models stay what they were, and so do
  // the hashes made of them.
  bool added = false;
};

// All keys, section by section.
std::span<const Key> Keys();
std::span<const std::string_view> Sections();

// The key, or null.
const Key* FindKey(std::string_view section, std::string_view name);

// Throw Error for a section or key that does not exist, naming the nearest; `place` starts the message.
void RequireSection(std::string_view section, std::string_view place);
const Key& RequireKey(std::string_view section, std::string_view name, std::string_view place);

// Converts `value` to the key's type (an integer may be a number). Throws Error starting with `place` for a
// wrong type, range or choice.
Value CheckValue(const Key& key, const Value& value, std::string_view place);

// Checks every key of a model that did not come through CheckValue; same errors.
void CheckRanges(const ModelConfig& model);

// Text as typed on a command line, read as the key's type; same errors.
Value ParseValue(const Key& key, std::string_view text, std::string_view place);

// The word of an option among those of its enumeration, for operators that take words; Error names the choices.
VectorNorm VectorNormNamed(std::string_view word);
Activation ActivationNamed(std::string_view word);

// "integer", "number", "one of: none, l2, scale", ... for help and messages.
std::string TypeText(const Key& key);

}  // namespace lattice::model

#endif  // LATTICE_MODEL_KEYS_H_
