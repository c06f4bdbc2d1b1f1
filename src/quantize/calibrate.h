// Converts a model to int4 with errors that make up for each other on a text.
#ifndef LATTICE_QUANTIZE_CALIBRATE_H_
#define LATTICE_QUANTIZE_CALIBRATE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "runtime/model.h"
#include "runtime/weights.h"

namespace lattice::quantize {

struct CalibrationOptions {
  int threads = 0;  // 0: one per core
  // That many windows of the text, evenly spread, are read, each from the initial state; fewer where it is shorter.
  int64_t windows = 32;
  int64_t window = 512;                                            // tokens of a window
  int64_t bytes = int64_t{1} << 29;                                // memory for the sums of the inputs
  std::function<void(int64_t done, int64_t total)> progress = {};  // may be empty
};

// The weights of `model`, which is float32, in int4. The blocks are converted in stages from the first to the last, as
// many at a time as options.bytes allow: what the matrices of a stage read is measured on the text, with the blocks
// before it already rounded. Throws Error when there are fewer tokens than a window, or activations are not finite. The
// same model, tokens and options give the same weights on one instruction set, whatever the number of threads.
runtime::Weights Calibrated(const std::shared_ptr<const runtime::Model>& model,
                            std::span<const int32_t> tokens, const CalibrationOptions& options);

}  // namespace lattice::quantize

#endif  // LATTICE_QUANTIZE_CALIBRATE_H_
