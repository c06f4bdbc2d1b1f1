// Parses TOML configurations and overrides, and validates what single keys cannot.
#include "model/config.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "base/error.h"
#include "io/file.h"
#include "io/project_files.h"
#include "io/toml.h"
#include "kernels/registry.h"
#include "model/keys.h"

namespace lattice::model {

namespace fs = std::filesystem;

namespace {

std::string Place(std::string_view source, int line, int column) {
  return StrCat(source, ":", line, ":", column);
}

// The words of `list`, which commas separate, without the spaces around them.
std::vector<std::string> SplitList(std::string_view list) {
  std::vector<std::string> words;
  while (true) {
    const size_t comma = list.find(',');
    std::string_view word = list.substr(0, comma);
    while (word.starts_with(' ')) word.remove_prefix(1);
    while (word.ends_with(' ')) word.remove_suffix(1);
    words.emplace_back(word);
    if (comma == std::string_view::npos) return words;
    list.remove_prefix(comma + 1);
  }
}

void ValidateBlock(const ModelConfig& layer) {
  const kernels::Memory& memory = kernels::FindMemory(layer.mixer);
  const bool joined = layer.block == BlockKind::kAttention && !memory.attention;
  Check(layer.window == 0 || layer.block == BlockKind::kAttention, "[config] ", layer.mixer, kWindowSuffix,
        " needs model.block = \"attention\": the window and the memory share q, k and v");
  Check(!joined || layer.Slots() == layer.HeadDim(), "[config] model.slots is ", layer.Slots(),
        " but a memory in a block of attention has as many slots as a head has features, ", layer.HeadDim(),
        "; set model.slots to 0");
  Check(!joined || (!memory.step_scales_values && !memory.skip && !memory.conv_v), "[config] ", layer.mixer,
        " has convolutions and steps of its own, for which a block of attention has no place; use it with "
        "model.block = \"paper\"");
  Check(
      !joined || layer.rope_period == 0,
      "[config] model.rope_period is for the paper's block; in a block of attention positions do not repeat");
}

void ValidateMixer(const ModelConfig& model) {
  const kernels::Memory& memory = kernels::FindMemory(model.mixer);
  const bool lattice = memory.objective.has_value();
  Check(lattice || model.method == Method::kExact,
        "[config] model.method can be chosen for lattice mixers only; ", model.mixer,
        " needs method = \"exact\"");
  Check(memory.Shrinks() || model.lam == 0, "[config] model.lam is for lattice mixers only; ", model.mixer,
        " needs lam = 0");
  Check(model.method != Method::kExact || model.chunk == 1, "[config] model.chunk is ", model.chunk,
        " but the exact recurrence has no chunks; set model.method to linear1 or linear2, or chunk to 1");
  Check(model.method != Method::kExact || model.normalize != Normalize::kChunk,
        "[config] model.normalize = \"chunk\" needs method linear1 or linear2; with the exact recurrence use "
        "token");
  Check(model.sweeps == 1 || model.method == Method::kLinear2, "[config] model.sweeps is ", model.sweeps,
        " but sweeps refine linear2 only; set model.method to linear2, or sweeps to 1");
  Check(model.lam == 0 || model.method == Method::kExact,
        "[config] model.lam needs the exact recurrence; set model.method to exact, or lam to 0");
  Check(memory.zeros == kernels::ZeroStart::kValid || model.state_init != StateInit::kZeros, "[config] ",
        model.mixer,
        " cannot start from a zero state; set model.state_init to sphere, aligned, normal or auto");
}

void ValidateRope(const ModelConfig& model) {
  const bool attention = kernels::FindMemory(model.mixer).attention || model.block == BlockKind::kAttention;
  const int64_t rotated = attention ? model.HeadDim() : model.Slots();
  Check(!(attention || model.rope_period > 0) || rotated % 2 == 0,
        "[config] rotary positions need an even number of ", attention ? "features per head" : "slots",
        ", got ", rotated);
  Check(model.rope_type != RopeType::kLlama3 || model.rope_high > model.rope_low,
        "[config] model.rope_high = ", model.rope_high, " must exceed model.rope_low = ", model.rope_low);
  Check(model.rope_type != RopeType::kDefault || model.rope_factor == 1,
        "[config] model.rope_factor = ", model.rope_factor, " needs model.rope_type linear or llama3");
}

// Resolves `name`: an existing path, a path in the project's tree such as configs/small.toml, or the name of
// a configuration of the project, such as small. The last two work from any directory.
fs::path FindConfig(const fs::path& name) {
  const auto is_file = [](const fs::path& path) { return fs::exists(path) && !fs::is_directory(path); };
  if (is_file(name)) return name;
  if (name.is_relative()) {
    const fs::path in_tree = name.has_parent_path() ? name : "configs" / name;
    for (const char* suffix : {"", ".toml"}) {
      const fs::path found = io::FindProjectFile(in_tree.string() + suffix);
      if (is_file(found)) return found;
    }
  }
  Fail("[config] ", name.string(),
       ": No such file; pass the path of one, or the name of one that comes with the project, such as tiny "
       "or 110m");
}

}  // namespace

std::string ModelConfig::MixerOf(int64_t layer) const {
  if (mixers.empty()) return mixer;
  const std::vector<std::string> words = SplitList(mixers);
  return words[static_cast<size_t>(layer) % words.size()];
}

ModelConfig ModelConfig::Layer(int64_t layer) const {
  ModelConfig out = *this;
  out.mixer = MixerOf(layer);
  out.mixers.clear();
  if (out.mixer.ends_with(kWindowSuffix)) {
    out.mixer.resize(out.mixer.size() - kWindowSuffix.size());
  } else {
    out.window = out.sinks = 0;
  }
  return out;
}

bool ModelConfig::HasMemory(int64_t layer) const {
  const std::string name = MixerOf(layer);
  const size_t suffix = name.ends_with(kWindowSuffix) ? kWindowSuffix.size() : 0;
  return !kernels::FindMemory(std::string_view(name).substr(0, name.size() - suffix)).attention;
}

bool ModelConfig::HasMemory() const {
  for (int64_t i = 0; i < layers; ++i) {
    if (HasMemory(i)) return true;
  }
  return false;
}

bool ModelConfig::KeepsAll(int64_t layer) const {
  return !HasMemory(layer) && !MixerOf(layer).ends_with(kWindowSuffix);
}

bool ModelConfig::Grows() const {
  for (int64_t i = 0; i < layers; ++i) {
    if (KeepsAll(i)) return true;
  }
  return false;
}

Config ParseConfig(std::string_view toml, std::string_view source) {
  const io::TomlDocument document = io::ParseToml(toml, source);
  for (const io::TomlSection& section : document.sections) {
    RequireSection(section.name, Place(source, section.line, section.column));
  }
  Config config;
  for (const io::TomlSetting& setting : document.settings) {
    const std::string place = Place(source, setting.line, setting.column);
    Check(!setting.section.empty(), "[config] ", place, ": the key \"", setting.key,
          "\" stands outside of [model], [train] and [data]");
    const Key& key = RequireKey(setting.section, setting.key, place);
    key.set(config, CheckValue(key, setting.value, place));
  }
  return config;
}

void Override(Config& config, std::string_view assignment) {
  const size_t equals = assignment.find('=');
  const std::string_view name = assignment.substr(0, equals);
  const size_t dot = name.find('.');
  Check(equals != std::string_view::npos && dot != std::string_view::npos, "[config] cannot read \"",
        assignment, "\"; expected section.key=value, such as train.steps=1000");
  const Key& key = RequireKey(name.substr(0, dot), name.substr(dot + 1), assignment);
  key.set(config, ParseValue(key, assignment.substr(equals + 1), assignment));
}

void Validate(const ModelConfig& model) {
  Check(model.width % model.heads == 0, "[config] model.heads = ", model.heads,
        " does not divide model.width = ", model.width);
  Check(model.heads % model.KvHeads() == 0, "[config] model.kv_heads = ", model.kv_heads,
        " does not divide model.heads = ", model.heads);
  std::set<std::string> seen;
  for (int64_t i = 0; i < model.layers; ++i) {
    if (!seen.insert(model.MixerOf(i)).second) continue;
    const ModelConfig layer = model.Layer(i);
    // Attention beside memories has none of the options of memories.
    if (model.HasMemory(i) || !model.HasMemory()) ValidateMixer(layer);
    ValidateBlock(layer);
    ValidateRope(layer);
  }
}

void Validate(const Config& config) {
  Validate(config.model);
  Check(config.train.batch_tokens >= config.train.seq_len,
        "[config] train.batch_tokens = ", config.train.batch_tokens,
        " is less than one sequence of train.seq_len = ", config.train.seq_len);
}

Config LoadConfig(const fs::path& path, std::span<const std::string> overrides, bool validate) {
  Config config;
  if (!path.empty()) {
    const fs::path found = FindConfig(path);
    config = ParseConfig(io::ReadFile(found, kMaxConfigBytes), found.string());
  }
  for (const std::string& assignment : overrides) Override(config, assignment);
  if (validate) Validate(config);
  return config;
}

std::string ToToml(const Config& config) {
  std::ostringstream out;
  for (const std::string_view section : Sections()) {
    out << (section == Sections().front() ? "[" : "\n[") << section << "]\n";
    for (const Key& key : Keys()) {
      if (key.section != section) continue;
      std::string line = StrCat(key.name, " = ", io::FormatToml(key.get(config)));
      line.resize(std::max<size_t>(line.size(), 32), ' ');
      out << line << "  # " << key.help << "\n";
    }
  }
  return out.str();
}

std::string ConfigHelp() {
  const Config defaults;
  std::ostringstream out;
  for (const Key& key : Keys()) {
    std::string name = StrCat("  ", key.section, ".", key.name, " = ", io::FormatToml(key.get(defaults)));
    name.resize(std::max<size_t>(name.size(), 38), ' ');
    out << name << "  " << key.help << " (" << TypeText(key) << ")\n";
  }
  return out.str();
}

}  // namespace lattice::model
