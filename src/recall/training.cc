// Trains one model on associative recall, epoch by epoch, resumable after each.
#include "recall/training.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "io/directory.h"
#include "io/sealed_json.h"
#include "nn/language_model.h"
#include "train/optimizer.h"
#include "train/precision.h"
#include "train/schedule.h"
#include "train/tensor_file.h"
#include "train/trainer.h"

namespace lattice::recall {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStateFile = "state.json";

model::Config ConfigOf(const RecallPoint& point) {
  model::Config config;
  config.model.mixer = point.mixer;
  config.model.vocab_size = point.task.vocab;
  config.model.layers = point.layers;
  config.model.width = point.width;
  config.model.heads = 1;
  for (const std::string& assignment : point.set) {
    Check(assignment.starts_with("model."), "[mqar] ", assignment, ": only keys of the model can be set");
    model::Override(config, assignment);
  }
  model::Validate(config.model);
  const int64_t per_epoch = (point.examples + point.batch - 1) / point.batch;
  config.train.steps = per_epoch * point.epochs;
  config.train.warmup = std::max<int64_t>(1, config.train.steps / 10);
  config.train.lr = point.lr;
  config.train.min_lr = 0;
  config.train.weight_decay = 0.1;
  config.train.seq_len = point.task.length;
  config.train.batch_tokens = point.batch * point.task.length;
  config.train.precision = train::ResolvePrecision(model::Precision::kAuto);
  config.train.micro_batch = train::ChooseMicroBatch(config);
  return config;
}

// A batch of examples, and the positions and values of their labels.
struct Batch {
  at::Tensor tokens;  // [count, L]
  at::Tensor places;  // positions of the queries among all count * L
  at::Tensor values;  // the labels, [1, queries]
};

Batch MakeBatch(const MqarGenerator& generator, int64_t first, int64_t count) {
  const int64_t length = generator.task().length;
  Batch batch{at::empty({count, length}, at::kLong), at::empty({count * generator.task().pairs}, at::kLong),
              at::empty({1, count * generator.task().pairs}, at::kLong)};
  auto* tokens = batch.tokens.mutable_data_ptr<int64_t>();
  auto* places = batch.places.mutable_data_ptr<int64_t>();
  auto* values = batch.values.mutable_data_ptr<int64_t>();
  std::vector<int64_t> labels(static_cast<size_t>(length));
  for (int64_t i = 0; i < count; ++i) {
    generator.Make(static_cast<uint64_t>(first + i), {tokens + i * length, static_cast<size_t>(length)},
                   labels);
    for (int64_t t = 0; t < length; ++t) {
      if (labels[static_cast<size_t>(t)] < 0) continue;
      *places++ = i * length + t;
      *values++ = labels[static_cast<size_t>(t)];
    }
  }
  return batch;
}

class RecallTrainer {
 public:
  RecallTrainer(const RecallPoint& point, fs::path directory)
      : point_(point),
        directory_(std::move(directory)),
        config_(ConfigOf(point)),
        training_(WithSeed(2 * point.task.seed)),
        validation_(WithSeed(2 * point.task.seed + 1)),
        model_(config_.model, point.task.seed),
        optimizer_(model_, config_.train) {
    model_.SetBf16(config_.train.precision == model::Precision::kBf16);
    report_.steps = config_.train.steps;
    if (fs::exists(directory_ / kStateFile)) Load();
  }

  bool Done() const {
    return report_.epoch == point_.epochs || (point_.stop_at > 0 && report_.best >= point_.stop_at);
  }

  // Runs one epoch and its validation; false when `progress` asked to stop before its end.
  bool Epoch(const std::function<bool(const RecallReport&)>& progress) {
    const auto began = std::chrono::steady_clock::now();
    const double before = report_.seconds;
    for (int64_t first = 0; first < point_.examples; first += point_.batch) {
      Step(first, std::min(point_.batch, point_.examples - first));
      report_.seconds =
          before + std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
      if (!progress(report_)) return false;
    }
    ++report_.epoch;
    report_.accuracy = Accuracy();
    report_.best = std::max(report_.best, report_.accuracy);
    report_.seconds =
        before + std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    Save();
    return true;
  }

  const RecallReport& report() const { return report_; }

 private:
  MqarGenerator WithSeed(uint64_t seed) const {
    MqarTask task = point_.task;
    task.seed = seed;
    return MqarGenerator(task);
  }

  at::Tensor QueryStates(const Batch& batch) const {
    const at::Tensor hidden = model_.Forward(batch.tokens);
    return hidden.reshape({-1, point_.width}).index_select(0, batch.places).unsqueeze(0);
  }

