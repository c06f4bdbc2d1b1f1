// `lattice data`: packs a corpus into token shards, or checks shards.
#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/format.h"
#include "cli/command.h"
#include "cli/progress_bar.h"
#include "data/pack.h"
#include "data/token_store.h"
#include "text/tokenizer.h"

namespace lattice::cli {
namespace {

struct PackArguments {
  std::vector<std::string> inputs;
  std::string out;
  std::string tokenizer = "bytes";
  data::PackOptions pack;
};

data::PackProgress PackWithBar(const data::PackOptions& options, const text::Tokenizer& tokenizer) {
  ProgressBar bar("packing");
  int64_t earlier = -1;  // bytes of text packed by an interrupted call, which do not count for the speed
  return data::Pack(options, tokenizer, [&](const data::PackProgress& now) {
    if (earlier < 0) earlier = now.text_bytes;
    bar.Show(now.input_bytes, now.total_input_bytes, [&](double seconds) {
      return StrCat(
          Fixed(100.0 * static_cast<double>(now.input_bytes) / static_cast<double>(now.total_input_bytes), 1),
          " %  ", CountText(static_cast<double>(now.tokens)), " tokens  ",
          Fixed(static_cast<double>(now.text_bytes - earlier) / seconds / 1e6, 1), " MB/s");
    });
  });
}

int Pack(const PackArguments& arguments) {
  data::PackOptions options = arguments.pack;
  options.inputs.assign(arguments.inputs.begin(), arguments.inputs.end());
  options.out = arguments.out;
  const std::unique_ptr<text::Tokenizer> tokenizer = text::OpenTokenizer(arguments.tokenizer);
  const auto start = std::chrono::steady_clock::now();
  const data::PackProgress done = PackWithBar(options, *tokenizer);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::cout << arguments.out << ": " << Grouped(done.tokens) << " tokens of " << Grouped(done.documents)
            << " documents (" << BytesText(done.text_bytes) << " of text) in " << done.shards << " shards, "
            << DurationText(seconds) << (done.resumed ? ", went on with an interrupted packing" : "") << "\n";
  if (tokenizer->special().eot < 0) {
    std::cout << "note: the tokenizer has no end-of-text id, so documents follow each other without a mark\n";
  }
  if (done.malformed > 0) {
    std::cout << "note: " << Grouped(done.malformed)
              << " malformed lines were left out; the first: " << done.first_malformed << "\n";
  }
  return 0;
}

struct CheckArguments {
  std::vector<std::string> directories;
  std::string tokenizer;
};

int CheckShards(const CheckArguments& arguments) {
  const std::unique_ptr<text::Tokenizer> tokenizer =
      arguments.tokenizer.empty() ? nullptr : text::OpenTokenizer(arguments.tokenizer);
  for (const std::string& directory : arguments.directories) {
    const data::TokenStore store =
        tokenizer == nullptr ? data::TokenStore(directory, "") : data::TokenStore(directory, *tokenizer);
    std::cout << directory << ": whole; " << Grouped(store.tokens()) << " tokens, ids up to "
              << store.largest() << (tokenizer == nullptr ? " (not compared with a vocabulary), " : ", ");
    if (store.documents() >= 0) std::cout << Grouped(store.documents()) << " documents, ";
    std::cout << BytesText(store.text_bytes()) << " of text, " << store.shards() << " shards; fingerprint "
              << store.fingerprint() << ", tokenizer " << store.tokenizer_hash().substr(0, 12) << "\n";
  }
  return 0;
}

void AddPack(CLI::App& parent, Chosen& chosen) {
  CLI::App* command = parent.add_subcommand("pack", "Tokenise a corpus into shards for training");
  const auto arguments = std::make_shared<PackArguments>();
  arguments->pack.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  command
      ->add_option("inputs", arguments->inputs,
                   ".txt, .jsonl (each also .gz, .zst, .xz), .parquet; or directories")
      ->required();
  command->add_option("--out", arguments->out, "directory of the shards")->required();
  command
      ->add_option("--tokenizer", arguments->tokenizer, "bytes, a .model file, vocab.json, or a checkpoint")
      ->capture_default_str();
  command->add_option("--field", arguments->pack.source.field, "key of JSON lines, column of parquet files")
      ->capture_default_str();
  command->add_option("--shard-tokens", arguments->pack.shard_tokens, "tokens per shard")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 32));
  command->add_option("--threads", arguments->pack.threads, "threads")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  command->add_flag("!--whole-files", arguments->pack.source.split_documents,
                    "do not take a line <|endoftext|> of a .txt for the end of a document");
  command->footer(
      "Repeating an interrupted command goes on behind its last shard.\n"
      "Example: ./lattice data pack --tokenizer fineweb.model --out shards/fineweb fineweb-edu/*.parquet");
  command->callback([arguments, &chosen] { chosen = [arguments] { return Pack(*arguments); }; });
}

void AddCheck(CLI::App& parent, Chosen& chosen) {
  CLI::App* command =
      parent.add_subcommand("check", "Read every byte of token shards and verify the checksums");
  const auto arguments = std::make_shared<CheckArguments>();
  command->add_option("directories", arguments->directories, "directories of shards")->required();
  command->add_option("--tokenizer", arguments->tokenizer,
                      "also check that this tokenizer made them and has their ids");
  command->footer("Example: ./lattice data check shards/fineweb");
  command->callback([arguments, &chosen] { chosen = [arguments] { return CheckShards(*arguments); }; });
}

}  // namespace

void AddData(CLI::App& app, Chosen& chosen) {
  CLI::App* command = app.add_subcommand("data", "Pack a corpus into token shards, or check shards");
  command->require_subcommand(1);
  command->footer("Example: ./lattice data pack --out shards/books books/");
  AddPack(*command, chosen);
  AddCheck(*command, chosen);
}

}  // namespace lattice::cli
