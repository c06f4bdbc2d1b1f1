// One sequence in progress: the recurrent state (or KV cache) after the tokens read so far.
#ifndef LATTICE_RUNTIME_SESSION_H_
#define LATTICE_RUNTIME_SESSION_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "runtime/model.h"
#include "runtime/state.h"

namespace lattice::io {
class Safetensors;
}

namespace lattice::runtime {

// The state at one position: immutable, shared when copied, and usable by other threads and by other sessions
// of the same model.
class Snapshot {
 public:
  Snapshot() = default;
  bool empty() const { return state_ == nullptr; }
  int64_t position() const { return state_->position; }
  int64_t Bytes() const { return state_->Bytes(); }

 private:
  friend class Session;
  std::shared_ptr<const Model> model_;
  std::shared_ptr<const SequenceState> state_;
};

// An Engine appends the tokens. The size of a session does not depend on the number of tokens, except for a
// transformer's, which grows. Used by one thread at a time. The state is bit-identical however the same
// tokens got there: in blocks or one by one, alone or in a batch, after a fork, a rewind or a load from a
// file.
class Session {
 public:
  // Starts before the first token.
  explicit Session(std::shared_ptr<const Model> model);
  // Continues from a snapshot of any session of this model.
  Session(std::shared_ptr<const Model> model, const Snapshot& from);
  Session(Session&&) = default;
  Session& operator=(Session&&) = default;

  const Model& model() const { return *model_; }
  const std::shared_ptr<const Model>& shared_model() const { return model_; }
  // Tokens read so far.
  int64_t position() const { return state_.position; }
  // Bytes this session occupies.
  int64_t Bytes() const { return static_cast<int64_t>(sizeof(*this)) + state_.Bytes(); }

  Session Fork() const;
  Snapshot Checkpoint() const;
  // Returns to a checkpoint of any session of this model. Throws Error for one of another model.
  void Rewind(const Snapshot& to);
  // Returns to before the first token.
  void Reset();

  // Save atomically writes a safetensors file with the state, its checksum and the model's hash. Load throws
  // Error when the file is damaged, holds values that are not finite, or belongs to another model.
  void Save(const std::filesystem::path& path) const;
  static Session Load(std::shared_ptr<const Model> model, const std::filesystem::path& path);
  // The same in memory: the bytes that Save writes. `source` names them in error messages. A non-empty key
  // authenticates the bytes (HMAC): Deserialize with a key refuses bytes that were not made with that key.
  std::string Serialize(std::string_view key = {}) const;
  static Session Deserialize(std::shared_ptr<const Model> model, std::string_view bytes,
                             const std::string& source, std::string_view key = {});

  // The current memory of one head, [M, D]. Throws Error for attention, which has none.
  std::span<const float> Memory(int64_t layer, int64_t head) const;

  SequenceState& state() { return state_; }
  const SequenceState& state() const { return state_; }

 private:
  static Session FromFile(std::shared_ptr<const Model> model, const io::Safetensors& file);

  std::shared_ptr<const Model> model_;
  SequenceState state_;
};

}  // namespace lattice::runtime

#endif  // LATTICE_RUNTIME_SESSION_H_
