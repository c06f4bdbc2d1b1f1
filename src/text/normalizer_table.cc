// Verifies SentencePiece's normalisation trie, which the library reads without bounds checks.
#include "text/normalizer_table.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/error.h"

namespace lattice::text {
namespace {

// The tables of the common rules have 0.3 MiB; the limit bounds the time of the check.
constexpr size_t kMaxTrieBytes = size_t{8} << 20;
constexpr size_t kMaxReplacement = 256;
constexpr int kMaxPrefixes = 32;
constexpr size_t kLabels = 256;

// A unit of the double array. The unit of a key's last byte has a flag that a leaf follows; the leaf holds
// the value, and its label is not a byte.
struct Unit {
  uint32_t bits;

  bool HasLeaf() const { return ((bits >> 8) & 1) != 0; }
  uint32_t Value() const { return bits & 0x7FFFFFFF; }
  uint32_t Label() const { return bits & 0x800000FF; }
  uint32_t Offset() const { return (bits >> 10) << ((bits & 0x200) >> 6); }
};

// A depth-first walk over everything that a text can reach. The successors of the unit at `position` are at
// (position ^ Offset()) ^ byte; a node is identified by position ^ Offset().
class TableWalk {
 public:
  TableWalk(std::vector<Unit> units, std::string_view replacements, std::string_view source)
      : units_(std::move(units)),
        replacements_(replacements),
        source_(source),
        prefixes_(units_.size(), kUnseen) {}

  void Run() {
    Enter(units_[0].Offset());
    while (!path_.empty()) Step();
  }

 private:
  // Values of prefixes_ that are not counts.
  static constexpr int8_t kUnseen = -1, kOnPath = -2;

  struct Visit {
    uint32_t node;
    uint32_t label = 0;     // the next label to follow
    int accepted = 0;       // 1 when a key ends with the label that is being followed
    int most_prefixes = 0;  // the most keys that end below this node along one text
  };

  [[noreturn]] void Refuse(std::string_view why) const {
    Fail("[sentencepiece] ", source_, ": the normaliser's table is damaged: ", why);
  }

  void Enter(uint32_t node) {
    if ((node | (kLabels - 1)) >= units_.size()) Refuse("its trie leads outside of itself");
    prefixes_[node] = kOnPath;
    path_.push_back({node});
  }

  void Step() {
    Visit& visit = path_.back();
    while (visit.label < kLabels && units_[visit.node ^ visit.label].Label() != visit.label) ++visit.label;
    if (visit.label == kLabels) return Leave();
    const uint32_t position = visit.node ^ visit.label++;
    const Unit unit = units_[position];
    const uint32_t next = position ^ unit.Offset();
    visit.accepted = unit.HasLeaf() ? 1 : 0;
    if (next >= units_.size()) Refuse("its trie leads outside of itself");
    if (prefixes_[next] == kOnPath) Refuse("its trie has a cycle");
    if (unit.HasLeaf()) CheckValue(units_[next].Value());
    if (prefixes_[next] == kUnseen) return Enter(next);
    Count(visit, prefixes_[next]);
  }

  void Leave() {
    const int most = path_.back().most_prefixes;
    prefixes_[path_.back().node] = static_cast<int8_t>(most);
    path_.pop_back();
    if (!path_.empty()) Count(path_.back(), most);
  }

  void Count(Visit& visit, int behind) const {
    visit.most_prefixes = std::max(visit.most_prefixes, visit.accepted + behind);
    if (visit.most_prefixes > kMaxPrefixes) Refuse("more than 32 of its keys begin alike");
  }

  void CheckValue(uint32_t value) const {
    if (value >= replacements_.size()) Refuse("a replacement lies outside of it");
    const std::string_view text = replacements_.substr(value, kMaxReplacement + 1);
    if (text.find('\0') == std::string_view::npos) Refuse("a replacement does not end within 256 bytes");
  }

  std::vector<Unit> units_;
  std::string_view replacements_;
  std::string_view source_;
  std::vector<int8_t> prefixes_;  // most_prefixes of each finished node
  std::vector<Visit> path_;
};

}  // namespace

void CheckNormalizerTable(std::string_view table, std::string_view source) {
  uint32_t bytes = 0;
  const bool has_size = table.size() > sizeof(bytes);
  if (has_size) std::memcpy(&bytes, table.data(), sizeof(bytes));
  const std::string_view rest = table.substr(has_size ? sizeof(bytes) : 0);
  Check(has_size && bytes <= rest.size() && bytes > 0 && bytes % sizeof(Unit) == 0 && bytes <= kMaxTrieBytes,
        "[sentencepiece] ", source, ": the normaliser's table is damaged: a trie of ", bytes,
        " bytes in a table of ", table.size(), "; at most ", kMaxTrieBytes, " are accepted");
  std::vector<Unit> units(bytes / sizeof(Unit));
  std::memcpy(units.data(), rest.data(), bytes);
  TableWalk(std::move(units), rest.substr(bytes), source).Run();
}

}  // namespace lattice::text
