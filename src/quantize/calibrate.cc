// Measures what every matrix reads on a text, and converts the matrices with that.
#include "quantize/calibrate.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "kernels/dense/groups.h"
#include "model/tensors.h"
#include "quantize/compensate.h"
#include "quantize/input_squares.h"
#include "runtime/engine.h"
#include "runtime/model_parts.h"

namespace lattice::quantize {
namespace {

using kernels::WeightFormat;
using model::TensorInfo;

// Measures the inputs of some matrices of a model while an engine runs it. Matrices that read the same input share its
// sums.
class InputMeter : public runtime::ProductObserver {
 public:
  InputMeter(const runtime::Model& model, std::span<const TensorInfo> matrices, ThreadPool& threads)
      : threads_(threads) {
    for (const TensorInfo& info : matrices) names_[model.parts().weights.Matrix(info.name).data] = info.name;
  }

  void OnProducts(std::span<const kernels::WeightMatrix> matrices, const float* x, int64_t rows) override {
    std::shared_ptr<InputSquares> shared;
    for (const kernels::WeightMatrix& matrix : matrices) {
      const auto name = names_.find(matrix.data);
      if (name == names_.end()) continue;
      std::shared_ptr<InputSquares>& squares = squares_[name->second];
      if (squares == nullptr)
        squares = shared != nullptr ? shared : std::make_shared<InputSquares>(matrix.cols);
      if (shared == nullptr) squares->Add(x, rows, threads_);
      shared = squares;
    }
  }

  std::shared_ptr<const InputSquares> Of(const std::string& matrix) const { return squares_.at(matrix); }

 private:
  ThreadPool& threads_;
  std::map<const void*, std::string> names_;
  std::map<std::string, std::shared_ptr<InputSquares>> squares_;
};

// The block of a tensor "blocks.<i>.<name>", as "blocks.<i>.".
std::string BlockOf(const TensorInfo& info) { return info.name.substr(0, info.name.find('.', 7) + 1); }

int64_t SquaresBytes(const TensorInfo& info) {
  return info.shape[1] * info.shape[1] * static_cast<int64_t>(sizeof(double));
}

class Calibration {
 public:
  Calibration(const std::shared_ptr<const runtime::Model>& model, std::span<const int32_t> tokens,
              const CalibrationOptions& options)
      : model_(model), tokens_(tokens), options_(options), threads_(options.threads) {
    for (const TensorInfo& info : model::ModelTensors(model->config())) {
      if (info.IsProjection()) projections_.push_back(info);
    }
    windows_ = std::min(options.windows, static_cast<int64_t>(tokens.size()) / options.window);
    Check(windows_ > 0, "[convert] the calibration text has ", tokens.size(), " tokens, but needs at least ",
          options.window, "; pass a longer text");
  }

  runtime::Weights Run() {
    const std::vector<std::span<const TensorInfo>> stages = Stages();
    total_ = static_cast<int64_t>(stages.size()) * windows_ + static_cast<int64_t>(projections_.size());
    for (const std::span<const TensorInfo> stage : stages) {
      const std::shared_ptr<const runtime::Model> current =
          ready_.empty() ? model_ : runtime::Model::Make(model_->config(), Source(true), WeightFormat::kF32);
      InputMeter meter(*current, stage, threads_);
      ReadText(current, meter);
      Convert(stage, meter);
    }
    return {model_->config(), Source(false), WeightFormat::kInt4, [&](const TensorInfo& info) {
              const auto rows = ready_.find(info.name);
              return rows == ready_.end() ? nullptr : rows->second.data();
            }};
  }

 private:
  // Whole blocks whose sums fit into the memory, at least one at a time.
  std::vector<std::span<const TensorInfo>> Stages() const {
    std::vector<std::span<const TensorInfo>> stages;
    const std::span<const TensorInfo> all = projections_;
    size_t first = 0, block = 0;
    int64_t used = 0;
    while (block < all.size()) {
      size_t end = block;
      int64_t bytes = 0;
      for (; end < all.size() && BlockOf(all[end]) == BlockOf(all[block]); ++end)
        bytes += SquaresBytes(all[end]);
      if (block > first && used + bytes > options_.bytes) {
        stages.push_back(all.subspan(first, block - first));
        first = block;
        used = 0;
      }
      used += bytes;
      block = end;
    }
    stages.push_back(all.subspan(first));
    return stages;
  }

  // The model's own values, or those of the rounded weights where there are any and they are asked for.
  runtime::TensorSource Source(bool rounded) const {
    return [this, rounded](const TensorInfo& info, std::span<float> out) {
      const runtime::Weights& weights = model_->parts().weights;
      if (!info.IsMatrix()) {
        std::copy_n(weights.Vector(info.name).begin(), out.size(), out.begin());
        return;
      }
      const int64_t cols = info.shape[1], row_bytes = kernels::RowBytes(WeightFormat::kInt4, cols);
      const auto rows = ready_.find(info.name);
      for (int64_t row = 0; row < info.shape[0]; ++row) {
        float* to = out.data() + row * cols;
        if (rounded && rows != ready_.end()) {
          kernels::WidenGroups(rows->second.data() + row * row_bytes, cols, to);
        } else {
          runtime::WidenRow(weights.Matrix(info.name), row, to);
        }
      }
    };
  }

  void ReadText(const std::shared_ptr<const runtime::Model>& model, InputMeter& meter) {
    runtime::Engine engine(model, options_.threads);
    engine.ObserveProducts(&meter);
    const int64_t all = static_cast<int64_t>(tokens_.size()) / options_.window;
    for (int64_t i = 0; i < windows_; ++i) {
      runtime::Session session = engine.NewSession();
      const int64_t first = i * all / windows_ * options_.window;
      const auto window = tokens_.subspan(static_cast<size_t>(first), static_cast<size_t>(options_.window));
      const runtime::Feed feed = {&session, window, runtime::Want::kNone};
      engine.Run({&feed, 1});
      Advance();
    }
  }

  void Convert(std::span<const TensorInfo> stage, const InputMeter& meter) {
    std::shared_ptr<const InputSquares> known;
    std::unique_ptr<const ErrorShares> shares;
    for (const TensorInfo& info : stage) {
      const std::shared_ptr<const InputSquares> squares = meter.Of(info.name);
      if (squares != known)
        shares = std::make_unique<ErrorShares>(squares->sums(), squares->cols(), threads_);
      known = squares;
      const runtime::WeightMatrix& matrix = model_->parts().weights.Matrix(info.name);
      ready_[info.name] = Compensated(static_cast<const float*>(matrix.data), matrix.rows, *shares, threads_);
      Advance();
    }
  }

  void Advance() {
    ++done_;
    if (options_.progress) options_.progress(done_, total_);
  }

  std::shared_ptr<const runtime::Model> model_;
  std::span<const int32_t> tokens_;
  const CalibrationOptions& options_;
  ThreadPool threads_;
  std::vector<TensorInfo> projections_;
  int64_t windows_ = 0, done_ = 0, total_ = 0;
  std::map<std::string, std::vector<std::byte>> ready_;  // rows of int4, by the name of the matrix
};

}  // namespace

runtime::Weights Calibrated(const std::shared_ptr<const runtime::Model>& model,
                            std::span<const int32_t> tokens, const CalibrationOptions& options) {
  Check(model->format() == WeightFormat::kF32,
        "[convert] only float32 weights can be calibrated, but these are ", runtime::Name(model->format()),
        "; convert the float32 checkpoint");
  return Calibration(model, tokens, options).Run();
}

}  // namespace lattice::quantize
