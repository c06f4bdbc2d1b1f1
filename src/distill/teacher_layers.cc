#include "distill/teacher_layers.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "io/directory.h"
#include "io/file.h"
#include "io/hash.h"
#include "io/safetensors.h"
#include "model/checkpoint.h"
#include "nn/layers.h"
#include "train/tensor_file.h"

namespace lattice::distill {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSuffix = ".safetensors";

std::string InputName(int64_t layer) { return StrCat("input.", layer); }
std::string OutputName(int64_t layer) { return StrCat("output.", layer); }

// The tensor in its place in the file.
at::Tensor InPlace(const io::Safetensors& file, const std::string& name, at::IntArrayRef shape) {
  const io::TensorView& view = file.Get(name);
  Check(shape == at::IntArrayRef(view.shape), "[distill] ", file.source(), ": ", name, " has the shape ",
        io::ShapeText(view.shape), " instead of ", io::ShapeText(shape));
  // torch has no tensors that cannot be written to; nobody writes to these.
  return at::from_blob(const_cast<float*>(view.As<float>().data()), shape, at::kFloat);
}

int64_t BytesIn(const fs::path& directory) {
  int64_t bytes = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    if (entry.is_regular_file()) bytes += static_cast<int64_t>(entry.file_size());
  }
  return bytes;
}

}  // namespace

TeacherLayers::TeacherLayers(Teacher teacher, const fs::path& checkpoint, LayerCache cache)
    : teacher_(std::move(teacher)), cache_(std::move(cache)) {
  if (cache_.directory.empty()) return;
  io::MakeDirectories(cache_.directory);
  used_ = BytesIn(cache_.directory);
  identity_ = StrCat(io::FileChecksum(checkpoint / model::kConfigFile), " ",
                     io::FileChecksum(checkpoint / model::kWeightsFile));
}

fs::path TeacherLayers::FileOf(const at::Tensor& tokens) const {
  const at::Tensor ids = tokens.contiguous();
  io::Sha256 hash;
  hash.Update(StrCat(identity_, nn::Bf16Scope::active() ? " bf16 " : " ", io::ShapeText(ids.sizes()), "\n"));
  hash.Update(std::as_bytes(std::span(ids.const_data_ptr<int64_t>(), static_cast<size_t>(ids.numel()))));
  return cache_.directory / (hash.Finish() + kSuffix);
}

bool TeacherLayers::RunCached(const fs::path& file, const at::Tensor& tokens, const Layers& wanted,
                              const Visit& visit) const {
  if (!fs::exists(file)) return false;
  const std::vector<int64_t> shape = {tokens.size(0), tokens.size(1), teacher_->config().width};
  std::vector<std::pair<at::Tensor, at::Tensor>> found;
  std::optional<io::Safetensors> content;
  try {
    content.emplace(file);
    for (const int64_t layer : wanted)
      found.emplace_back(InPlace(*content, InputName(layer), shape),
                         InPlace(*content, OutputName(layer), shape));
  } catch (const Error&) {
    return false;  // damaged, or with other layers: made again
  }
  for (size_t i = 0; i < wanted.size(); ++i) visit(wanted[i], found[i].first, found[i].second);
  return true;
}

void TeacherLayers::Compute(const at::Tensor& tokens, const Layers& wanted, const Visit& visit) const {
  const auto frozen = [](const auto& compute) {
    const c10::NoGradGuard no_grad;
    return compute();
  };
  at::Tensor x = frozen([&] { return teacher_->Embed(tokens); });
  auto next = wanted.begin();
  for (int64_t i = 0; next != wanted.end(); ++i) {
    const nn::Block& block = teacher_->block(i);
    const nn::Block::MixerInput in = frozen([&] { return block.Before(x, nullptr); });
    const at::Tensor y = frozen([&] { return block.Mix(in.u, nullptr); });
    if (i == *next) {
      visit(i, nn::Wide(in.u), nn::Wide(y));
      ++next;
    }
    // What the last of them adds behind its mixer is wanted by nobody.
    if (next != wanted.end()) x = frozen([&] { return block.After(in.stream, y); });
  }
}

void TeacherLayers::Run(const at::Tensor& tokens, const Layers& wanted, const Visit& visit) {
  if (cache_.directory.empty()) return Compute(tokens, wanted, visit);
  const fs::path file = FileOf(tokens);
  if (RunCached(file, tokens, wanted, visit)) return;
  const int64_t bytes = 2 * static_cast<int64_t>(wanted.size()) * tokens.numel() * teacher_->config().width *
                        int64_t{sizeof(float)};
  if (used_ + bytes > cache_.limit) return Compute(tokens, wanted, visit);
  train::NamedTensors kept;
  Compute(tokens, wanted, [&](int64_t layer, const at::Tensor& u, const at::Tensor& y) {
    kept[InputName(layer)] = u;
    kept[OutputName(layer)] = y;
    visit(layer, u, y);
  });
  train::WriteTensors(file, kept);
  used_ += bytes;
}

}  // namespace lattice::distill
