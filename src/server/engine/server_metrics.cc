#include "server/engine/server_metrics.h"

#include <algorithm>

#include "base/error.h"

namespace lattice::server {

void Histogram::Add(double seconds) {
  const auto bucket = std::lower_bound(kBounds.begin(), kBounds.end(), seconds) - kBounds.begin();
  ++counts_[static_cast<size_t>(bucket)];
  nanoseconds_ += static_cast<int64_t>(seconds * 1e9);
}

std::string Histogram::Text(const std::string& name, const std::string& help) const {
  std::string out = StrCat("# HELP ", name, " ", help, "\n# TYPE ", name, " histogram\n");
  int64_t sum = 0;
  for (size_t i = 0; i < kBounds.size(); ++i) {
    sum += counts_[i];
    out += StrCat(name, "_bucket{le=\"", kBounds[i], "\"} ", sum, "\n");
  }
  sum += counts_.back();
  return out + StrCat(name, "_bucket{le=\"+Inf\"} ", sum, "\n", name, "_sum ",
                      static_cast<double>(nanoseconds_) * 1e-9, "\n", name, "_count ", sum, "\n");
}

void Metrics::CountAnswer(const std::string& route, int status) {
  const std::lock_guard lock(mutex_);
  ++answers_[{route, status}];
}

std::string Metrics::AnswersText() const {
  const std::lock_guard lock(mutex_);
  std::string out =
      "# HELP lattice_requests_total Answers by route and status.\n# TYPE lattice_requests_total counter\n";
  for (const auto& [key, count] : answers_)
    out +=
        StrCat("lattice_requests_total{route=\"", key.first, "\",status=\"", key.second, "\"} ", count, "\n");
  return out;
}

std::string MetricText(const std::string& name, const std::string& type, const std::string& help,
                       int64_t value) {
  return StrCat("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n", name, " ", value, "\n");
}

}  // namespace lattice::server
