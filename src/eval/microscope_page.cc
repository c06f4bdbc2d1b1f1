// Writes a memory record as JSON, and as an interactive HTML page.
#include "eval/microscope_page.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "eval/python_text.h"
#include "text/base64.h"
#include "text/markup.h"

namespace lattice::eval {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kPage =
#include "eval/microscope_page.inc"
    ;

double Rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return 0;
  const double scale = std::pow(10, 4 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

// The values as a JSON list. An empty list becomes null: the memory has no such figure.
ordered_json Row(std::span<const float> values) {
  if (values.empty()) return nullptr;
  ordered_json out = ordered_json::array();
  for (const float value : values) out.push_back(Rounded(value));
  return out;
}

ordered_json Rows(std::span<const float> values, int64_t width) {
  if (values.empty()) return nullptr;
  ordered_json out = ordered_json::array();
  for (size_t at = 0; at < values.size(); at += static_cast<size_t>(width))
    out.push_back(Row(values.subspan(at, static_cast<size_t>(width))));
  return out;
}

ordered_json OrNull(std::optional<double> figure) {
  return figure ? ordered_json(Rounded(*figure)) : ordered_json();
}

ordered_json SummaryJson(const HeadSummary& s) {
  return {{"write", Rounded(s.write)},
          {"novelty", OrNull(s.novelty)},
          {"answer", Rounded(s.answer)},
          {"beta", OrNull(s.beta)},
          {"active_slots", Rounded(s.active_slots)},
          {"busiest_slot", s.busiest_slot},
          {"busiest_part", Rounded(s.busiest_part)},
          {"read_slots", Rounded(s.read_slots)},
          {"similarity", Rounded(s.similarity)},
          {"first_rank", Rounded(s.first_rank)},
          {"last_rank", Rounded(s.last_rank)}};
}

ordered_json Labels(const MemoryRecord& record, const RecordLabels& labels) {
  return {{"model", labels.model},
          {"mixer", labels.mixer},
          {"slots", record.slots},
          {"width", record.width},
          {"heads", record.heads},
          {"layer_count", record.layers},
          {"tokens", std::vector<std::string>(labels.pieces.begin(), labels.pieces.end())}};
}

// Values in [low, high] quantised to bytes, with the range, which the page needs to show numbers. null
// without values.
ordered_json Packed(std::span<const float> values, double low, double high) {
  if (values.empty()) return nullptr;
  std::vector<uint8_t> bytes;
  for (const float value : values)
    bytes.push_back(
        static_cast<uint8_t>(std::lround(255 * std::clamp((value - low) / (high - low), 0.0, 1.0))));
  return {{"low", low}, {"high", high}, {"data", text::Base64(bytes)}};
}

// The 99.9th percentile, so that a single burst does not leave everything else dark.
double HighEnd(std::span<const float> values) {
  std::vector<float> copy(values.begin(), values.end());
  const auto at = copy.begin() + static_cast<std::ptrdiff_t>(copy.size() - 1 - copy.size() / 1000);
  std::nth_element(copy.begin(), at, copy.end());
  return std::max(1e-6, double{*at});
}

// The same over the range from the smallest value to the largest.
ordered_json PackedRange(std::span<const float> values) {
  if (values.empty()) return nullptr;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return Packed(values, *low, std::max(double{*high}, *low + 1e-6));
}

ordered_json PageHead(const MemoryRecord& record, int64_t layer, int64_t head) {
  const HeadRecord& r = record.At(layer, head);
  ordered_json out = {{"layer", record.numbers[static_cast<size_t>(layer)]},
                      {"head", head},
                      {"write", Packed(r.slot_write, 0, HighEnd(r.slot_write))},
                      {"novelty", Packed(r.slot_novelty, 0, 1)},
                      {"beta", PackedRange(r.slot_beta)},
                      {"read", Packed(r.read, 0, HighEnd(r.read))},
                      {"token_write", Row(r.write)},
                      {"token_novelty", Row(r.novelty)},
                      {"token_answer", Row(r.answer)},
                      {"summary", SummaryJson(record.Summary(layer, head))}};
  for (int64_t t = 0; t < record.tokens; ++t) out["token_news"].push_back(Rounded(r.NewlyWritten(t)));
  for (const MemorySnapshot& s : r.snapshots) {
    out["snapshots"].push_back({{"token", s.token},
                                {"effective_rank", Rounded(s.memory.effective_rank)},
                                {"similarity", Rounded(s.memory.similarity)},
                                {"cosines", Packed(s.memory.cosines, -1, 1)}});
  }
  return out;
}

// Escapes JSON for a <script> element, so that no text can end the element.
std::string ScriptSafe(const std::string& text) { return Replace(text, "<", "\\u003c"); }

std::string Dump(const ordered_json& value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace

ordered_json RecordJson(const MemoryRecord& record, const RecordLabels& labels) {
  ordered_json out = Labels(record, labels);
  for (int64_t layer = 0; layer < record.layers; ++layer) {
    ordered_json heads = ordered_json::array();
    for (int64_t head = 0; head < record.heads; ++head) {
      const HeadRecord& r = record.At(layer, head);
      ordered_json snapshots = ordered_json::array();
      for (const MemorySnapshot& s : r.snapshots) {
        snapshots.push_back({{"token", s.token},
                             {"effective_rank", Rounded(s.memory.effective_rank)},
                             {"similarity", Rounded(s.memory.similarity)},
                             {"cosines", Rows(s.memory.cosines, record.slots)}});
      }
      heads.push_back({{"head", head},
                       {"summary", SummaryJson(record.Summary(layer, head))},
                       {"gamma", Row(r.gamma)},
                       {"mu", Row(r.mu)},
                       {"write", Rows(r.slot_write, record.slots)},
                       {"novelty", Rows(r.slot_novelty, record.slots)},
                       {"beta", Rows(r.slot_beta, record.slots)},
                       {"read", Rows(r.read, record.slots)},
                       {"token_write", Row(r.write)},
                       {"token_novelty", Row(r.novelty)},
                       {"token_answer", Row(r.answer)},
                       {"snapshots", snapshots}});
    }
    out["layers"].push_back({{"layer", record.numbers[static_cast<size_t>(layer)]}, {"heads", heads}});
  }
  return out;
}

std::string RecordPage(const MemoryRecord& record, const RecordLabels& labels) {
  ordered_json data = Labels(record, labels);
  for (int64_t layer = 0; layer < record.layers; ++layer) {
    for (int64_t head = 0; head < record.heads; ++head)
      data["records"].push_back(PageHead(record, layer, head));
  }
  const std::string page = Replace(kPage, "@TITLE@", text::Escaped(labels.mixer + ": " + labels.model));
  return Replace(page, "@DATA@", ScriptSafe(Dump(data)));
}

}  // namespace lattice::eval
