// Maps (seed, step, row) to a position in the tokens, for shuffled windows or for streams.
#include "data/batches.h"

#include "base/error.h"
#include "base/random.h"
#include "data/permutation.h"
#include "io/hash.h"

namespace lattice::data {
namespace {

constexpr uint64_t kOffsetStream = io::Fnv1a("data/offset");
constexpr uint64_t kOrderStream = io::Fnv1a("data/order");
// With at least this many windows, one window is given up, so that the offset of an epoch can be anywhere in
// a window.
constexpr int64_t kManyWindows = 16;

}  // namespace

Batches::Batches(const TokenStore& store, const BatchOptions& options) : store_(store), options_(options) {
  const int64_t predicted = store.tokens() - 1;
  const int64_t parts = options.streams ? options.rows : 1;
  Check(options.rows >= 1 && options.seq_len >= 1, "[data] a batch needs rows and tokens, got ", options.rows,
        " x ", options.seq_len);
  Check(predicted / parts >= options.seq_len, "[data] the training text has ", store.tokens(),
        " tokens, too few for ", parts, " sequence(s) of train.seq_len = ", options.seq_len,
        " and the token that follows; use a longer text or a smaller train.seq_len");
  if (options.streams) {
    windows_ = predicted / parts / options.seq_len * parts;
    return;
  }
  windows_ = predicted / options.seq_len;
  if (windows_ >= kManyWindows) --windows_;
  slack_ = predicted - windows_ * options.seq_len;
}

int64_t Batches::StreamPosition(int64_t step, int64_t row) const {
  const int64_t part = (store_.tokens() - 1) / options_.rows;
  const int64_t segments = windows_ / options_.rows;
  return row * part + step % segments * options_.seq_len;
}

int64_t Batches::Position(int64_t step, int64_t row) const {
  if (options_.streams) return StreamPosition(step, row);
  const int64_t index = step * options_.rows + row;
  const int64_t epoch = index / windows_;
  int64_t window = index % windows_;
  if (!options_.shuffle) return window * options_.seq_len;
  window = Permutation(windows_, options_.seed, kOrderStream + static_cast<uint64_t>(epoch))(window);
  const Random random(options_.seed, kOffsetStream);
  const uint64_t offset = random.Below(static_cast<uint64_t>(slack_) + 1, static_cast<uint64_t>(epoch));
  return window * options_.seq_len + static_cast<int64_t>(offset);
}

void Batches::Read(int64_t step, int64_t first, int64_t count, std::span<int64_t> out) const {
  const auto width = static_cast<size_t>(options_.seq_len) + 1;
  Check(first >= 0 && count >= 0 && first + count <= options_.rows &&
            out.size() == width * static_cast<size_t>(count),
        "[data] rows ", first, " to ", first + count, " of ", options_.rows, " do not fit a buffer of ",
        out.size());
  for (int64_t row = 0; row < count; ++row) {
    store_.Read(Position(step, first + row), out.subspan(static_cast<size_t>(row) * width, width));
  }
}

bool Batches::StartsAnew(int64_t step) const {
  return !options_.streams || step % (windows_ / options_.rows) == 0;
}

}  // namespace lattice::data