  void Step(int64_t first, int64_t count) {
    double loss = 0;
    for (int64_t at = 0; at < count; at += config_.train.micro_batch) {
      const int64_t part = std::min(config_.train.micro_batch, count - at);
      const Batch batch = MakeBatch(training_, first + at, part);
      const at::Tensor share = model_.Loss(QueryStates(batch), batch.values) *
                               (static_cast<double>(part) / static_cast<double>(count));
      share.backward();
      loss += share.item<double>();
    }
    report_.loss = loss;
    const double norm = optimizer_.GradientNorm();
    Check(std::isfinite(loss) && std::isfinite(norm), "[mqar] ", point_.Name(), ": the loss of step ",
          report_.step, " is not finite; use a smaller learning rate");
    optimizer_.Step(train::LearningRate(config_.train, report_.step), norm);
    optimizer_.ZeroGradients();
    ++report_.step;
  }

  double Accuracy() const {
    c10::NoGradGuard no_grad;
    int64_t right = 0, queries = 0;
    for (int64_t first = 0; first < point_.valid_examples; first += config_.train.micro_batch) {
      const int64_t count = std::min(config_.train.micro_batch, point_.valid_examples - first);
      const Batch batch = MakeBatch(validation_, first, count);
      const at::Tensor best = model_.Logits(QueryStates(batch)).argmax(-1);
      right += best.eq(batch.values).sum().item<int64_t>();
      queries += batch.values.numel();
    }
    return static_cast<double>(right) / static_cast<double>(std::max<int64_t>(1, queries));
  }

  fs::path FileOf(const char* kind) const {
    return directory_ / StrCat(kind, "-", report_.epoch, ".safetensors");
  }

  // The files are named after their epoch; the state file, written last, says which epoch is valid.
  void Save() {
    io::MakeDirectories(directory_);
    model_.SaveWeights(FileOf("model"));
    train::WriteTensors(FileOf("moments"), optimizer_.Moments());
    io::WriteSealedJson(directory_ / kStateFile, {{"settings", point_.Settings()},
                                                  {"epoch", report_.epoch},
                                                  {"step", report_.step},
                                                  {"accuracy", report_.accuracy},
                                                  {"best", report_.best},
                                                  {"loss", report_.loss},
                                                  {"seconds", report_.seconds}});
    const fs::path model = FileOf("model"), moments = FileOf("moments");
    for (const fs::directory_entry& entry : fs::directory_iterator(directory_)) {
      const bool ours = entry.path() == model || entry.path() == moments;
      if (entry.path().extension() == ".safetensors" && !ours) fs::remove(entry.path());
    }
  }

  void Load() {
    const nlohmann::json saved = io::ReadSealedJson(directory_ / kStateFile);
    Check(saved.at("settings") == point_.Settings(), "[mqar] ", directory_.string(),
          " holds a point of other settings; pass another --out");
    report_.epoch = saved.at("epoch");
    report_.step = saved.at("step");
    report_.accuracy = saved.at("accuracy");
    report_.best = saved.at("best");
    report_.loss = saved.at("loss");
    report_.seconds = saved.at("seconds");
    model_.LoadWeights(FileOf("model"));
    optimizer_.Load(FileOf("moments"), report_.step);
  }

  RecallPoint point_;
  fs::path directory_;
  model::Config config_;
  MqarGenerator training_, validation_;
  nn::LanguageModel model_;
  train::AdamW optimizer_;
  RecallReport report_;
};

}  // namespace

std::string RecallPoint::Name() const {
  std::string name =
      StrCat(mixer, "-L", task.length, "-kv", task.pairs, "-d", width, "-lr", lr, "-seed", task.seed);
  for (const std::string& assignment : set) name += "-" + assignment;
  return name;
}

std::string RecallPoint::Settings() const {
  nlohmann::ordered_json settings = {{"mixer", mixer},        {"width", width},
                                     {"layers", layers},      {"lr", lr},
                                     {"batch", batch},        {"epochs", epochs},
                                     {"examples", examples},  {"valid_examples", valid_examples},
                                     {"stop_at", stop_at},    {"vocab", task.vocab},
                                     {"length", task.length}, {"pairs", task.pairs},
                                     {"power", task.power},   {"noise", task.noise},
                                     {"seed", task.seed}};
  if (!set.empty()) settings["set"] = set;
  return settings.dump();
}

RecallReport TrainRecall(const RecallPoint& point, const fs::path& directory,
                         const std::function<bool(const RecallReport&)>& progress) {
  RecallTrainer trainer(point, directory);
  while (!trainer.Done()) {
    if (trainer.Epoch(progress)) continue;
    RecallReport report = trainer.report();
    report.stopped = true;
    return report;
  }
  io::RemoveTree(directory);
  return trainer.report();
}

}  // namespace lattice::recall
