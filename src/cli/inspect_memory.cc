// `lattice inspect --text`: what the tokens of a text do to the memories of a model.
#include "cli/inspect_memory.h"

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/format.h"
#include "cli/open_model.h"
#include "cli/standard_input.h"
#include "eval/microscope_page.h"
#include "io/file.h"
#include "text/stream_decoder.h"

namespace lattice::cli {
namespace {

constexpr size_t kShownTokens = 10;

std::vector<std::string> Pieces(const text::Tokenizer& tokenizer, std::span<const int32_t> tokens) {
  text::StreamDecoder decoder(tokenizer);
  std::vector<std::string> pieces;
  for (const int32_t token : tokens) pieces.push_back(decoder.Push(token));
  return pieces;
}

// The figure as text, or a dash if it is not defined for this memory.
std::string Shown(std::optional<double> figure, int digits) { return figure ? Fixed(*figure, digits) : "-"; }

void PrintHeads(const eval::MemoryRecord& record, const std::string& mixer) {
  std::cout << "layer head    write  novelty   answer     beta  active slots   busiest slot  slots per read  "
               "similarity  "
               "effective rank\n";
  for (int64_t layer = 0; layer < record.layers; ++layer) {
    for (int64_t head = 0; head < record.heads; ++head) {
      const eval::HeadSummary s = record.Summary(layer, head);
      std::cout << std::setw(5) << record.numbers[static_cast<size_t>(layer)] + 1 << std::setw(5) << head + 1
                << std::setw(9) << Fixed(s.write, 4) << std::setw(9) << Shown(s.novelty, 3) << std::setw(9)
                << Fixed(s.answer, 3) << std::setw(9) << Shown(s.beta, 4) << std::setw(8)
                << Fixed(s.active_slots, 1) << " of " << std::left << std::setw(4) << record.slots
                << std::right << std::setw(6) << s.busiest_slot + 1 << " " << std::setw(5)
                << Fixed(100 * s.busiest_part, 1) << " %" << std::setw(14) << Fixed(s.read_slots, 1)
                << std::setw(12) << Fixed(s.similarity, 3) << "  " << Fixed(s.first_rank, 1) << " -> "
                << Fixed(s.last_rank, 1) << "\n";
    }
  }
  if (!record.HasNovelty()) {
    std::cout << "novelty and beta are not defined for " << mixer
              << ": only Lattice projects its updates and scales its slots\n";
  }
}

// Prints the tokens that wrote most that was new, as a mean over all heads.
void PrintNewest(const eval::MemoryRecord& record, const std::vector<std::string>& pieces) {
  std::vector<double> news(pieces.size(), 0);
  for (size_t t = 0; t < news.size(); ++t) {
    for (const eval::HeadRecord& head : record.records)
      news[t] += head.NewlyWritten(static_cast<int64_t>(t)) / static_cast<double>(record.records.size());
  }
  std::vector<size_t> order(news.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return news[a] > news[b]; });
  std::cout << (record.HasNovelty() ? "\nMost new written (write times novelty, mean of all heads):\n"
                                    : "\nMost written (mean of all heads):\n");
  for (size_t i = 0; i < std::min(order.size(), kShownTokens); ++i) {
    std::string before;
    for (size_t t = order[i] - std::min<size_t>(order[i], 12); t < order[i]; ++t) before += pieces[t];
    std::cout << "  token " << std::setw(5) << order[i] + 1 << "  " << Fixed(news[order[i]], 4) << "  "
              << nlohmann::json(before).dump() << " then " << nlohmann::json(pieces[order[i]]).dump() << "\n";
  }
}

}  // namespace

int InspectMemory(const MemoryOptions& options) {
  const OpenedModel model = OpenModel(options.model, {.tokenizer = options.tokenizer});
  std::vector<int32_t> tokens = model.tokenizer->Encode(TextOrInput(options.text));
  if (static_cast<int64_t>(tokens.size()) > options.max_tokens) {
    std::cerr << "lattice: [inspect] the text has " << tokens.size() << " tokens; shown are the first "
              << options.max_tokens << " (--max-tokens)\n";
    tokens.resize(static_cast<size_t>(options.max_tokens));
  }
  const eval::MemoryRecord record = eval::Examine(model.model, tokens, options.snapshots, options.threads);
  const std::vector<std::string> pieces = Pieces(*model.tokenizer, tokens);
  const eval::RecordLabels labels = {options.model, model.model->config().MixerText(), pieces};
  if (!options.html.empty()) {
    io::WriteFileAtomic(options.html, eval::RecordPage(record, labels));
    std::cerr << "page: " << options.html << "\n";
  }
  if (options.json) {
    std::cout << eval::RecordJson(record, labels).dump() << "\n";
    return 0;
  }
  std::cout << labels.mixer << ": " << record.layers << " layers of " << record.heads << " heads, "
            << record.slots << " slots x " << record.width << "; " << tokens.size() << " tokens read\n\n";
  PrintHeads(record, labels.mixer);
  PrintNewest(record, pieces);
  return 0;
}

}  // namespace lattice::cli
