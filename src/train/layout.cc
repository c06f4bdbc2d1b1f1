#include "train/layout.h"

#include "base/error.h"
#include "dist/group.h"

namespace lattice::train {
namespace {

void CheckPieces(const model::Config& config, int64_t ranks) {
  const int64_t shared = config.train.sequence_ranks, length = config.train.seq_len;
  const int64_t piece = length / shared;
  Check(ranks % shared == 0, "[dist] train.sequence_ranks = ", shared, " ranks share a sequence, but there ",
        ranks == 1 ? "is " : "are ", ranks, ranks == 1 ? " rank" : " ranks", "; start a multiple of ", shared,
        ", such as --ranks ", shared, ", or set train.sequence_ranks to a divisor");
  Check(length % shared == 0, "[config] train.seq_len = ", length, " tokens cannot be cut into ", shared,
        " pieces of one length (train.sequence_ranks); set train.seq_len to a multiple of ", shared);
  Check(!config.model.Grows(),
        "[config] train.sequence_ranks hands the state of recurrent memories from rank to rank, but a layer "
        "of ",
        config.model.MixerText(),
        " attends to all tokens; use memories and layers with +window only, or set train.sequence_ranks=1");
  Check(!config.train.carry_state,
        "[config] train.carry_state ends gradients where train.sequence_ranks carries them; set one of them");
  Check(!config.data.reset_state,
        "[config] data.reset_state cuts sequences at documents and train.sequence_ranks into equal pieces; "
        "set one of them");
  Check(config.model.method == model::Method::kExact || piece % config.model.chunk == 0,
        "[config] a piece of ", piece,
        " tokens (train.seq_len / train.sequence_ranks) is no multiple of model.chunk = ", config.model.chunk,
        ", so chunks would be cut; choose another of the three");
}

}  // namespace

Layout::Layout(const model::Config& config, const dist::Group* group)
    : rows(config.train.batch_tokens / config.train.seq_len),
      sequence_ranks(config.train.sequence_ranks),
      piece(config.train.seq_len / sequence_ranks) {
  const int64_t ranks = group == nullptr ? 1 : group->size();
  const int64_t rank = group == nullptr ? 0 : group->rank();
  if (sequence_ranks > 1) CheckPieces(config, ranks);
  data_ranks = ranks / sequence_ranks;
  Check(rows % data_ranks == 0, "[dist] a step has ", rows,
        " sequences (train.batch_tokens / train.seq_len), which cannot be divided among ", data_ranks,
        sequence_ranks > 1 ? StrCat(" groups of ", sequence_ranks) : std::string(),
        " ranks; set train.batch_tokens to a multiple of ", data_ranks * config.train.seq_len);
  own_rows = rows / data_ranks;
  place = rank % sequence_ranks;
  first_rank = static_cast<int>(rank - place);
  first_row = rank / sequence_ranks * own_rows;
}

std::string Layout::Text() const {
  return StrCat(sequence_ranks > 1 ? StrCat("a piece of ", piece, " tokens of each of ") : std::string(),
                own_rows, " sequences");
}

}  // namespace lattice::train
