// The configuration of a run: the model, its training and the data.
//
// It is a TOML file with the sections [model], [train] and [data]; each key may be overridden by
// "section.key=value". keys.cc has one line per key, which drives parsing, overriding, printing, help and
// JSON.
//
// Letters used throughout: H heads, M slots, D head width, C model width.
#ifndef LATTICE_MODEL_CONFIG_H_
#define LATTICE_MODEL_CONFIG_H_

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/problem.h"

namespace lattice::model {

// Larger files are refused: they cannot be configurations.
inline constexpr size_t kMaxConfigBytes = 1 << 20;

enum class VectorNorm { kNone, kL2, kScale, kRms };
enum class Activation { kNone, kSilu };
enum class BlockKind { kPaper, kAttention };
enum class OutputGate { kNone, kSigmoid };
enum class StateInit { kAuto, kSphere, kNormal, kZeros, kAligned };
using kernels::Normalize;
enum class RopeType { kDefault, kLinear, kLlama3 };
enum class Method { kExact, kLinear1, kLinear2 };
enum class Precision { kAuto, kFp32, kBf16 };
enum class SpikePolicy { kOff, kSkip, kRollback };

// The defaults of all three parts are those of configs/tiny.toml: a byte-level model that learns in minutes.
struct ModelConfig {
  // The mixer of every layer: a memory's name, with "+window" for attention over the last tokens beside it.
  std::string mixer = "lattice_dec";
  // The mixers of the layers instead, from the first layer on, separated by commas and repeated.
  std::string mixers;
  int64_t vocab_size = 0;
  int64_t layers = 3;
  int64_t width = 128;
  int64_t heads = 2;
  int64_t kv_heads = 0;
  int64_t slots = 0;
  int64_t hidden = 0;
  int64_t conv_width = 4;
  bool tie_embedding = true;
  double norm_eps = 1e-6;
  VectorNorm qk_norm = VectorNorm::kL2;
  VectorNorm v_norm = VectorNorm::kNone;
  Activation conv_activation = Activation::kNone;
  Normalize normalize = Normalize::kToken;
  Method method = Method::kExact;
  int64_t chunk = 1;
  int64_t sweeps = 1;
  double lam = 0;
  double gamma_bias = 0;
  double mu_bias = 4;
  StateInit state_init = StateInit::kAuto;
  double init_std = 0.02;
  int64_t rope_period = 0;
  double rope_theta = 10000;
  RopeType rope_type = RopeType::kDefault;
  double rope_factor = 1;
  double rope_low = 1;
  double rope_high = 4;
  int64_t rope_context = 8192;
  BlockKind block = BlockKind::kPaper;
  OutputGate output_gate = OutputGate::kNone;
  int64_t window = 64;
  int64_t sinks = 4;
  double share_bias = -2;

  // The config of one layer, as if it were the only one: `mixer` is the name of its memory, `mixers` is empty,
  // and `window` and `sinks` are 0 where the layer has no "+window".
  ModelConfig Layer(int64_t layer) const;
  // The mixer of a layer as the config names it.
  std::string MixerOf(int64_t layer) const;
  // All mixers in a few words: "lattice_dec", or "lattice_dec, lattice_dec, transformer" when layers differ.
  const std::string& MixerText() const { return mixers.empty() ? mixer : mixers; }
  // Whether this layer keeps every token, and whether some layer does: the state of a sequence then grows with its
  // length.
  bool KeepsAll(int64_t layer) const;
  bool Grows() const;
  // Whether some layer has a recurrent memory, and whether this one has.
  bool HasMemory() const;
  bool HasMemory(int64_t layer) const;

  // D. Meaningful once Validate() has accepted the config: heads divide width.
  int64_t HeadDim() const { return width / heads; }
  // Heads of keys and values in attention, each shared by Heads / KvHeads queries: `kv_heads`, or H when that
  // is 0.
  int64_t KvHeads() const { return kv_heads > 0 ? kv_heads : heads; }
  // M: `slots`, or D when that is 0.
  int64_t Slots() const { return slots > 0 ? slots : HeadDim(); }
  // Width inside the SwiGLU: `hidden`, or 8/3 C rounded up to a multiple of 16 when that is 0.
  int64_t Hidden() const { return hidden > 0 ? hidden : (8 * width + 47) / 48 * 16; }

  bool operator==(const ModelConfig&) const = default;
};

struct TrainConfig {
  int64_t steps = 1000;
  int64_t batch_tokens = 4096;
  int64_t seq_len = 512;
  int64_t micro_batch = 0;
  double lr = 6e-3;
  double min_lr = 3e-5;
  int64_t warmup = 50;
  double weight_decay = 0.1;
  double clip = 1.0;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double adam_eps = 1e-8;
  int64_t seed = 0;
  Precision precision = Precision::kAuto;
  bool recompute = false;
  bool carry_state = false;
  int64_t sequence_ranks = 1;
  int64_t log_every = 10;
  int64_t eval_every = 200;
  int64_t eval_tokens = 262144;
  int64_t save_every = 500;
  int64_t keep_last = 2;
  int64_t keep_every = 0;
  double save_patience = 300;
  int64_t max_skipped = 10;
  SpikePolicy spike = SpikePolicy::kSkip;
  double spike_z = 6;

  bool operator==(const TrainConfig&) const = default;
};

struct DataConfig {
  std::string train;
  std::string valid;
  double valid_fraction = 0.05;
  std::string tokenizer = "bytes";
  bool split_documents = true;
  bool reset_state = false;
  bool shuffle = true;

  bool operator==(const DataConfig&) const = default;
};

struct Config {
  ModelConfig model;
  TrainConfig train;
  DataConfig data;

  bool operator==(const Config&) const = default;
};

// Reads `path` (a file, the name of one in configs/, or empty for the defaults), applies `overrides` and
// validates, or leaves that to the caller, who has more to set.
Config LoadConfig(const std::filesystem::path& path, std::span<const std::string> overrides = {},
                  bool validate = true);

// Parses a configuration. It is not validated, so that overrides may follow. `source` names it in errors.
// Throws Error with source:line:column for an unknown section or key (naming the nearest), a value of the
// wrong type and a value out of range.
Config ParseConfig(std::string_view toml, std::string_view source);

// Applies one "section.key=value"; same errors.
void Override(Config& config, std::string_view assignment);

// Checks what involves several keys: heads divide width, the mixer supports the options. Throws Error that
// says what to change.
void Validate(const ModelConfig& model);
void Validate(const Config& config);

// All keys as TOML, one line each, with the key's help as a comment. Parses back to an equal config.
std::string ToToml(const Config& config);

// A table of all keys with type, default and meaning, for --help.
std::string ConfigHelp();

}  // namespace lattice::model

#endif  // LATTICE_MODEL_CONFIG_H_
