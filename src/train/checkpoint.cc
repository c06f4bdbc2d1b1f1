// Writes, prunes and loads checkpoint directories. A checkpoint is complete under its name or not there at
// all.
#include "train/checkpoint.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <unistd.h>

#include <system_error>

#include "base/error.h"
#include "io/directory.h"
#include "io/file.h"
#include "model/checkpoint.h"
#include "model/keys.h"
#include "runs/run_directory.h"
#include "train/saved_states.h"
#include "train/trainer_state.h"

namespace lattice::train {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOptimizerFile = "optimizer.safetensors";
constexpr std::string_view kStatesFile = "states.safetensors";
constexpr std::string_view kTemporary = ".saving-";

// Copies `from` into `to`, reusing tensors of the same name and shape.
void CopyInto(NamedTensors& to, const NamedTensors& from) {
  c10::NoGradGuard no_grad;
  std::erase_if(to, [&](const auto& entry) { return !from.contains(entry.first); });
  for (const auto& [name, tensor] : from) {
    at::Tensor& copy = to[name];
    if (copy.defined() && copy.sizes() == tensor.sizes()) {
      copy.copy_(tensor);
    } else {
      copy = tensor.detach().to(at::kFloat, /*non_blocking=*/false, /*copy=*/true).contiguous();
    }
  }
}

NamedTensors WeightsOf(const nn::LanguageModel& model) {
  NamedTensors tensors;
  for (const nn::Parameter& parameter : model.parameters()) tensors[parameter.info.name] = parameter.value;
  return tensors;
}

void WriteFiles(const fs::path& directory, const Snapshot& snapshot) {
  io::WriteFileAtomic(directory / model::kConfigFile, model::ModelToJson(snapshot.config));
  text::SaveTokenizer(*snapshot.tokenizer, directory);
  Checksums checksums;
  for (const auto& entry : fs::directory_iterator(directory)) {
    checksums[entry.path().filename().string()] = io::FileChecksum(entry.path());
  }
  // The checksums of the large files are computed while writing, so that they need not be read again.
  const auto write = [&](std::string_view name, const NamedTensors& tensors, const io::Metadata& metadata) {
    checksums[std::string(name)] = WriteTensors(directory / name, tensors, metadata);
  };
  write(model::kWeightsFile, snapshot.weights, {{"format", "pt"}});
  write(kOptimizerFile, snapshot.moments, {});
  if (!snapshot.states.empty()) write(kStatesFile, snapshot.states, {});
  WriteTrainerState(directory, snapshot.trainer, checksums);
  io::SyncDirectory(directory);
}

// Renames the finished directory to its final name. An existing checkpoint of that name is moved aside first,
// and moved back if the rename fails.
void Publish(const fs::path& temporary, const fs::path& checkpoint) {
  fs::path replaced = temporary;
  replaced += "-replaced";
  const bool exists = fs::exists(checkpoint);
  if (exists) io::Rename(checkpoint, replaced);
  try {
    io::Rename(temporary, checkpoint);
  } catch (const Error&) {
    std::error_code ignored;
    if (exists) fs::rename(replaced, checkpoint, ignored);
    throw;
  }
  io::SyncDirectory(checkpoint.parent_path());
  if (exists) io::RemoveTree(replaced);
}

}  // namespace

void Snapshot::Take(const CheckpointParts& parts) {
  config = parts.model.config();
  tokenizer = &parts.tokenizer;
  trainer = parts.trainer;
  CopyInto(weights, WeightsOf(parts.model));
  CopyInto(moments, parts.optimizer.Moments());
  CopyInto(states, StateTensors(parts.states));
}

fs::path SaveCheckpoint(const fs::path& run, const Snapshot& snapshot) {
  const fs::path checkpoints = run / runs::kCheckpoints;
  const std::string name = StrCat("step-", snapshot.trainer.step);
  const fs::path temporary = checkpoints / StrCat(kTemporary, name, "-", ::getpid());
  io::RemoveTree(temporary);
  try {
    io::MakeDirectories(temporary);
    WriteFiles(temporary, snapshot);
    Publish(temporary, checkpoints / name);
    io::ReplaceLink(checkpoints / runs::kLatest, name);
  } catch (const fs::filesystem_error& error) {
    io::RemoveTree(temporary);
    Fail("[checkpoint] cannot save ", (checkpoints / name).string(), ": ", error.code().message());
  } catch (...) {
    io::RemoveTree(temporary);
    throw;
  }
  return checkpoints / name;
}

void PruneCheckpoints(const fs::path& run, int64_t keep_last, int64_t keep_every) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(run / runs::kCheckpoints, ignored)) {
    if (entry.path().filename().string().starts_with(kTemporary)) io::RemoveTree(entry.path());
  }
  const auto found = runs::ListCheckpoints(run);
  for (size_t i = 0; i + static_cast<size_t>(keep_last) < found.size(); ++i) {
    const auto& [step, path] = found[i];
    if (keep_every > 0 && step % keep_every == 0) continue;
    // Renamed first, so that an interrupted removal leaves no partial checkpoint under a valid name.
    const fs::path doomed = run / runs::kCheckpoints / StrCat(kTemporary, "removed-", step);
    fs::rename(path, doomed, ignored);
    io::RemoveTree(doomed);
  }
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
