// Sequences that lie on several ranks in pieces. The state at a piece's end goes to the rank with the next piece, and its
// gradient comes back, so that the ranks compute what one with the whole sequence would.
#ifndef LATTICE_TRAIN_SEQUENCE_PIECES_H_
#define LATTICE_TRAIN_SEQUENCE_PIECES_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "dist/collectives.h"
#include "nn/flat_states.h"
#include "nn/language_model.h"
#include "train/layout.h"
#include "train/piece_schedule.h"

namespace lattice::train {

struct PieceTokens {
  at::Tensor inputs, targets;  // int64 [B,T]
  double share = 0;            // of the step's tokens
};

// Used by the thread that trains, by all ranks of the group alike.
class SequencePieces {
 public:
  using TokensOf = std::function<PieceTokens(int64_t micro, int64_t piece)>;

  // Model and group must outlive the object. With `recompute` a piece that waits for its backward pass keeps only its
  // initial state, and is computed again when its gradients are wanted: the memory of activations is that of one piece.
  SequencePieces(const nn::LanguageModel& model, dist::Group& group, const Layout& layout, bool recompute);

  // Adds the gradients of this rank's pieces of a step to the parameters, and returns its part of the loss. last() is
  // called before the last backward pass. Throws dist::LostPeer.
  double Step(int64_t micros, const TokensOf& tokens, const std::function<void()>& last);

  // Seconds that steps have waited for states and gradients of other ranks.
  double waited() const { return waited_; }

 private:
  // A piece between its two passes.
  struct Piece {
    PieceTokens tokens;
    nn::FlatStates initial;  // empty for the first of a sequence
    at::Tensor loss;         // undefined when it is to be computed again
    at::Tensor final;        // flat; undefined for the last of a sequence
  };

  bool IsLast(int64_t piece) const { return piece + 1 == layout_.sequence_ranks; }
  int RankOf(const PieceTask& task, int64_t piece) const;
  // `what` for the timeline.
  void Wait(dist::Pending pending, const char* what);

  // The piece's loss and final state from its tokens and initial state; the loss only with gradients. Returns the layout
  // of the final state.
  at::Tensor Compute(Piece& piece, bool last) const;
  void Forward(const PieceTask& task, PieceTokens tokens, bool keep);
  double Backward(const PieceTask& task);
  nn::FlatStates ReceiveState(const PieceTask& task);

  const nn::LanguageModel& model_;
  dist::Group& group_;
  const Layout layout_;
  const bool recompute_;
  std::map<int64_t, Piece> open_;     // by micro-batch: a rank has one piece of each
  std::vector<dist::Pending> sends_;  // not known to have arrived
  double waited_ = 0;
};

}  // namespace lattice::train

#endif  // LATTICE_TRAIN_SEQUENCE_PIECES_H_
