#include "eval/microscope.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "model/mixers.h"

namespace lattice::eval {
namespace {

double Dot(std::span<const float> x, std::span<const double> y) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

// What a rule aims at, as the kernels' references have it.
enum class Target { kDec, kEnc, kSim, kDelta, kValue };

Target TargetOf(const model::MixerInfo& mixer) {
  if (mixer.objective == "dec") return Target::kDec;
  if (mixer.objective == "enc") return Target::kEnc;
  if (mixer.objective == "sim") return Target::kSim;
  return mixer.rule.find("delta") != std::string_view::npos || mixer.rule == "rwkv7" || mixer.rule == "ttt"
             ? Target::kDelta
             : Target::kValue;
}

class Microscope : public runtime::StepObserver {
 public:
  Microscope(const model::ModelConfig& config, int64_t tokens, int64_t snapshots)
      : mixer_(model::FindMixer(config.mixer)),
        target_(TargetOf(mixer_)),
        normalizes_(!mixer_.objective.empty() && config.normalize != model::Normalize::kNone),
        snapshots_(std::clamp<int64_t>(snapshots, 1, tokens)) {
    record_ = {tokens, config.layers, config.heads, config.Slots(), config.HeadDim(), {}};
    record_.records.resize(static_cast<size_t>(config.layers * config.heads));
    const auto cells = static_cast<size_t>(tokens * record_.slots);
    for (HeadRecord& head : record_.records) {
      for (std::vector<float>* figures : {&head.write, &head.novelty, &head.beta, &head.read})
        figures->resize(cells);
    }
  }

  void Observe(const runtime::MemoryStep& step) override {
    HeadRecord& head = record_.records[static_cast<size_t>(step.layer * record_.heads + step.head)];
    head.gamma.push_back(step.gamma);
    head.mu.push_back(step.mu);
    MeasureWrite(step, head);
    MeasureRead(step, head);
    // The snapshot number changes after this token.
    if ((step.token + 1) * snapshots_ / record_.tokens != step.token * snapshots_ / record_.tokens)
      head.snapshots.push_back({step.token, runtime::ViewMemory(step.after, record_.slots, record_.width)});
  }

  MemoryRecord Take() { return std::move(record_); }

 private:
  // h and the lengths of the slots before the token.
  void Prepare(const runtime::MemoryStep& step) {
    const auto m = static_cast<size_t>(record_.slots), d = static_cast<size_t>(record_.width);
    lengths_.resize(m);
    for (size_t i = 0; i < m; ++i)
      lengths_[i] = std::sqrt(runtime::SquaredLength(step.before.subspan(i * d, d)) + 1e-12);
    h_.assign(d, 0);
    const bool reads = target_ == Target::kDec || target_ == Target::kDelta;
    for (size_t i = 0; reads && i < m; ++i) {
      const double k = target_ == Target::kDec ? step.k[i] / lengths_[i] : step.k[i];
      for (size_t c = 0; c < d; ++c) h_[c] += k * step.before[i * d + c];
    }
    for (size_t c = 0; c < d; ++c) h_[c] += target_ == Target::kEnc ? step.v[c] : -double{step.v[c]};
  }

  void MeasureWrite(const runtime::MemoryStep& step, HeadRecord& head) {
    Prepare(step);
    const auto m = static_cast<size_t>(record_.slots), d = static_cast<size_t>(record_.width);
    double hh = 1e-30;
    for (const double h : h_) hh += h * h;
    for (size_t i = 0; i < m; ++i) {
      const std::span<const float> before = step.before.subspan(i * d, d),
                                   after = step.after.subspan(i * d, d);
      const double s = lengths_[i], a = Dot(before, h_) / s, r = std::max(0.0, hh - a * a);
      const size_t at = static_cast<size_t>(step.token) * m + i;
      head.novelty[at] = static_cast<float>(std::sqrt(r / hh));
      head.beta[at] = 1;
      if (mixer_.objective.empty()) {
        head.write[at] = static_cast<float>(runtime::RelativeChange(before, after));
        continue;
      }
      const double c = (target_ == Target::kEnc ? a - step.k[i] : step.k[i]) / s;
      const double delta = step.gamma * c * c * step.gamma * r;
      head.write[at] = static_cast<float>(std::sqrt(delta) / s);
      if (normalizes_)
        head.beta[at] = static_cast<float>(s / std::sqrt(double{step.mu} * step.mu * s * s + delta));
    }
  }

  void MeasureRead(const runtime::MemoryStep& step, HeadRecord& head) {
    const auto m = static_cast<size_t>(record_.slots), d = static_cast<size_t>(record_.width);
    std::vector<double> parts(m);
    double sum = 0;
    for (size_t i = 0; i < m; ++i) {
      parts[i] = std::abs(step.q[i]) * std::sqrt(runtime::SquaredLength(step.after.subspan(i * d, d)));
      sum += parts[i];
    }
    for (size_t i = 0; i < m; ++i)
      head.read[static_cast<size_t>(step.token) * m + i] = static_cast<float>(sum > 0 ? parts[i] / sum : 0);
  }

  const model::MixerInfo& mixer_;
  Target target_;
  bool normalizes_;
  int64_t snapshots_;
  MemoryRecord record_;
  std::vector<double> lengths_, h_;
};

}  // namespace

double HeadRecord::WriteOf(int64_t token, int64_t slots) const {
  double sum = 0;
  for (int64_t i = 0; i < slots; ++i) sum += write[static_cast<size_t>(token * slots + i)];
  return sum / static_cast<double>(slots);
}

double HeadRecord::NoveltyOf(int64_t token, int64_t slots) const {
  double sum = 0, weights = 0;
  for (int64_t i = 0; i < slots; ++i) {
    const auto at = static_cast<size_t>(token * slots + i);
    sum += double{write[at]} * novelty[at];
    weights += write[at];
  }
  return weights > 0 ? sum / weights : 0;
}

HeadSummary MemoryRecord::Summary(int64_t layer, int64_t head) const {
  const HeadRecord& record = At(layer, head);
  HeadSummary out;
  std::vector<double> writes(static_cast<size_t>(slots), 0), reads(static_cast<size_t>(slots));
  double total = 0, new_part = 0;
  for (int64_t t = 0; t < tokens; ++t) {
    for (size_t i = 0; i < writes.size(); ++i) {
      const size_t at = static_cast<size_t>(t * slots) + i;
      writes[i] += record.write[at];
      reads[i] = record.read[at];
      total += record.write[at];
      new_part += double{record.write[at]} * record.novelty[at];
      out.beta += record.beta[at];
    }
    out.read_slots += runtime::EffectiveNumber(reads) / static_cast<double>(tokens);
  }
  const auto cells = static_cast<double>(tokens * slots);
  out.write = total / cells;
  out.beta /= cells;
  out.novelty = total > 0 ? new_part / total : 0;
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
  Check(!model::FindMixer(model->config().mixer).attention,
        "[inspect] a transformer keeps all keys and values; it has no memory of slots to look into");
  Check(!tokens.empty(), "[inspect] there is no text to read; pass at least one character");
  Microscope microscope(model->config(), static_cast<int64_t>(tokens.size()), snapshots);
  runtime::Engine engine(model, threads);
  runtime::Session session(model);
  const runtime::Feed feed = {&session, tokens, runtime::Want::kNone, nullptr, &microscope};
  engine.Run({&feed, 1});
  return microscope.Take();
}

}  // namespace lattice::eval
