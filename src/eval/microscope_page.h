// A memory record as JSON and as an HTML page.
#ifndef LATTICE_EVAL_MICROSCOPE_PAGE_H_
#define LATTICE_EVAL_MICROSCOPE_PAGE_H_

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "eval/microscope.h"

namespace lattice::eval {

// Labels of the record.
struct RecordLabels {
  std::string model;
  std::string mixer;
  std::span<const std::string> pieces;  // the text of each token
};

// Every figure, rounded to five digits; layers, heads and slots count from 0: {"mixer", "tokens": [..],
// "layers": [{"heads": [{"write": [T][M], ..., "token_write": [T], ..., "snapshots": [..], "summary":
// {..}}]}]}. null: not defined for this memory.
nlohmann::ordered_json RecordJson(const MemoryRecord& record, const RecordLabels& labels);

// A self-contained HTML page with heat maps of tokens by slots to scrub through, light or dark like the
// reader's system. Figures are quantised to 256 steps. Layers, heads and slots count from 1.
std::string RecordPage(const MemoryRecord& record, const RecordLabels& labels);

}  // namespace lattice::eval

#endif  // LATTICE_EVAL_MICROSCOPE_PAGE_H_
