// Renders the metrics of one or several runs as an HTML page with charts.
#include "runs/report.h"

#include "base/error.h"
#include "base/format.h"
#include "io/file.h"
#include "plot/chart.h"
#include "plot/page.h"
#include "text/markup.h"

namespace lattice::runs {
namespace {

constexpr size_t kColors = 6;
constexpr size_t kMostEvents = 20;

struct MemoryChart {
  const char* key;
  const char* title;
  const char* unit;
};
constexpr MemoryChart kMemoryCharts[] = {
    {"write", "Write", "how much of the memory one token changes, as a part of its length"},
    {"novelty", "Novelty", "part of the update at right angles to the slots, weighted by what is written"},
    {"answer", "Answer", "cosine between what the memory already gives for the key and the value"},
    {"beta", "Normalisation beta", "factor that gives a slot its length back after a token"},
    {"slot_similarity", "Slot similarity", "mean |cosine| between the slots of a head"},
    {"effective_rank", "Effective rank",
     "exp of the entropy of the state's singular values, as a part of the slots"},
};

std::string RunColor(size_t i) { return StrCat("var(--c", i % kColors, ")"); }

// Interpolates from the colour of the first layer to that of the last.
std::string LayerColor(size_t i, size_t count) {
  const double part = count > 1 ? static_cast<double>(i) / static_cast<double>(count - 1) : 1;
  return StrCat("color-mix(in oklab,var(--hi) ", Fixed(100 * part, 0), "%,var(--lo))");
}

std::string Last(const RunMetrics& run, const std::string& key, int digits) {
  const Series& series = run.Get(key);
  return series.empty() ? "–" : Fixed(series.back().second, digits);
}

std::string SummaryRow(const RunMetrics& run, size_t i) {
  const auto last = [&](const char* key) {
    const Series& series = run.Get(key);
    return series.empty() ? 0.0 : series.back().second;
  };
  const Series& losses = run.Get("loss");
  size_t skipped = 0;
  for (const auto& [step, what] : run.events) skipped += what.starts_with("skipped") ? 1 : 0;
  return StrCat("<tr><td><i style=\"background:", RunColor(i), "\"></i>", text::Escaped(run.name),
                "</td><td>", text::Escaped(run.title), "</td><td>",
                losses.empty() ? "–" : Fixed(losses.back().first, 0), "</td><td>", CountText(last("tokens")),
                "</td><td>", Last(run, "loss", 3), "</td><td>", Last(run, "bits_per_byte", 3), "</td><td>",
                Last(run, "valid_bits_per_byte", 3), "</td><td>", Last(run, "valid_perplexity", 2),
                "</td><td>", CountText(last("tokens_per_s")), "</td><td>", DurationText(last("elapsed")),
                "</td><td>", BytesText(static_cast<int64_t>(last("memory"))), "</td><td>", skipped,
                "</td></tr>\n");
}

std::string Summary(const std::vector<RunMetrics>& runs) {
  std::string out =
      "<div class=\"table\"><table "
      "class=\"runs\"><tr><th>run</th><th>model</th><th>steps</th><th>tokens</th><th>loss</th>"
      "<th>bits/byte</th><th>valid. bits/byte</th><th>valid. perplexity</th><th>tokens/s</th><th>time</th>"
      "<th>memory</th><th>skipped</th></tr>\n";
  for (size_t i = 0; i < runs.size(); ++i) out += SummaryRow(runs[i], i);
  return out + "</table></div>\n";
}

Series Scaled(Series series, double factor) {
  for (auto& [step, value] : series) value *= factor;
  return series;
}

// A chart with a line for each run and key; the label names the key for one run, and the run for several.
plot::Chart Training(const std::vector<RunMetrics>& runs, const char* title, const char* unit,
                     const char* key, const char* valid_key = nullptr, bool log = false, double factor = 1) {
  plot::Chart chart = {title, unit, {}, log};
  for (size_t i = 0; i < runs.size(); ++i) {
    const bool one = runs.size() == 1;
    chart.lines.push_back({one ? (valid_key != nullptr ? "training" : "last") : runs[i].name, RunColor(i),
                           Scaled(runs[i].Get(key), factor), valid_key == nullptr});
    if (valid_key == nullptr) continue;
    chart.lines.push_back({one ? "validation" : runs[i].name + ", validation", RunColor(one ? 1 : i),
                           runs[i].Get(valid_key), true, true});
  }
  return chart;
}

Series MeanOf(const std::vector<Series>& layers) {
  Series mean;
  if (layers.empty()) return mean;
  for (size_t i = 0; i < layers[0].size(); ++i) {
    double sum = 0;
    size_t count = 0;
    for (const Series& layer : layers) {
      if (i < layer.size()) sum += layer[i].second, ++count;
    }
    mean.emplace_back(layers[0][i].first, sum / static_cast<double>(count));
  }
  return mean;
}

plot::Chart Memory(const std::vector<RunMetrics>& runs, const MemoryChart& kind) {
  plot::Chart chart = {kind.title, kind.unit, {}, false};
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto found = runs[i].layers.find(kind.key);
    if (found == runs[i].layers.end()) continue;
    const std::vector<Series>& layers = found->second;
    if (runs.size() > 1) {
      chart.lines.push_back({runs[i].name, RunColor(i), MeanOf(layers), true});
      continue;
    }
    for (size_t layer = 0; layer < layers.size(); ++layer) {
      const bool named =
          layers.size() <= 8 || layer == 0 || layer + 1 == layers.size() || layer == layers.size() / 2;
      chart.lines.push_back(
          {named ? StrCat("layer ", layer + 1) : "", LayerColor(layer, layers.size()), layers[layer], true});
    }
  }
  return chart;
}

// A note that lists the runs without figures of single steps, because their memory is not Lattice.
std::string UndefinedFigures(const std::vector<RunMetrics>& runs) {
  std::string names;
  for (const RunMetrics& run : runs) {
    if (!run.layers.contains("novelty")) names += (names.empty() ? "" : ", ") + text::Escaped(run.name);
  }
  if (names.empty()) return "";
  return StrCat(" Write, novelty, answer and beta are measured for Lattice only, not for ", names, ".");
}

std::string Events(const std::vector<RunMetrics>& runs) {
  std::string out;
  size_t shown = 0, all = 0;
  for (const RunMetrics& run : runs) {
    for (const auto& [step, what] : run.events) {
      if (++all > kMostEvents) continue;
      ++shown;
      out += StrCat("<li>", runs.size() > 1 ? text::Escaped(run.name) + ", " : "", "step ", step, ": ",
                    text::Escaped(what), "</li>");
    }
  }
  if (out.empty()) return "";
  return StrCat("<h2>Skipped steps and rollbacks</h2><ul>", out,
                all > shown ? StrCat("<li>and ", all - shown, " more</li>") : "", "</ul>\n");
}

}  // namespace

