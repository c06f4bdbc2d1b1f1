// Runs a model over a text with an observer that records what every token does to every slot.
#include "eval/microscope.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace lattice::eval {
namespace {

void Append(std::vector<float>& to, const std::vector<float>& values) {
  to.insert(to.end(), values.begin(), values.end());
}

class Microscope : public runtime::StepObserver {
 public:
  Microscope(const model::ModelConfig& config, int64_t tokens, int64_t snapshots)
      : snapshots_(std::clamp<int64_t>(snapshots, 1, tokens)) {
    places_.resize(static_cast<size_t>(config.layers));
    for (int64_t layer = 0; layer < config.layers; ++layer) {
      places_[static_cast<size_t>(layer)] = static_cast<int64_t>(record_.numbers.size());
      if (config.HasMemory(layer)) record_.numbers.push_back(layer);
    }
    record_.tokens = tokens;
    record_.layers = static_cast<int64_t>(record_.numbers.size());
    record_.heads = config.heads;
    record_.slots = config.Slots();
    record_.width = config.HeadDim();
    record_.records.resize(static_cast<size_t>(record_.layers * config.heads));
  }

  void Observe(const runtime::MemoryStep& step, const runtime::StepFigures& figures) override {
    const int64_t layer = places_[static_cast<size_t>(step.layer)];
    HeadRecord& head = record_.records[static_cast<size_t>(layer * record_.heads + step.head)];
    head.gamma.push_back(step.gamma);
    head.mu.push_back(step.mu);
    head.write.push_back(static_cast<float>(figures.write));
    head.answer.push_back(static_cast<float>(figures.answer));
    if (figures.novelty) head.novelty.push_back(static_cast<float>(*figures.novelty));
    Append(head.slot_write, figures.slot_write);
    Append(head.slot_novelty, figures.slot_novelty);
    Append(head.slot_beta, figures.slot_beta);
    head.means.Add(figures);
    MeasureRead(step, head);
    // Snapshots are evenly spread: take one where the index of the snapshot changes after this token.
    if ((step.token + 1) * snapshots_ / record_.tokens != step.token * snapshots_ / record_.tokens)
      head.snapshots.push_back({step.token, runtime::ViewMemory(step.after, record_.slots, record_.width)});
  }

  MemoryRecord Take() { return std::move(record_); }

 private:
  void MeasureRead(const runtime::MemoryStep& step, HeadRecord& head) const {
    const auto m = static_cast<size_t>(record_.slots), d = static_cast<size_t>(record_.width);
    std::vector<double> parts(m);
    double sum = 0;
    for (size_t i = 0; i < m; ++i) {
      parts[i] = std::abs(step.q[i]) * std::sqrt(runtime::SquaredLength(step.after.subspan(i * d, d)));
      sum += parts[i];
    }
    for (const double part : parts) head.read.push_back(static_cast<float>(sum > 0 ? part / sum : 0));
  }

  int64_t snapshots_;
  std::vector<int64_t> places_;  // of the model's layers among those with a memory
  MemoryRecord record_;
};

}  // namespace

double HeadRecord::NewlyWritten(int64_t token) const {
  const auto t = static_cast<size_t>(token);
  return novelty.empty() ? write[t] : double{write[t]} * novelty[t];
}

HeadSummary MemoryRecord::Summary(int64_t layer, int64_t head) const {
  const HeadRecord& record = At(layer, head);
  HeadSummary out;
  out.write = record.means.write();
  out.answer = record.means.answer();
  out.novelty = record.means.novelty();
  out.beta = record.means.beta();
  std::vector<double> writes(static_cast<size_t>(slots), 0), reads(static_cast<size_t>(slots));
  double total = 0;
  for (int64_t t = 0; t < tokens; ++t) {
    for (size_t i = 0; i < writes.size(); ++i) {
      const size_t at = static_cast<size_t>(t * slots) + i;
      writes[i] += record.slot_write[at];
      total += record.slot_write[at];
      reads[i] = record.read[at];
    }
    out.read_slots += runtime::EffectiveNumber(reads) / static_cast<double>(tokens);
  }
  out.active_slots = runtime::EffectiveNumber(writes);
  out.busiest_slot = std::max_element(writes.begin(), writes.end()) - writes.begin();
  out.busiest_part = total > 0 ? writes[static_cast<size_t>(out.busiest_slot)] / total : 0;
  out.similarity = record.snapshots.back().memory.similarity;
  out.first_rank = record.snapshots.front().memory.effective_rank;
  out.last_rank = record.snapshots.back().memory.effective_rank;
  return out;
}

MemoryRecord Examine(const std::shared_ptr<const runtime::Model>& model, std::span<const int32_t> tokens,
                     int64_t snapshots, int threads) {
  Check(model->config().HasMemory(),
        "[inspect] a transformer keeps all keys and values; it has no memory of slots to look into");
  Check(!tokens.empty(), "[inspect] there is no text to read; pass at least one character");
  Microscope microscope(model->config(), static_cast<int64_t>(tokens.size()), snapshots);
  runtime::Engine engine(model, threads);
  runtime::Session session(model);
  const runtime::Feed feed = {&session, tokens, runtime::Want::kNone, &microscope};
  engine.Run({&feed, 1});
  return microscope.Take();
}

}  // namespace lattice::eval
