#include "train/checkpoint.h"

#include <unistd.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/error.h"
#include "data/checksum.h"
#include "io/file.h"
#include "io/json.h"
#include "model/checkpoint.h"
#include "model/keys.h"
#include "train/run_directory.h"
#include "train/saved_states.h"

namespace lattice::train {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTrainerFile = "trainer.json";
constexpr std::string_view kOptimizerFile = "optimizer.safetensors";
constexpr std::string_view kStatesFile = "states.safetensors";
constexpr std::string_view kTemporary = ".saving-";
constexpr int64_t kFormat = 1;

// As text: JSON numbers of other programs are not exact beyond 53 bits.
std::string FileChecksum(const fs::path& path) {
  return std::to_string(data::Checksum(io::MappedFile(path).bytes()));
}

nlohmann::ordered_json ToJson(const TrainerState& state) {
  return {{"format", kFormat},        {"step", state.step},
          {"updates", state.updates}, {"tokens", state.tokens},
          {"skipped", state.skipped}, {"skipped_in_a_row", state.skipped_in_a_row},
          {"elapsed", state.elapsed}, {"precision", state.precision},
          {"threads", state.threads}, {"data", state.data}};
}

void WriteTrainerState(const fs::path& directory, const TrainerState& state) {
  nlohmann::ordered_json object = ToJson(state);
  for (const auto& entry : fs::directory_iterator(directory)) {
    object["checksums"][entry.path().filename().string()] = FileChecksum(entry.path());
  }
  io::WriteFileAtomic(directory / kTrainerFile, object.dump(2) + "\n");
}

void PointLatestAt(const fs::path& checkpoints, const fs::path& name) {
  const fs::path link = checkpoints / StrCat(kTemporary, kLatest);
  fs::remove(link);
  fs::create_directory_symlink(name, link);
  fs::rename(link, checkpoints / kLatest);
  io::SyncDirectory(checkpoints);
}

}  // namespace

fs::path SaveCheckpoint(const fs::path& run, const CheckpointParts& parts) {
  const fs::path checkpoints = run / kCheckpoints;
  const std::string name = StrCat("step-", parts.trainer.step);
  const fs::path temporary = checkpoints / StrCat(kTemporary, name, "-", ::getpid());
  try {
    fs::remove_all(temporary);
    io::MakeDirectories(temporary);
    io::WriteFileAtomic(temporary / model::kConfigFile, model::ModelToJson(parts.model.config()));
    parts.model.SaveWeights(temporary / model::kWeightsFile, {{"format", "pt"}});
    text::SaveTokenizer(parts.tokenizer, temporary);
    parts.optimizer.Save(temporary / kOptimizerFile);
    if (!parts.states.empty()) SaveStates(temporary / kStatesFile, parts.states);
    WriteTrainerState(temporary, parts.trainer);
    io::SyncDirectory(temporary);

    fs::remove_all(checkpoints / name);
    fs::rename(temporary, checkpoints / name);
    io::SyncDirectory(checkpoints);
    PointLatestAt(checkpoints, name);
  } catch (const fs::filesystem_error& error) {
    std::error_code ignored;
    fs::remove_all(temporary, ignored);
    Fail("[checkpoint] cannot save ", (checkpoints / name).string(), ": ", error.code().message());
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(temporary, ignored);
    throw;
  }
  return checkpoints / name;
}

void PruneCheckpoints(const fs::path& run, int64_t keep_last, int64_t keep_every) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(run / kCheckpoints, ignored)) {
    if (entry.path().filename().string().starts_with(kTemporary)) fs::remove_all(entry.path(), ignored);
  }
  const auto found = ListCheckpoints(run);
  for (size_t i = 0; i + static_cast<size_t>(keep_last) < found.size(); ++i) {
    const auto& [step, path] = found[i];
    if (keep_every == 0 || step % keep_every != 0) fs::remove_all(path, ignored);
  }
}

TrainerState ReadTrainerState(const fs::path& checkpoint) {
  const std::string source = (checkpoint / kTrainerFile).string();
  Check(fs::is_regular_file(source), "[resume] ", checkpoint.string(), " holds a model but no ", kTrainerFile,
        ", so training cannot go on from it");
  const nlohmann::json object = io::ReadJson(source);
  const auto format = io::GetJson<int64_t>(object, "format", source);
  Check(format == kFormat, "[resume] ", source, " has format ", format, "; this program reads format ",
        kFormat);
  Check(object.contains("checksums") && object["checksums"].is_object(), "[resume] ", source,
        " has no checksums");
  for (const auto& [name, sum] : object["checksums"].items()) {
    const fs::path path = checkpoint / name;
    Check(name.find('/') == std::string::npos && fs::is_regular_file(path), "[resume] ", path.string(),
          " is missing");
    Check(sum == FileChecksum(path), "[resume] ", path.string(),
          " is damaged (checksum); resume from an older checkpoint of the run");
  }
  TrainerState state;
  state.step = io::GetJson<int64_t>(object, "step", source);
  state.updates = io::GetJson<int64_t>(object, "updates", source);
  state.tokens = io::GetJson<int64_t>(object, "tokens", source);
  state.skipped = io::GetJson<int64_t>(object, "skipped", source);
  state.skipped_in_a_row = io::GetJson<int64_t>(object, "skipped_in_a_row", source);
  state.elapsed = io::GetJson<double>(object, "elapsed", source);
  state.precision = io::GetJson<std::string>(object, "precision", source);
  state.threads = io::GetJson<int64_t>(object, "threads", source);
  state.data = io::GetJson<std::string>(object, "data", source);
  return state;
}

void CheckSameModel(const fs::path& checkpoint, const model::ModelConfig& config) {
  model::Config theirs, ours;
  theirs.model = model::ReadModelConfig(checkpoint);
  ours.model = config;
  for (const model::Key& key : model::Keys()) {
    const model::Value their = key.get(theirs), our = key.get(ours);
    if (key.section != "model" || their == our) continue;
    const auto text = [](const auto& value) { return StrCat(value); };
    Fail("[resume] ", checkpoint.string(), " is of another architecture: its model.", key.name, " is ",
         std::visit(text, their), " but this run asks for ", std::visit(text, our),
         "; resume without changing [model], or start a new run");
  }
}

void LoadCheckpoint(const fs::path& checkpoint, const TrainerState& trainer, nn::LanguageModel& model,
                    AdamW& optimizer, std::vector<nn::States>& states) {
  CheckSameModel(checkpoint, model.config());
  model.LoadWeights(checkpoint / model::kWeightsFile);
  optimizer.Load(checkpoint / kOptimizerFile, trainer.updates);
  states.clear();
  if (fs::is_regular_file(checkpoint / kStatesFile)) states = LoadStates(checkpoint / kStatesFile);
}

}  // namespace lattice::train
