// One sequence and what the model remembers of it.
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

// A state at one position: immutable, cheap to hold twice, may be given to other threads and sessions of the
// same model.
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

// Tokens are appended by an Engine. The size does not depend on how many there have been (a transformer's
// grows). One thread at a time. Every way to get to the same tokens gives the same bits: appending them in
// blocks or one by one, alone or in a batch, after a fork, a rewind or a file.
class Session {
 public:
  // Nothing read yet.
  explicit Session(std::shared_ptr<const Model> model);
  // Goes on from a snapshot of any session of this model.
  Session(std::shared_ptr<const Model> model, const Snapshot& from);
  Session(Session&&) = default;
  Session& operator=(Session&&) = default;

  const Model& model() const { return *model_; }
  // Tokens read so far.
  int64_t position() const { return state_.position; }
  // Bytes this session occupies.
  int64_t Bytes() const { return static_cast<int64_t>(sizeof(*this)) + state_.Bytes(); }

  Session Fork() const;
  Snapshot Checkpoint() const;
  // To a checkpoint of any session of this model. Throws Error for one of another model.
  void Rewind(const Snapshot& to);
  // To before the first token.
  void Reset();

  // A safetensors file with the state, its checksum and the model's hash; written atomically. Load throws
  // Error when the file is damaged, holds values that are not finite, or belongs to another model.
  void Save(const std::filesystem::path& path) const;
  static Session Load(std::shared_ptr<const Model> model, const std::filesystem::path& path);
  // The same without a file: the bytes that Save writes. `source` is the name errors give them. With a key
  // the bytes are sealed: Deserialize with the same key takes nothing that was not made with it.
  std::string Serialize(std::string_view key = {}) const;
  static Session Deserialize(std::shared_ptr<const Model> model, std::string_view bytes,
                             const std::string& source, std::string_view key = {});

  // The memory of a head as it is now, [M, D] (not for attention: throws Error).
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
