#include "text/sentencepiece.h"

#include <gtest/gtest.h>
#include <sentencepiece_processor.h>

#include "base/random.h"
#include "io/file.h"
#include "io/testing.h"
#include "text/sentencepiece_model.h"
#include "text/stream_decoder.h"
#include "text/utf8.h"

namespace lattice::text {
namespace {

using io::ErrorOf;
using io::Says;
using io::TestDir;

// Training text: the sources of this folder.
std::string SomeText() {
  std::string text;
  for (const char* name :
       {"sentencepiece.cc", "sentencepiece_model.cc", "bpe.cc", "tokenizer.h", "bpe_load.cc"}) {
    text += io::ReadFile(std::string("src/text/") + name) + "<|endoftext|>\n";
  }
  return text + "caf\xc3\xa9 na\xc3\xafve\n";
}

const std::string& Model() {
  static const std::string model = [] {
    const TestDir dir;
    return TrainSentencePiece(dir.Put("text.txt", SomeText()), {.vocab_size = 600}).model;
  }();
  return model;
}

std::vector<int32_t> LibraryIds(const std::string& model, std::string_view text) {
  sentencepiece::SentencePieceProcessor processor;
  Check(processor.LoadFromSerializedProto(model).ok(), "no model");
  std::vector<int> ids;
  Check(processor.Encode(absl::string_view(text.data(), text.size()), &ids).ok(), "no ids");
  return {ids.begin(), ids.end()};
}

TEST(SentencePiece, TrainsAModelOfTheSizeAskedFor) {
  const TestDir dir;
  const std::string text = SomeText();
  const auto path = dir.Put("text.txt", text + "bad \xff line\nnul \0 line\n" + std::string("\0x\n", 3));
  const TrainedSentencePiece trained = TrainSentencePiece(path, {.vocab_size = 500, .threads = 1});
  EXPECT_EQ(trained.invalid_lines, 2);
  EXPECT_GT(trained.lines, 100);
  const auto tokenizer = ParseSentencePiece(trained.model, "trained");
  EXPECT_EQ(tokenizer->vocab_size(), 500);
  EXPECT_EQ(tokenizer->kind(), "sentencepiece");
  EXPECT_EQ(tokenizer->special().bos, 1);
  EXPECT_EQ(tokenizer->special().eos, 2);
  EXPECT_EQ(tokenizer->special().eot, 3);
  EXPECT_EQ(trained.model.find(dir.path().string()), std::string::npos) << "no path in the model";
  EXPECT_EQ(TrainSentencePiece(path, {.vocab_size = 500, .threads = 2}).model.size(), trained.model.size());
}

TEST(SentencePiece, WordByWordEqualsTheLibrary) {
  const auto tokenizer = ParseSentencePiece(Model(), "model");
  const std::vector<std::string> texts = {"",
                                          " ",
                                          "  ",
                                          "   ",
                                          "a",
                                          " a",
                                          "a ",
                                          "  a  b   c    ",
                                          "a\nb",
                                          "\n",
                                          " \n ",
                                          "\t x \t",
                                          "hello world",
                                          std::string("nul\0 byte", 9),
                                          "\xff\xfe bad \xe2\x82 x \xf0\x9f",
                                          "caf\xc3\xa9 na\xc3\xafve \xe6\x97\xa5\xe6\x9c\xac",
                                          "mark \xe2\x96\x81 in text",
                                          "\xe2\x96\x81",
                                          "x\xe2\x96\x81 y",
                                          "</s> <s> <unk> <|endoftext|> <0x0A>",
                                          "no-break\xc2\xa0space",
                                          SomeText()};
  for (const std::string& text : texts) {
    EXPECT_EQ(tokenizer->Encode(text), LibraryIds(Model(), text)) << text.substr(0, 60);
    EXPECT_EQ(tokenizer->Encode(text), LibraryIds(Model(), text)) << text.substr(0, 60) << " (remembered)";
  }
}

TEST(SentencePiece, RandomTextEqualsTheLibrary) {
  const auto tokenizer = ParseSentencePiece(Model(), "model");
  const Random random(4);
  const std::vector<std::string> letters = {" ", " ",  " ",        "a",    "e",           "t",
                                            ".", "\n", "\xc3\xa9", "\xff", "\xe2\x96\x81"};
  for (uint64_t round = 0; round < 300; ++round) {
    std::string text;
    for (uint64_t i = 0; i < random.Below(60, round); ++i) {
      text += letters[random.Below(letters.size(), 1000 * (round + 1) + i)];
    }
    ASSERT_EQ(tokenizer->Encode(text), LibraryIds(Model(), text)) << text;
  }
}

TEST(SentencePiece, TextRoundTripsAndWrongBytesAreReplaced) {
  const auto tokenizer = ParseSentencePiece(Model(), "model");
  for (const std::string& text : {std::string("  two  spaces "), std::string("tab\tnul\0x", 9), SomeText(),
                                  std::string("\xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x99\x82")}) {
    EXPECT_EQ(tokenizer->Decode(tokenizer->Encode(text)), text);
  }
  EXPECT_EQ(tokenizer->Decode(tokenizer->Encode("a\xff z")), "a\xef\xbf\xbd z");
}

TEST(SentencePiece, StreamsWholeCharactersAndKeepsTheSpaceOfAContinuation) {
  const auto tokenizer = ParseSentencePiece(Model(), "model");
  const std::string text = "to \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x99\x82.";
  std::string shown;
  StreamDecoder decoder(*tokenizer);
  for (const int32_t id : tokenizer->Encode(text)) {
    const std::string part = decoder.Push(id);
    EXPECT_EQ(CountInvalidUtf8(part), 0u);
    shown += part;
  }
  EXPECT_EQ(shown + decoder.Finish(), text);
  StreamDecoder continuing(*tokenizer, false);
  std::string rest;
  for (const int32_t id : tokenizer->Encode("word")) rest += continuing.Push(id);
  EXPECT_EQ(rest, " word");
}

TEST(SentencePiece, SpecialIdsDecodeToNothing) {
  const auto tokenizer = ParseSentencePiece(Model(), "model");
  EXPECT_EQ(tokenizer->Decode(std::vector<int32_t>{1, 2, 3}), "");
  std::vector<int32_t> ids = tokenizer->Encode("word");
  ids.insert(ids.begin(), tokenizer->special().bos);
  EXPECT_EQ(tokenizer->Decode(ids), "word");
  EXPECT_THROW(tokenizer->Decode(std::vector<int32_t>{600}), Error);
}

TEST(SentencePiece, FilesThatAreNoModelAreRefused) {
  const auto message = [](const std::string& content) {
    return ErrorOf([&] { ParseSentencePiece(content, "x.model"); });
  };
  EXPECT_TRUE(Says(message(""), {"x.model"}));
  EXPECT_TRUE(Says(message("This is a text file."), {"x.model is not a SentencePiece model"}));
  EXPECT_TRUE(Says(message(std::string(100, '\xff')), {"not a SentencePiece model"}));
  EXPECT_TRUE(Says(message(Model().substr(0, Model().size() / 2)), {"not a SentencePiece model"}));
  EXPECT_TRUE(Says(ErrorOf([] { LoadSentencePiece("none.model"); }), {"none.model"}));
}

TEST(SentencePiece, InspectReadsWhatTrainingWrote) {
  const SentencePieceModel model = InspectSentencePiece(Model(), "model");
  EXPECT_TRUE(model.bpe);
  EXPECT_TRUE(model.dummy_prefix);
  EXPECT_TRUE(model.escape_spaces);
  EXPECT_FALSE(model.remove_extra_spaces);
  EXPECT_FALSE(model.normalizes);
  EXPECT_FALSE(model.denormalizes);
  EXPECT_FALSE(model.suffix_space);
}

TEST(SentencePiece, TrainingThatCannotWorkSaysWhy) {
  const TestDir dir;
  const auto message = [&](std::string_view text, SentencePieceTraining options) {
    return ErrorOf([&] { TrainSentencePiece(dir.Put("text.txt", text), options); });
  };
  EXPECT_TRUE(Says(message("", {}), {"no line of UTF-8 text"}));
  EXPECT_TRUE(Says(message("\xff\n\xfe\n<|endoftext|>\n\n", {}), {"no line of UTF-8 text"}));
  EXPECT_TRUE(Says(message("text", {.vocab_size = 10}), {"expected 300 to"}));
  EXPECT_TRUE(Says(message("text", {.threads = 0}), {"0 threads"}));
  EXPECT_TRUE(Says(message("too little text", {.vocab_size = 8000}), {"text.txt", "smaller vocabulary"}));
  EXPECT_TRUE(Says(ErrorOf([&] { TrainSentencePiece(dir / "none.txt", {}); }), {"none.txt"}));
}

TEST(SentencePiece, TrainsOnOneVeryLongLine) {
  const TestDir dir;
  std::string text = SomeText();
  for (char& c : text) c = c == '\n' ? ' ' : c;
  const TrainedSentencePiece trained =
      TrainSentencePiece(dir.Put("text.txt", text + std::string(40000, 'q')), {.vocab_size = 400});
  EXPECT_GE(trained.lines, static_cast<int64_t>(text.size() / 16384));
}

}  // namespace
}  // namespace lattice::text
