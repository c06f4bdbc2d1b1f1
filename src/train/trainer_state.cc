// Reads and writes trainer.json, and verifies the checksums in it.
#include "train/trainer_state.h"

#include <nlohmann/json.hpp>
#include <type_traits>

#include "base/error.h"
#include "io/file.h"
#include "io/json.h"
#include "io/sealed_json.h"
#include "model/checkpoint.h"

namespace lattice::train {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kFormat = 2;

// Calls visit(name, member) for every member of the state; reading and writing share this list.
template <typename State, typename Visit>
void EachMember(State& state, Visit&& visit) {
  visit("step", state.step);
  visit("updates", state.updates);
  visit("tokens", state.tokens);
  visit("data_offset", state.data_offset);
  visit("skipped", state.skipped);
  visit("skipped_in_a_row", state.skipped_in_a_row);
  visit("rollbacks", state.rollbacks);
  visit("loss_mean", state.losses.mean);
  visit("loss_variance", state.losses.variance);
  visit("loss_count", state.losses.count);
  visit("elapsed", state.elapsed);
  visit("precision", state.precision);
  visit("threads", state.threads);
  visit("data", state.data);
}

void CheckFiles(const fs::path& checkpoint, const nlohmann::json& checksums) {
  for (const auto& [name, sum] : checksums.items()) {
    const fs::path path = checkpoint / name;
    Check(name.find('/') == std::string::npos && fs::is_regular_file(path), "[resume] ", path.string(),
          " is missing");
    Check(sum == std::to_string(io::FileChecksum(path)), "[resume] ", path.string(),
          " is damaged (checksum); resume from an older checkpoint of the run");
  }
}

}  // namespace

void WriteTrainerState(const fs::path& directory, const TrainerState& state, const Checksums& checksums) {
  nlohmann::json object = {{"format", kFormat}, {"checksums", nlohmann::json::object()}};
  EachMember(state, [&](const char* name, const auto& value) { object[name] = value; });
  // As strings, because other programs read JSON numbers with only 53 exact bits.
  for (const auto& [name, sum] : checksums) object["checksums"][name] = std::to_string(sum);
  io::WriteSealedJson(directory / model::kTrainerFile, std::move(object));
}

TrainerState ReadTrainerState(const fs::path& checkpoint, bool verify) {
  const std::string source = (checkpoint / model::kTrainerFile).string();
  Check(fs::is_regular_file(source), "[resume] ", checkpoint.string(), " holds a model but no ",
        model::kTrainerFile, ", so training cannot go on from it");
  const nlohmann::json object = io::ReadSealedJson(source);
  const auto format = io::GetJson<int64_t>(object, "format", source);
  Check(format == kFormat, "[resume] ", source, " has format ", format, "; this program reads format ",
        kFormat, "; go on with the version of Lattice that wrote it");
  Check(object.contains("checksums") && object["checksums"].is_object(), "[resume] ", source,
        " has no checksums");
  if (verify) CheckFiles(checkpoint, object["checksums"]);
  TrainerState state;
  EachMember(state, [&](const char* name, auto& value) {
    value = io::GetJson<std::remove_reference_t<decltype(value)>>(object, name, source);
  });
  return state;
}

}  // namespace lattice::train
