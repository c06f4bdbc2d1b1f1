// The table of all configuration keys: section, name, type, limits, member and help, one line each.
#include "model/keys.h"

#include <iterator>
#include <limits>
#include <type_traits>

#include "base/error.h"
#include "kernels/registry.h"

namespace lattice::model {
namespace {

// The words of each enumeration, in its order.
template <typename E>
struct Words;
template <>
struct Words<VectorNorm> {
  static constexpr std::string_view kList[] = {"none", "l2", "scale", "rms"};
};
template <>
struct Words<Activation> {
  static constexpr std::string_view kList[] = {"none", "silu"};
};
template <>
struct Words<BlockKind> {
  static constexpr std::string_view kList[] = {"paper", "attention"};
};
template <>
struct Words<OutputGate> {
  static constexpr std::string_view kList[] = {"none", "sigmoid"};
};
template <>
struct Words<StateInit> {
  static constexpr std::string_view kList[] = {"auto", "sphere", "normal", "zeros", "aligned"};
};
template <>
struct Words<Normalize> {
  static constexpr std::string_view kList[] = {"token", "chunk", "none"};
};
template <>
struct Words<Method> {
  static constexpr std::string_view kList[] = {"exact", "linear1", "linear2"};
};
template <>
struct Words<RopeType> {
  static constexpr std::string_view kList[] = {"default", "linear", "llama3"};
};
template <>
struct Words<Precision> {
  static constexpr std::string_view kList[] = {"auto", "fp32", "bf16"};
};
template <>
struct Words<SpikePolicy> {
  static constexpr std::string_view kList[] = {"off", "skip", "rollback"};
};

template <typename Part>
struct Section;
template <>
struct Section<ModelConfig> {
  static constexpr std::string_view kName = "model";
  static constexpr auto kPart = &Config::model;
};
template <>
struct Section<TrainConfig> {
  static constexpr std::string_view kName = "train";
  static constexpr auto kPart = &Config::train;
};
template <>
struct Section<DataConfig> {
  static constexpr std::string_view kName = "data";
  static constexpr auto kPart = &Config::data;
};

// Access to one member of one part of the config.
template <auto kMember>
struct Access;
template <typename Part, typename T, T Part::*kMember>
struct Access<kMember> {
  using Type = T;
  static constexpr std::string_view kSection = Section<Part>::kName;

  static Value Get(const Config& config) {
    const T& member = config.*Section<Part>::kPart.*kMember;
    if constexpr (std::is_enum_v<T>) {
      return std::string(Words<T>::kList[static_cast<int>(member)]);
    } else {
      return member;
    }
  }

  static void Set(Config& config, const Value& value) {
    T& member = config.*Section<Part>::kPart.*kMember;
    if constexpr (std::is_enum_v<T>) {
      const auto& word = std::get<std::string>(value);
      for (size_t i = 0; i < std::size(Words<T>::kList); ++i) {
        if (Words<T>::kList[i] == word) member = static_cast<T>(i);
      }
    } else {
      member = std::get<T>(value);
    }
  }

