#include "train/report.h"

#include "base/error.h"
#include "io/file.h"
#include "train/chart.h"
#include "train/format.h"

namespace lattice::train {
namespace {

constexpr std::string_view kStyle = R"(
:root{color-scheme:light dark;--bg:#fbfbfa;--card:#fff;--ink:#1c1e21;--soft:#6a7076;--rule:#e4e6e8;
--c0:#2563eb;--c1:#d9480f;--c2:#2b8a3e;--c3:#9c36b5;--c4:#b08900;--c5:#0c8599;--lo:#8fb4f5;--hi:#1e3a8a}
@media(prefers-color-scheme:dark){:root{--bg:#141618;--card:#1c1f22;--ink:#e8eaed;--soft:#9aa1a8;--rule:#30353a;
--c0:#6ea8fe;--c1:#ff9d66;--c2:#69db7c;--c3:#da8ff0;--c4:#ffd43b;--c5:#66d9e8;--lo:#2b4a86;--hi:#bcd6ff}}
*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.45 system-ui,sans-serif}
main{max-width:1180px;margin:0 auto;padding:28px 20px 60px}h1{font-size:24px;margin:0 0 4px}
h2{font-size:18px;margin:34px 0 4px}p{margin:0 0 14px;color:var(--soft);max-width:75ch}
.grid2{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(440px,100%),1fr));gap:16px}
figure{margin:0;background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:12px 14px 6px}
h3{font-size:15px;margin:0;font-weight:600}h3 small{font-weight:400;color:var(--soft)}
.legend{font-size:12.5px;color:var(--soft);min-height:20px;display:flex;flex-wrap:wrap;gap:2px 14px}
.legend b{color:var(--ink);font-weight:600}.legend i{display:inline-block;width:11px;height:3px;border-radius:2px;margin:0 5px 3px 0}
svg{width:100%;height:auto;display:block}.grid{stroke:var(--rule);stroke-width:1}.tick{fill:var(--soft);font-size:10.5px}
.line{fill:none;stroke-width:1.3;stroke-linejoin:round}.strong{stroke-width:2.4}
.table{overflow-x:auto}table{border-collapse:collapse;margin:14px 0 18px;font-variant-numeric:tabular-nums}
th,td{text-align:right;padding:5px 14px 5px 0;border-bottom:1px solid var(--rule);white-space:nowrap}
th{color:var(--soft);font-weight:500;font-size:13px}th:nth-child(-n+2),td:nth-child(-n+2){text-align:left}
td i{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:8px}
ul{margin:6px 0;padding-left:20px;color:var(--soft)}
)";

constexpr size_t kColors = 6;
constexpr size_t kMostEvents = 20;

struct MemoryChart {
  const char* key;
  const char* title;
  const char* unit;
};
constexpr MemoryChart kMemoryCharts[] = {
    {"write_intensity", "Write intensity", "what one token writes, relative to the length of the slot"},
    {"novelty", "Novelty",
     "|h perpendicular to the slot| / |h|: what a token adds that the slot does not hold"},
    {"beta", "Normalisation beta", "factor that gives a slot its length back after a token"},
    {"slot_similarity", "Slot similarity", "mean |cosine| between the slots of a head"},
    {"effective_rank", "Effective rank",
     "exp of the entropy of the state's singular values, as a part of the slots"},
};

std::string RunColor(size_t i) { return StrCat("var(--c", i % kColors, ")"); }

// From the first layer's colour to the last one's.
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
  return StrCat("<tr><td><i style=\"background:", RunColor(i), "\"></i>", Escaped(run.name), "</td><td>",
                Escaped(run.title), "</td><td>", losses.empty() ? "–" : Fixed(losses.back().first, 0),
                "</td><td>", CountText(last("tokens")), "</td><td>", Last(run, "loss", 3), "</td><td>",
                Last(run, "bits_per_byte", 3), "</td><td>", Last(run, "valid_bits_per_byte", 3), "</td><td>",
                Last(run, "valid_perplexity", 2), "</td><td>", CountText(last("tokens_per_s")), "</td><td>",
                DurationText(last("elapsed")), "</td><td>", BytesText(static_cast<int64_t>(last("memory"))),
                "</td><td>", skipped, "</td></tr>\n");
}

