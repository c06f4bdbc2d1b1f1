#include "train/sequence_pieces.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <chrono>
#include <utility>

namespace lattice::train {

using dist::Message;

SequencePieces::SequencePieces(const nn::LanguageModel& model, dist::Group& group, const Layout& layout,
                               bool recompute)
    : model_(model), group_(group), layout_(layout), recompute_(recompute) {}

double SequencePieces::Step(int64_t micros, const TokensOf& tokens, const std::function<void()>& last) {
  const std::vector<PieceTask> tasks = PieceSchedule(layout_.sequence_ranks, layout_.place, micros);
  double loss = 0;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const PieceTask& task = tasks[i];
    if (!task.backward) {
      // What is wanted again at once need not be thrown away.
      const bool next = tasks[i + 1].backward;
      Forward(task, tokens(task.micro, task.piece), next || !recompute_);
      continue;
    }
    if (i + 1 == tasks.size()) last();
    loss += Backward(task);
    if (!open_.empty()) continue;
    for (dist::Pending& send : sends_) Wait(std::move(send), "wait to be heard");
    sends_.clear();
  }
  return loss;
}

int SequencePieces::RankOf(const PieceTask& task, int64_t piece) const {
  return layout_.first_rank + static_cast<int>(RankOfPiece(layout_.sequence_ranks, task.micro, piece));
}

void SequencePieces::Wait(dist::Pending pending, const char* what) {
  const dist::Span span(group_.timeline(), what);
  const auto start = std::chrono::steady_clock::now();
  pending.Wait();
  waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

nn::FlatStates SequencePieces::ReceiveState(const PieceTask& task) {
  const int from = RankOf(task, task.piece - 1);
  nn::FlatStates state = {at::empty({nn::LayoutLength(model_)}, at::kLong), {}};
  Wait(dist::Receive(group_, state.layout, from, Message::kStateLayout), "wait for state");
  state.values = at::empty({nn::ValuesLength(model_, state.layout)}, at::kFloat);
  Wait(dist::Receive(group_, state.values, from, Message::kState), "wait for state");
  return state;
}

at::Tensor SequencePieces::Compute(Piece& piece, bool last) const {
  nn::States states;
  if (piece.initial.values.defined()) {
    if (c10::GradMode::is_enabled()) piece.initial.values.requires_grad_();
    states = nn::Unflatten(model_, piece.initial);
  } else {
    states.resize(static_cast<size_t>(model_.config().layers));
    for (nn::BlockState& state : states) state.attached = true;
  }
  const at::Tensor hidden = model_.Forward(piece.tokens.inputs, &states);
  if (c10::GradMode::is_enabled())
    piece.loss = model_.Loss(hidden, piece.tokens.targets) * piece.tokens.share;
  if (last) return {};
  nn::FlatStates final = nn::Flatten(model_, states);
  piece.final = std::move(final.values);
  return final.layout;
}

void SequencePieces::Forward(const PieceTask& task, PieceTokens tokens, bool keep) {
  Piece piece;
  piece.tokens = std::move(tokens);
  if (task.piece > 0) piece.initial = ReceiveState(task);
  {
    const dist::Span span(group_.timeline(), "forward");
    const c10::AutoGradMode graph(keep);
    const at::Tensor layout = Compute(piece, IsLast(task.piece));
    if (!IsLast(task.piece)) {
      const int to = RankOf(task, task.piece + 1);
      sends_.push_back(dist::Send(group_, layout, to, Message::kStateLayout));
      sends_.push_back(dist::Send(group_, piece.final.detach(), to, Message::kState));
    }
  }
  if (!keep) piece.final.reset();
  open_.insert_or_assign(task.micro, std::move(piece));
}

double SequencePieces::Backward(const PieceTask& task) {
  Piece piece = std::move(open_.at(task.micro));
  open_.erase(task.micro);
  if (!piece.loss.defined()) {
    const dist::Span span(group_.timeline(), "forward again");
    Compute(piece, IsLast(task.piece));
  }
  torch::autograd::variable_list roots = {piece.loss}, gradients = {at::ones_like(piece.loss)};
  if (!IsLast(task.piece)) {
    const at::Tensor gradient = at::empty(piece.final.sizes(), at::kFloat);
    Wait(dist::Receive(group_, gradient, RankOf(task, task.piece + 1), Message::kStateGradient),
         "wait for gradient");
    roots.push_back(piece.final);
    gradients.push_back(gradient);
  }
  {
    const dist::Span span(group_.timeline(), "backward");
    torch::autograd::backward(roots, gradients);
  }
  if (task.piece > 0) {
    sends_.push_back(dist::Send(group_, piece.initial.values.grad().contiguous(),
                                RankOf(task, task.piece - 1), Message::kStateGradient));
  }
  return piece.loss.item<double>();
}

}  // namespace lattice::train