  static std::span<const std::string_view> Choices() { return Words<T>::kList; }
};

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// An upper limit of sizes that no machine reaches; it keeps products of sizes far from overflow.
constexpr double kMost = 1 << 24;
constexpr double kMostTokens = 1e15;

struct Range {
  double min = -kInfinity;
  double max = kInfinity;
};
constexpr Range kPositive = {1, kMost};
constexpr Range kCount = {0, kMost};
constexpr Range kNotNegative = {0, kInfinity};

template <auto kMember>
constexpr Key Option(std::string_view name, std::string_view help, Range range = {}) {
  using A = Access<kMember>;
  using T = typename A::Type;
  Key key = {A::kSection, name, help, KeyType::kText, range.min, range.max, nullptr, &A::Get, &A::Set};
  if constexpr (std::is_same_v<T, bool>) key.type = KeyType::kBool;
  if constexpr (std::is_same_v<T, int64_t>) key.type = KeyType::kInteger;
  if constexpr (std::is_same_v<T, double>) key.type = KeyType::kNumber;
  if constexpr (std::is_enum_v<T>) {
    key.type = KeyType::kChoice;
    key.choices = &A::Choices;
  }
  return key;
}

constexpr Key WithChoices(Key key, std::span<const std::string_view> (*choices)(), std::string_view hint,
                          std::string_view suffix) {
  key.type = KeyType::kChoice;
  key.choices = choices;
  key.hint = hint;
  key.suffix = suffix;
  return key;
}

constexpr Key Added(Key key) {
  key.added = true;
  return key;
}

using Model = ModelConfig;
using Train = TrainConfig;
using Data = DataConfig;

constexpr Key kKeys[] = {
    WithChoices(Option<&Model::mixer>("mixer", "the sequence memory of every block"), &kernels::MemoryNames,
                "; a memory of your own comes with --plugin", kWindowSuffix),
    Added(Option<&Model::mixers>(
        "mixers", "the mixers of the layers instead, separated by commas and repeated; empty: all as mixer")),
    Option<&Model::vocab_size>("vocab_size", "number of token ids; 0: that of the tokenizer", kCount),
    Option<&Model::layers>("layers", "number of blocks", {1, 4096}),
    Option<&Model::width>("width", "model width C", {1, 65536}),
    Option<&Model::heads>("heads", "heads H; must divide width", {1, 65536}),
    Added(Option<&Model::kv_heads>("kv_heads", "heads of keys and values in attention; 0: as many as heads",
                                   {0, 65536})),
    Option<&Model::slots>("slots", "memory slots M per head; 0: the head width C/H", {0, 65536}),
    Option<&Model::hidden>("hidden", "width inside the SwiGLU; 0: 8/3 C rounded up to 16", {0, 1 << 20}),
    Option<&Model::conv_width>("conv_width", "tokens seen by the short convolutions", {1, 64}),
    Option<&Model::tie_embedding>("tie_embedding", "the head shares the embedding's weights"),
    Option<&Model::norm_eps>("norm_eps", "epsilon of RMSNorm and LayerNorm", {1e-12, 1}),
    Option<&Model::qk_norm>(
        "qk_norm", "normalisation of q and k: to length 1, divided by sqrt(M), or to length sqrt(M)"),
    Option<&Model::v_norm>("v_norm",
                           "normalisation of v: to length 1, divided by sqrt(D), or to length sqrt(D)"),
    Option<&Model::conv_activation>("conv_activation", "activation after the convolutions of q, k and v"),
    Option<&Model::normalize>("normalize", "normalisation of the slots (lattice mixers)"),
    Option<&Model::method>("method", "the exact recurrence, or a chunk approximation (lattice mixers)"),
    Option<&Model::chunk>("chunk", "tokens per chunk of the approximations", {1, 65536}),
    Option<&Model::sweeps>("sweeps", "sweeps that refine linear2; 1 is linear2 itself", {1, 65536}),
    Option<&Model::lam>("lam", "l1 shrinkage of the slots, times gamma (lattice mixers)", kNotNegative),
    Option<&Model::gamma_bias>("gamma_bias", "initial bias of the write gate (mlstm: input gate)"),
    Option<&Model::mu_bias>("mu_bias", "initial bias of the forget gate"),
    Option<&Model::state_init>("state_init",
                               "initial S0; auto: unit slots where zero is invalid, else zeros; "
                               "aligned: all slots are one unit vector"),
    Option<&Model::init_std>("init_std", "standard deviation of initial matrices", {0, 10}),
    Option<&Model::rope_period>(
        "rope_period", "rotary positions in q and k of a recurrent mixer, modulo this; 0: none", kCount),
    Option<&Model::rope_theta>("rope_theta", "base of the rotary frequencies", {1, 1e9}),
    Added(
        Option<&Model::rope_type>("rope_type", "rotary positions slowed down: not, all, or long waves only")),
    Added(Option<&Model::rope_factor>("rope_factor", "by this factor", {1, 1e6})),
    Added(Option<&Model::rope_low>("rope_low", "llama3: long waves turn less often than this in rope_context",
                                   {1e-6, 1e6})),
    Added(Option<&Model::rope_high>(
        "rope_high", "llama3: short waves turn more often than this in rope_context", {1e-6, 1e6})),
    Added(Option<&Model::rope_context>("rope_context", "llama3: tokens of context before slowing down",
                                       kPositive)),
    Added(
        Option<&Model::block>("block",
                              "the block around a memory: the paper's, or that of attention (q, k, v and out "
                              "alone)")),
    Added(Option<&Model::output_gate>("output_gate", "gate before out in memory layers of block attention")),
    Added(Option<&Model::window>("window", "last tokens that a layer with +window attends to", {1, 65536})),
    Added(Option<&Model::sinks>("sinks", "first tokens that a layer with +window always sees", {0, 65536})),
    Added(Option<&Model::share_bias>(
        "share_bias", "initial bias of the memory's share beside a window (block attention)", {-30, 30})),

    Option<&Train::steps>("steps", "optimizer steps", {1, 1e12}),
    Option<&Train::batch_tokens>("batch_tokens", "tokens per step", {1, 1e12}),
    Option<&Train::seq_len>("seq_len", "tokens per sequence T", kPositive),
    Option<&Train::micro_batch>("micro_batch", "sequences in memory at once; 0: chosen to fit", kCount),
    Option<&Train::lr>("lr", "peak learning rate", kNotNegative),
    Option<&Train::min_lr>("min_lr", "learning rate at the end of the cosine", kNotNegative),
    Option<&Train::warmup>("warmup", "steps of linear warm-up", {0, 1e12}),
    Option<&Train::weight_decay>("weight_decay", "AdamW decay; not on norms, biases, gates and S0",
                                 kNotNegative),
    Option<&Train::clip>("clip", "largest norm of the gradient; 0: no clipping", kNotNegative),
    Option<&Train::beta1>("beta1", "AdamW decay of the first moment", {0, 0.9999999}),
    Option<&Train::beta2>("beta2", "AdamW decay of the second moment", {0, 0.9999999}),
    Option<&Train::adam_eps>("adam_eps", "AdamW epsilon", {1e-30, 1}),
    Option<&Train::seed>("seed", "seed of initial weights and of the data order", {0, 9e15}),
    Option<&Train::precision>("precision", "matrix products; auto: bf16 where the CPU has it"),
    Option<&Train::recompute>("recompute",
                              "recompute activations in the backward pass: less memory, more time"),
    Option<&Train::carry_state>("carry_state",
                                "carry states over consecutive segments (truncated backpropagation)"),
    Option<&Train::sequence_ranks>(
        "sequence_ranks", "ranks that share each sequence, a piece each (docs/scaling.md)", {1, 4096}),
    Option<&Train::log_every>("log_every", "steps between lines of metrics", kPositive),
    Option<&Train::eval_every>("eval_every", "steps between validations; 0: only at the end", kCount),
    Option<&Train::eval_tokens>("eval_tokens", "validation tokens; 0: all", {0, kMostTokens}),
    Option<&Train::save_every>("save_every", "steps between checkpoints; 0: only at the end", kCount),
    Option<&Train::keep_last>("keep_last", "newest checkpoints kept", kPositive),
    Option<&Train::keep_every>("keep_every", "also keep checkpoints at multiples of this step; 0: none",
                               kCount),
    Option<&Train::save_patience>(
        "save_patience", "seconds to go on trying when the last checkpoint cannot be written", kNotNegative),
    Option<&Train::max_skipped>("max_skipped", "stop after this many skipped steps in a row", kPositive),
    Option<&Train::spike>("spike", "a loss far above its recent mean: skip the step, or go back and around"),
    Option<&Train::spike_z>("spike_z", "how far: in standard deviations of the recent losses", {1, 1e6}),

    Option<&Data::train>("train", "text file or shard directory to train on"),
    Option<&Data::valid>("valid", "validation text or shards; empty: split off the training data"),
    Option<&Data::valid_fraction>("valid_fraction", "part of the training data held out when valid is empty",
                                  {0, 0.5}),
    Option<&Data::tokenizer>("tokenizer",
                             "bytes, a SentencePiece .model, or a directory with tokenizer files"),
    Option<&Data::split_documents>("split_documents", "a line <|endoftext|> is the end-of-text token"),
    Option<&Data::reset_state>("reset_state", "start every document from S0"),
    Option<&Data::shuffle>("shuffle", "visit the training data in random order"),
};

template <typename E>
E Named(std::string_view what, std::string_view word) {
  std::string choices;
  for (size_t i = 0; i < std::size(Words<E>::kList); ++i) {
    if (Words<E>::kList[i] == word) return static_cast<E>(i);
    choices += StrCat(i == 0 ? "" : ", ", Words<E>::kList[i]);
  }
  Fail("[config] ", what, " is \"", word, "\"; the choices are: ", choices);
}

constexpr std::string_view kSections[] = {"model", "train", "data"};

}  // namespace

VectorNorm VectorNormNamed(std::string_view word) {
  return Named<VectorNorm>("a normalisation of vectors", word);
}
Activation ActivationNamed(std::string_view word) { return Named<Activation>("an activation", word); }

std::span<const Key> Keys() { return kKeys; }
std::span<const std::string_view> Sections() { return kSections; }

const Key* FindKey(std::string_view section, std::string_view name) {
  for (const Key& key : kKeys) {
    if (key.section == section && key.name == name) return &key;
  }
  return nullptr;
}

}  // namespace lattice::model
