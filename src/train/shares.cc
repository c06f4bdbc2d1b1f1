#include "train/shares.h"

#include <algorithm>

namespace lattice::train {
namespace {

constexpr int64_t kAlign = 16;  // floats of a cache line

int64_t RoundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace

Shares::Shares(const std::vector<nn::Parameter>& parameters, int ranks) : parameters_(parameters) {
  int64_t end = 0;
  for (const nn::Parameter& parameter : parameters) {
    offsets_.push_back(end);
    end += RoundUp(parameter.value.numel(), kAlign);
  }
  length_ = RoundUp((end + ranks - 1) / ranks, kAlign);
}

std::vector<Piece> Shares::PiecesOf(int rank) const {
  std::vector<Piece> pieces;
  const int64_t first = rank * length_, last = first + length_;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const int64_t begin = std::max<int64_t>(first - offsets_[i], 0);
    const int64_t end = std::min(last - offsets_[i], parameters_[i].value.numel());
    if (begin < end) pieces.push_back({&parameters_[i], begin, end - begin});
  }
  return pieces;
}

std::vector<Piece> WholeParameters(const std::vector<nn::Parameter>& parameters) {
  std::vector<Piece> pieces;
  for (const nn::Parameter& parameter : parameters) {
    if (parameter.value.requires_grad()) pieces.push_back({&parameter, 0, parameter.value.numel()});
  }
  return pieces;
}

}  // namespace lattice::train
