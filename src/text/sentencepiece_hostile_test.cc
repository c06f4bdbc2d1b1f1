// Hostile models: each must be refused, or work for every text.
#include <gtest/gtest.h>
#include <sentencepiece_trainer.h>

#include <cstring>
#include <limits>
#include <unordered_map>

#include "base/random.h"
#include "io/file.h"
#include "io/testing.h"
#include "text/normalizer_table.h"
#include "text/protobuf.h"
#include "text/sentencepiece.h"
#include "text/utf8.h"

namespace lattice::text {
namespace {

using io::ErrorOf;
using io::Says;

// A model by the library's own trainer. The rule nmt_nfkc has a table of replacements, identity has none.
std::string Trained(const std::string& type, const std::string& rule) {
  std::string model;
  const std::unordered_map<std::string, std::string> options = {
      {"input", "src/text/sentencepiece_hostile_test.cc"},
      {"model_type", type},
      {"vocab_size", "150"},
      {"normalization_rule_name", rule},
      {"user_defined_symbols", "<x>,<x><x>"},
      {"hard_vocab_limit", "false"},
      {"num_threads", "1"},
      {"minloglevel", "2"}};
  const auto status = sentencepiece::SentencePieceTrainer::Train(options, nullptr, &model);
  Check(status.ok(), status.ToString());
  return model;
}

const std::string& Unigram() {
  static const std::string model = Trained("unigram", "nmt_nfkc");
  return model;
}

const std::string& Bpe() {
  static const std::string model = Trained("bpe", "nmt_nfkc");
  return model;
}

// The table of replacements inside the model.
std::string TableOf(std::string_view model) {
  ProtobufFields fields(model, "no model");
  for (ProtobufField field; fields.Next(field);) {
    if (field.number != 3) continue;
    ProtobufFields inner(field.bytes, "no model");
    for (ProtobufField part; inner.Next(part);) {
      if (part.number == 2) return std::string(part.bytes);
    }
  }
  return "";
}

TEST(SentencePieceHostile, RunsOfUnknownCharactersAreBounded) {
  std::string unknown;
  while (unknown.size() <= 65536) unknown += "\xF0\x9F\xA6\x84";
  const std::string shorter = unknown.substr(4);
  for (const std::string& model : {Unigram(), Bpe()}) {
    const auto tokenizer = ParseSentencePiece(model, "m");
    EXPECT_TRUE(Says(ErrorOf([&] { tokenizer->Encode(unknown); }), {"65536", "byte fallback"}));
    const std::vector<int32_t> ids = tokenizer->Encode(shorter);
    EXPECT_EQ(ids, tokenizer->Encode(shorter.substr(0, 4))) << "a run is one unknown token";
    EXPECT_GT(tokenizer->Encode(shorter + " " + shorter).size(), ids.size());
    EXPECT_NO_THROW(tokenizer->Encode(std::string(100000, 'e')));
  }
}

std::string Length(size_t size) {
  std::string varint;
  for (; size >= 0x80; size >>= 7) varint += static_cast<char>(size | 0x80);
  return varint + static_cast<char>(size);
}

// Field `number` that holds bytes.
std::string Bytes(int number, std::string_view content) {
  return static_cast<char>(number << 3 | 2) + Length(content.size()) + std::string(content);
}

// Appends a second table: of repeated fields of a message, the last counts.
std::string WithTable(const std::string& model, std::string_view table) {
  return model + Bytes(3, Bytes(2, table));
}

std::string Piece(std::string_view text, char type, float score = -1) {
  std::string number(4, '\0');
  std::memcpy(number.data(), &score, 4);
  return Bytes(1, Bytes(1, text) + "\x15" + number + "\x18" + type);
}

// Texts that reach much of a table: every 13th character, runs, invalid UTF-8.
const std::vector<std::string>& Texts() {
  static const std::vector<std::string> texts = [] {
    std::string all;
    for (char32_t code = 1; code < 0x30000; code += code < 0x3400 ? 13 : 411) {
      if (code < 0xD800 || code > 0xDFFF) AppendUtf8(code, all);
    }
    return std::vector<std::string>{all,
                                    "Hello, world.  Two  spaces <x><x><x> ",
                                    std::string(300, 'a'),
                                    "e\xcc\x81 \xef\xbc\xa1\xef\xbc\xa2 \xef\xb7\xba \xe2\x91\xa0",
                                    std::string("nul\0byte \xff\xfe\xe2\x82", 13),
                                    ""};
  }();
  return texts;
}

// True when the model was refused. Otherwise every text can be encoded, or is refused, and decoded.
bool Refused(const std::string& model) {
  try {
    const auto tokenizer = ParseSentencePiece(model, "x.model");
    for (const std::string& text : Texts()) {
      try {
        const std::vector<int32_t> ids = tokenizer->Encode(text);
        tokenizer->Decode(ids);
      } catch (const Error&) {
      }
    }
    return false;
  } catch (const Error&) {
    return true;
  }
}

void PutWord(std::string& bytes, size_t at, uint32_t word) {
  if (at + 4 <= bytes.size()) std::memcpy(bytes.data() + at, &word, 4);
}

// The table with the i-th mutation.
std::string Mutated(std::string table, uint64_t i) {
  const Random random(11);
  const auto below = [&](uint64_t most, uint64_t what) { return random.Below(most, 10 * i + what); };
  const auto word = [&] { return static_cast<uint32_t>(below(uint64_t{1} << 32, 2)); };
  switch (i % 8) {
    case 0:
      PutWord(table, 0, static_cast<uint32_t>(below(2 * table.size(), 1)));
      break;
    case 1:
      PutWord(table, 4 + 4 * below(64, 1), word());
      break;
    case 2:
      PutWord(table, 4 + 4 * below(table.size() / 4, 1), word());
      break;
    case 3:
      for (uint64_t k = 0; k < 64; ++k) {
        const size_t at = random.Below(table.size(), 1000 * i + k);
        table[at] = static_cast<char>(table[at] ^ (1 << k % 8));
      }
      break;
    case 4:
      table.resize(below(table.size(), 1));
      break;
    case 5:  // no replacement ends
      for (size_t at = table.size() - below(table.size() / 4, 1); at < table.size(); ++at) table[at] = 'x';
      break;
    case 6:  // the offset of a unit near the root, its label left as it is
      for (size_t at = 4 + 4 * below(256, 1); at < 4 + 4 * 256; at += 64) {
        table[at + 1] = static_cast<char>(table[at + 1] ^ 0x02);
        table[at + 3] = static_cast<char>(below(256, 3));
      }
      break;
    default:
      table = std::string(below(64, 1), static_cast<char>(below(256, 2)));
  }
  return table;
}

TEST(SentencePieceHostile, TheLibrarysOwnTablesPass) {
  ASSERT_GT(TableOf(Unigram()).size(), 100000u);
  EXPECT_EQ(ErrorOf([] { CheckNormalizerTable(TableOf(Unigram()), "x.model"); }), "no error");
  EXPECT_FALSE(Refused(Unigram()));
  EXPECT_FALSE(Refused(Bpe()));
  EXPECT_FALSE(Refused(WithTable(Bpe(), TableOf(Unigram()))));
}

TEST(SentencePieceHostile, SixHundredMutatedTablesDoNotCrash) {
  const std::string table = TableOf(Unigram());
  int refused = 0;
  for (uint64_t i = 0; i < 600; ++i) {
    SCOPED_TRACE(i);
    refused += Refused(WithTable(i % 2 == 0 ? Unigram() : Bpe(), Mutated(table, i))) ? 1 : 0;
  }
  EXPECT_GT(refused, 250);
}

TEST(SentencePieceHostile, AThousandMutatedModelsDoNotCrash) {
  const std::string unigram = Trained("unigram", "identity"), bpe = Trained("bpe", "identity");
  const Random random(12);
  int refused = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    SCOPED_TRACE(i);
    std::string model = i % 2 == 0 ? unigram : bpe;
    for (uint64_t k = 0; k <= i % 3; ++k) {
      const size_t at = random.Below(model.size(), 100 * i + k);
      if (i % 4 == 0) {
        PutWord(model, at, 0x7FC00000);
      } else {
        model[at] = static_cast<char>(model[at] ^ (1 << random.Below(8, 100 * i + 50 + k)));
      }
    }
    refused += Refused(model) ? 1 : 0;
  }
  EXPECT_GT(refused, 100);
}

struct Case {
  std::string name;
  std::string model;
  std::string expected;
};

TEST(SentencePieceHostile, EveryCaseIsRefusedWithItsReason) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::string table = TableOf(Unigram());
  std::string symbols, cycle = table;
  for (size_t i = 1; i <= 65; ++i) symbols += Piece(std::string(i, 'Q'), 4);
  // Every unit of the first block has the label of its place and leads back to itself, with a leaf.
  for (uint32_t i = 0; i < 256; ++i) PutWord(cycle, 4 + 4 * i, i | 0x100);
  const std::vector<Case> cases = {
      {"score not a number", Unigram() + Piece("zzz", 1, nan), "score of piece"},
      {"score infinite", Bpe() + Piece("zzz", 1, std::numeric_limits<float>::infinity()), "score of piece"},
      {"empty piece", Unigram() + Piece("", 1), "has 0 bytes"},
      {"NUL in a piece", Unigram() + Piece(std::string_view("a\0b", 3), 4), "NUL"},
      {"long piece", Unigram() + Piece(std::string(5000, 'a'), 1), "5000 bytes"},
      {"65 symbols in each other", Bpe() + symbols, "user-defined symbols begin with \"Q\""},
      {"second unknown piece", Unigram() + Piece("zzz", 2), "not a SentencePiece model"},
      {"byte pieces without a byte", Unigram() + Piece("<0x00>", 6), "not a SentencePiece model"},
      {"table of three bytes", WithTable(Bpe(), "abc"), "table is damaged"},
      {"empty trie", WithTable(Bpe(), std::string("\0\0\0\0x\0", 6)), "table is damaged"},
      {"trie beyond the table", WithTable(Bpe(), std::string("\x10\0\0\0xxxx", 8)), "table is damaged"},
      {"cycle", WithTable(Bpe(), cycle), "cycle"},
      {"trie of one unit", WithTable(Bpe(), std::string("\4\0\0\0\0\4\0\0\0", 9)), "outside"},
      {"no replacements",
       WithTable(Bpe(), table.substr(0, 4 + *reinterpret_cast<const uint32_t*>(table.data()))),
       "replacement"},
      {"two tables, the first damaged", WithTable(WithTable(Bpe(), "abc"), table), "table is damaged"},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.name);
    EXPECT_TRUE(
        Says(ErrorOf([&] { ParseSentencePiece(test.model, "x.model"); }), {"x.model", test.expected}));
  }
}

}  // namespace
}  // namespace lattice::text
