// Writes, prunes and loads checkpoint directories. A checkpoint is complete under its name or not there at
// all.
#include "train/checkpoint.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <unistd.h>

#include <algorithm>
#include <iomanip>
#include <sstream>
#include <system_error>

#include "base/error.h"
#include "io/directory.h"
#include "io/file.h"
#include "io/write_calls.h"
#include "model/checkpoint.h"
#include "model/keys.h"
#include "runs/run_directory.h"
#include "train/save_exchange.h"
#include "train/saved_states.h"
#include "train/trainer_state.h"

namespace lattice::train {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOptimizer = "optimizer";
constexpr std::string_view kStates = "states";
constexpr std::string_view kEnding = ".safetensors";
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

// optimizer.safetensors, or optimizer-00001-of-00004.safetensors.
std::string ShardName(std::string_view stem, const Shard& shard) {
  if (shard.ranks == 1) return StrCat(stem, kEnding);
  std::ostringstream name;
  name << stem << std::setfill('0') << '-' << std::setw(5) << shard.rank + 1 << "-of-" << std::setw(5)
       << shard.ranks << kEnding;
  return name.str();
}

// The files of all shards in a checkpoint, in order.
std::vector<fs::path> ShardsOf(const fs::path& checkpoint, std::string_view stem) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(checkpoint)) {
    const std::string name = entry.path().filename().string();
    if (name == ShardName(stem, {}) || (name.starts_with(StrCat(stem, "-")) && name.ends_with(kEnding)))
      found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

void WriteShard(const fs::path& directory, const Snapshot& snapshot, Checksums& checksums) {
  const auto write = [&](std::string_view stem, const NamedTensors& tensors) {
    const std::string name = ShardName(stem, snapshot.shard);
    checksums[name] = WriteTensors(directory / name, tensors, {});
  };
  write(kOptimizer, snapshot.moments);
  if (!snapshot.states.empty()) write(kStates, snapshot.states);
}

void WriteFiles(const fs::path& directory, const Snapshot& snapshot, SaveExchange* exchange) {
  io::WriteFileAtomic(directory / model::kConfigFile, model::ModelToJson(snapshot.config));
  text::SaveTokenizer(*snapshot.tokenizer, directory);
  Checksums checksums;
  for (const auto& entry : fs::directory_iterator(directory)) {
    checksums[entry.path().filename().string()] = io::FileChecksum(entry.path());
  }
  // Only now do the other ranks learn of the directory: what they write there, unfinished files among it, is not rank 0's.
  if (exchange != nullptr) exchange->Open(directory);
  // The checksums of the large files are computed while writing, so that they need not be read again.
  checksums[std::string(model::kWeightsFile)] =
      WriteTensors(directory / model::kWeightsFile, snapshot.weights, {{"format", "pt"}});
  WriteShard(directory, snapshot, checksums);
  if (exchange != nullptr) checksums.merge(exchange->Collect(directory));
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
    if (exists) io::CurrentWriteCalls().Rename(replaced.c_str(), checkpoint.c_str());
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
  shard = parts.shard;
  if (shard.rank == 0) CopyInto(weights, WeightsOf(parts.model));
  NamedTensors of_optimizer = parts.optimizer.Moments();
  if (parts.low_rank != nullptr) of_optimizer.merge(parts.low_rank->Tensors());
  CopyInto(moments, of_optimizer);
  CopyInto(states, StateTensors(parts.states, shard.first_micro));
}

namespace {

fs::path WriteCheckpoint(const fs::path& run, const Snapshot& snapshot, SaveExchange* exchange,
                         const std::function<void()>& before) {
  if (before) before();
  const fs::path checkpoints = run / runs::kCheckpoints;
  const std::string name = StrCat("step-", snapshot.trainer.step);
  const fs::path temporary = checkpoints / StrCat(kTemporary, name, "-", ::getpid());
  io::RemoveTree(temporary);
  try {
    io::MakeDirectories(temporary);
    WriteFiles(temporary, snapshot, exchange);
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

// The part of a rank other than 0.
fs::path DeliverShard(const Snapshot& snapshot, SaveExchange& exchange) {
  const fs::path directory = exchange.Directory();
  try {
    Checksums checksums;
    WriteShard(directory, snapshot, checksums);
    io::SyncDirectory(directory);
    exchange.Deliver(checksums);
  } catch (const Error& error) {
    exchange.Refuse(error.what());
  }
  return exchange.Result();
}

}  // namespace

fs::path SaveCheckpoint(const fs::path& run, const Snapshot& snapshot, SaveExchange* exchange,
                        const std::function<void()>& before) {
  if (exchange == nullptr) return WriteCheckpoint(run, snapshot, nullptr, before);
  exchange->Begin();
  if (snapshot.shard.rank != 0) return DeliverShard(snapshot, *exchange);
  try {
    fs::path checkpoint = WriteCheckpoint(run, snapshot, exchange, before);
    exchange->Close(checkpoint);
    return checkpoint;
  } catch (const std::exception& error) {
    exchange->Fail(error.what());
    throw;
  }
}

void PruneCheckpoints(const fs::path& run, int64_t keep_last, int64_t keep_every) {
  const fs::path checkpoints = run / runs::kCheckpoints;
  const auto found = runs::ListCheckpoints(run);
  for (size_t i = 0; i + static_cast<size_t>(keep_last) < found.size(); ++i) {
    const auto& [step, path] = found[i];
    if (keep_every > 0 && step % keep_every == 0) continue;
    // Renamed first, so that an interrupted removal leaves no partial checkpoint under a valid name.
    const fs::path doomed = checkpoints / StrCat(kTemporary, "removed-", step);
    io::CurrentWriteCalls().Rename(path.c_str(), doomed.c_str());
  }
  std::vector<fs::path> temporary;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(checkpoints, ignored)) {
    if (entry.path().filename().string().starts_with(kTemporary)) temporary.push_back(entry.path());
  }
  if (temporary.empty()) return;
  try {
    // The new names must be on disk before files are removed: a power loss would leave half a checkpoint under the
    // old one.
    io::SyncDirectory(checkpoints);
  } catch (const Error&) {
    return;  // the next call tries again
  }
  for (const fs::path& entry : temporary) io::RemoveTree(entry);
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
                    AdamW& optimizer, std::vector<nn::States>& states, LowRank* low_rank) {
  CheckSameModel(checkpoint, model.config());
  model.LoadWeights(checkpoint / model::kWeightsFile);
  if (low_rank != nullptr) low_rank->Load(ShardsOf(checkpoint, kOptimizer));
  optimizer.Load(ShardsOf(checkpoint, kOptimizer), trainer.updates);
  states = LoadStates(ShardsOf(checkpoint, kStates));
}

}  // namespace lattice::train
