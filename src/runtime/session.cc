// Forking, checkpointing and rewinding a session: all are copies of its state.
#include "runtime/session.h"

#include "base/error.h"
#include "runtime/model_parts.h"

namespace lattice::runtime {

Session::Session(std::shared_ptr<const Model> model)
    : model_(std::move(model)), state_(InitialState(model_->parts())) {}

Session::Session(std::shared_ptr<const Model> model, const Snapshot& from) : model_(std::move(model)) {
  Rewind(from);
}

Session Session::Fork() const {
  Session copy(model_);
  copy.state_ = state_;
  return copy;
}

Snapshot Session::Checkpoint() const {
  Snapshot snapshot;
  snapshot.model_ = model_;
  snapshot.state_ = std::make_shared<const SequenceState>(state_);
  return snapshot;
}

void Session::Rewind(const Snapshot& to) {
  Check(!to.empty(), "[session] the checkpoint to rewind to is empty; make one with Checkpoint()");
  Check(to.model_ == model_ || to.model_->hash() == model_->hash(),
        "[session] the checkpoint belongs to another model; rewind to one made with this model");
  state_ = *to.state_;
}

void Session::Reset() { state_ = InitialState(model_->parts()); }

std::span<const float> Session::Memory(int64_t layer, int64_t head) const {
  const ModelParts& parts = model_->parts();
  Check(parts.config.HasMemory(),
        "[session] a transformer has a cache of keys and values but no memory to show");
  Check(layer >= 0 && layer < parts.config.layers && head >= 0 && head < parts.config.heads,
        "[session] there is no layer ", layer, ", head ", head, "; the model has ", parts.config.layers,
        " layers of ", parts.config.heads, " heads");
  Check(!parts.blocks[static_cast<size_t>(layer)].memory->attention, "[session] layer ", layer,
        " is attention and has no memory to show; HasMemory() of the config tells which layers have one");
  const LayerLayout& layout = parts.layout.layers[static_cast<size_t>(layer)];
  const int64_t at = layout.offset + layout.memory + head * layout.head_size;
  return {&state_.fixed[static_cast<size_t>(at)],
          static_cast<size_t>(parts.config.Slots() * parts.config.HeadDim())};
}

}  // namespace lattice::runtime