std::string ReportHtml(const std::vector<RunMetrics>& runs) {
  std::string title = runs.size() == 1 ? runs[0].name : StrCat(runs.size(), " runs compared");
  std::string out = StrCat(plot::PageStart(title), Summary(runs), "<div class=\"grid2\">\n");
  out += plot::ChartHtml(Training(runs, "Loss", "nats per token", "loss", "valid_loss"));
  out += plot::ChartHtml(Training(runs, "Bits per byte", "of text", "bits_per_byte", "valid_bits_per_byte"));
  out += plot::ChartHtml(Training(runs, "Learning rate", "", "lr"));
  out += plot::ChartHtml(
      Training(runs, "Gradient norm", "before clipping, logarithmic", "grad_norm", nullptr, true));
  out += plot::ChartHtml(Training(runs, "Speed", "tokens per second", "tokens_per_s"));
  out += plot::ChartHtml(Training(runs, "Memory", "GiB in use", "memory", nullptr, false, 1.0 / (1 << 30)));
  out += "</div>\n";
  std::string memory;
  for (const MemoryChart& kind : kMemoryCharts) memory += plot::ChartHtml(Memory(runs, kind));
  if (!memory.empty()) {
    out += StrCat(
        "<h2>What the memory does</h2><p>Measured on validation text, ",
        runs.size() == 1 ? "layer by layer from light (first) to dark (last)." : "averaged over layers.",
        " The horizontal axis is the step.", UndefinedFigures(runs), "</p><div class=\"grid2\">\n", memory,
        "</div>\n");
  }
  return out + Events(runs) + std::string(plot::kPageEnd);
}

void WriteReport(const std::vector<std::filesystem::path>& runs, const std::filesystem::path& file) {
  Check(!runs.empty(), "[report] no run is given");
  std::vector<RunMetrics> metrics;
  for (const std::filesystem::path& run : runs) metrics.push_back(ReadRunMetrics(run));
  io::WriteFileAtomic(file, ReportHtml(metrics));
}

}  // namespace lattice::runs
