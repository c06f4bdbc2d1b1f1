// What the teacher's attention layers see and give for a text, computed or read from a cache.
//
// A token of a model with 30 layers of width 576 is 135 KiB of float32 in a cache, and computing it again 230 MFLOP:
// several students that learn from the same text share one pass over the teacher.
#ifndef LATTICE_DISTILL_TEACHER_LAYERS_H_
#define LATTICE_DISTILL_TEACHER_LAYERS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "distill/student.h"

namespace lattice::distill {

// Where micro-batches are kept, one file each, named by a hash of the teacher's files, the tokens and the precision, with the
// layers that were wanted first. Files are as exact as what they stand for: a run is the same to the bit with a cache and without.
struct LayerCache {
  std::filesystem::path directory;  // empty: none
  int64_t limit = 0;                // bytes of all its files; what does not fit is computed each time
};

class TeacherLayers {
 public:
  explicit TeacherLayers(Teacher teacher) : teacher_(std::move(teacher)) {}
  // `checkpoint` is where the teacher was read from.
  TeacherLayers(Teacher teacher, const std::filesystem::path& checkpoint, LayerCache cache);

  const nn::LanguageModel& teacher() const { return *teacher_; }

  // Calls visit(layer, u, y) for the layers that are wanted, ascending: u [B,T,C] is what the mixer sees, y what it adds
  // to the stream, both float32. The tensors need no gradient and are valid during the call only.
  using Layers = std::vector<int64_t>;
  using Visit = std::function<void(int64_t layer, const at::Tensor& u, const at::Tensor& y)>;
  void Run(const at::Tensor& tokens, const Layers& wanted, const Visit& visit);

 private:
  std::filesystem::path FileOf(const at::Tensor& tokens) const;
  bool RunCached(const std::filesystem::path& file, const at::Tensor& tokens, const Layers& wanted,
                 const Visit& visit) const;
  void Compute(const at::Tensor& tokens, const Layers& wanted, const Visit& visit) const;

  Teacher teacher_;
  std::string identity_;  // of the teacher's weights
  LayerCache cache_;
  int64_t used_ = 0;  // bytes in the cache
};

}  // namespace lattice::distill

#endif  // LATTICE_DISTILL_TEACHER_LAYERS_H_