std::string Summary(const std::vector<RunMetrics>& runs) {
  std::string out =
      "<div class=\"table\"><table><tr><th>run</th><th>model</th><th>steps</th><th>tokens</th><th>loss</th>"
      "<th>bits/byte</th><th>valid. bits/byte</th><th>valid. perplexity</th><th>tokens/s</th><th>time</th>"
      "<th>memory</th><th>skipped</th></tr>\n";
  for (size_t i = 0; i < runs.size(); ++i) out += SummaryRow(runs[i], i);
  return out + "</table></div>\n";
}

Series Scaled(Series series, double factor) {
  for (auto& [step, value] : series) value *= factor;
  return series;
}

// A line per run and key; with one run the label names the key, with several the run.
Chart Training(const std::vector<RunMetrics>& runs, const char* title, const char* unit, const char* key,
               const char* valid_key = nullptr, bool log = false, double factor = 1) {
  Chart chart = {title, unit, {}, log};
  for (size_t i = 0; i < runs.size(); ++i) {
    const bool one = runs.size() == 1;
    chart.lines.push_back({one ? (valid_key != nullptr ? "training" : "last") : runs[i].name, RunColor(i),
                           Scaled(runs[i].Get(key), factor), valid_key == nullptr});
    if (valid_key == nullptr) continue;
    chart.lines.push_back({one ? "validation" : runs[i].name + " validation", RunColor(one ? 1 : i),
                           runs[i].Get(valid_key), true});
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

Chart Memory(const std::vector<RunMetrics>& runs, const MemoryChart& kind) {
  Chart chart = {kind.title, kind.unit, {}, false};
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

std::string Events(const std::vector<RunMetrics>& runs) {
  std::string out;
  size_t shown = 0, all = 0;
  for (const RunMetrics& run : runs) {
    for (const auto& [step, what] : run.events) {
      if (++all > kMostEvents) continue;
      ++shown;
      out += StrCat("<li>", runs.size() > 1 ? Escaped(run.name) + ", " : "", "step ", step, ": ",
                    Escaped(what), "</li>");
    }
  }
  if (out.empty()) return "";
  return StrCat("<h2>Skipped steps and rollbacks</h2><ul>", out,
                all > shown ? StrCat("<li>and ", all - shown, " more</li>") : "", "</ul>\n");
}

}  // namespace

std::string ReportHtml(const std::vector<RunMetrics>& runs) {
  std::string title = runs.size() == 1 ? runs[0].name : StrCat(runs.size(), " runs compared");
  std::string out = StrCat(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>",
      Escaped(title), "</title><style>", kStyle, "</style></head><body><main>\n<h1>", Escaped(title),
      "</h1>\n", Summary(runs), "<div class=\"grid2\">\n");
  out += ChartHtml(Training(runs, "Loss", "nats per token", "loss", "valid_loss"));
  out += ChartHtml(Training(runs, "Bits per byte", "of text", "bits_per_byte", "valid_bits_per_byte"));
  out += ChartHtml(Training(runs, "Learning rate", "", "lr"));
  out +=
      ChartHtml(Training(runs, "Gradient norm", "before clipping, logarithmic", "grad_norm", nullptr, true));
  out += ChartHtml(Training(runs, "Speed", "tokens per second", "tokens_per_s"));
  out += ChartHtml(Training(runs, "Memory", "GiB in use", "memory", nullptr, false, 1.0 / (1 << 30)));
  out += "</div>\n";
  std::string memory;
  for (const MemoryChart& kind : kMemoryCharts) memory += ChartHtml(Memory(runs, kind));
  if (!memory.empty()) {
    out += StrCat(
        "<h2>What the memory does</h2><p>Measured on validation text, ",
        runs.size() == 1 ? "layer by layer from light (first) to dark (last)." : "averaged over layers.",
        " The horizontal axis is the step.</p><div class=\"grid2\">\n", memory, "</div>\n");
  }
  return out + Events(runs) + "</main></body></html>\n";
}

void WriteReport(const std::vector<std::filesystem::path>& runs, const std::filesystem::path& file) {
  Check(!runs.empty(), "[report] no run is given");
  std::vector<RunMetrics> metrics;
  for (const std::filesystem::path& run : runs) metrics.push_back(ReadRunMetrics(run));
  io::WriteFileAtomic(file, ReportHtml(metrics));
}

}  // namespace lattice::train
