// `lattice tokenizer`: trains or tries a tokenizer.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/format.h"
#include "cli/command.h"
#include "cli/standard_input.h"
#include "io/file.h"
#include "io/json.h"
#include "text/sentencepiece.h"
#include "text/tokenizer.h"

namespace lattice::cli {
namespace {

struct TrainOptions {
  std::string data;
  std::string out;
  text::SentencePieceTraining training;
};

int TrainTokenizer(const TrainOptions& options) {
  const text::TrainedSentencePiece trained = text::TrainSentencePiece(options.data, options.training);
  io::WriteFileAtomic(options.out, trained.model);
  std::cout << options.out << ": " << options.training.vocab_size << " pieces from " << Grouped(trained.lines)
            << " lines";
  if (trained.invalid_lines > 0) {
    std::cout << "; " << Grouped(trained.invalid_lines) << " lines left out, they are not UTF-8 or hold NUL";
  }
  std::cout << "\n";
  return 0;
}

struct EncodeOptions {
  std::string tokenizer;
  std::string text;
  bool json_lines = false;
  bool special = false;
};

void PrintIds(const text::Tokenizer& tokenizer, std::string_view text, bool special) {
  const char* separator = "";
  for (const int32_t id : special ? tokenizer.EncodeMarked(text) : tokenizer.Encode(text)) {
    std::cout << separator << id;
    separator = " ";
  }
  std::cout << "\n";
}

int Encode(const EncodeOptions& options) {
  const std::unique_ptr<text::Tokenizer> tokenizer = text::OpenTokenizer(options.tokenizer);
  if (options.json_lines) {
    int64_t number = 0;
    for (std::string line; std::getline(std::cin, line);) {
      const nlohmann::json text = io::ParseJson(line, StrCat("line ", ++number));
      Check(text.is_string(), "[tokenizer] line ", number, " is not a string of JSON");
      PrintIds(*tokenizer, text.get_ref<const std::string&>(), options.special);
    }
    return 0;
  }
  PrintIds(*tokenizer, TextOrInput(options.text), options.special);
  return 0;
}

void AddTrainTokenizer(CLI::App& parent, Chosen& chosen) {
  CLI::App* command = parent.add_subcommand("train", "Train a SentencePiece BPE with byte fallback on text");
  const auto options = std::make_shared<TrainOptions>();
  command->add_option("--data", options->data, "text file")->required();
  command->add_option("--out", options->out, "file to write, such as book.model")->required();
  command->add_option("--vocab", options->training.vocab_size, "number of pieces")
      ->capture_default_str()
      ->check(CLI::Range(300, 1 << 20));
  command->add_option("--max-lines", options->training.max_lines, "draw this many lines at random; 0: all")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
  command->add_option("--threads", options->training.threads, "threads")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  command->footer("Example: ./lattice tokenizer train --data book.txt --vocab 8192 --out book.model");
  command->callback([options, &chosen] { chosen = [options] { return TrainTokenizer(*options); }; });
}

void AddEncode(CLI::App& parent, Chosen& chosen) {
  CLI::App* command = parent.add_subcommand("encode", "Print the token ids of a text");
  const auto options = std::make_shared<EncodeOptions>();
  command->add_option("--tokenizer", options->tokenizer, "bytes, a .model file, vocab.json, or a checkpoint")
      ->required();
  CLI::Option_group* what = command->add_option_group("what to encode");
  what->add_option("--text", options->text, "text; - reads standard input");
  what->add_flag("--json-lines", options->json_lines,
                 "every line of standard input is a string of JSON and gives a line of ids");
  what->require_option(1);
  command->add_flag("--special", options->special,
                    "the spelling of a special token is that token, as in chats");
  command->footer("Example: ./lattice tokenizer encode --tokenizer book.model --text \"It was\"");
  command->callback([options, &chosen] { chosen = [options] { return Encode(*options); }; });
}

}  // namespace

void AddTokenizer(CLI::App& app, Chosen& chosen) {
  CLI::App* command = app.add_subcommand("tokenizer", "Train or try a tokenizer");
  command->require_subcommand(1);
  command->footer("Example: ./lattice tokenizer train --data book.txt --vocab 8192 --out book.model");
  AddTrainTokenizer(*command, chosen);
  AddEncode(*command, chosen);
}

}  // namespace lattice::cli
