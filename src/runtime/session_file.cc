// Sessions as safetensors files: the tensors of model::ModelStates, and as metadata the model's hash, the
// position and a checksum over the tensors.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "io/hash.h"
#include "io/safetensors.h"
#include "model/cost.h"
#include "runtime/model_parts.h"
#include "runtime/session.h"

namespace lattice::runtime {
namespace {

constexpr std::string_view kKind = "lattice session 1";
// Begins the names of gates that wait in a window.
constexpr std::string_view kWaiting = "window_";
constexpr int64_t kMaxPosition = int64_t{1} << 48;

std::string Checksum(std::span<const io::TensorView> tensors, const std::string& position) {
  io::Sha256 hash;
  hash.Update(position);
  for (const io::TensorView& tensor : tensors) {
    hash.Update(StrCat("\n", tensor.name, " ", tensor.bytes.size(), "\n"));
    hash.Update(tensor.bytes);
  }
  return hash.Finish();
}

int64_t ParsePosition(const std::string& text, const std::string& source) {
  int64_t position = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), position);
  Check(error == std::errc() && end == text.data() + text.size() && position >= 0 && position <= kMaxPosition,
        "[session] ", source, ": the position \"", text.substr(0, 32), "\" is not a count of tokens");
  return position;
}

std::string Field(const io::Safetensors& file, const std::string& key) {
  const auto at = file.metadata().find(key);
  Check(at != file.metadata().end(), "[session] ", file.source(), " is not a saved session: it lacks \"", key,
        "\"");
  return at->second;
}

// Maps the state tensors of a file to their places in SequenceState. In memory the parts of a head's memory
// (matrix, normalizer, max) are adjacent; in the file each part is one tensor over all heads.
class Pieces {
 public:
  Pieces(const ModelParts& parts, SequenceState& state) : parts_(parts), state_(state) {}

  // Calls piece(pointer, count) for each contiguous range of the tensor, in the order of its elements.
  template <typename Piece>
  void Visit(const model::StateTensor& tensor, int64_t layer, const Piece& piece) {
    const std::string kind = tensor.name.substr(tensor.name.rfind('.') + 1);
    const auto index = static_cast<size_t>(layer);
    const LayerLayout& layout = parts_.layout.layers[index];
    const BlockParts& block = parts_.blocks[index];
    const int64_t matrix = parts_.config.Slots() * parts_.config.HeadDim();
    const bool window = block.config.window > 0;
    float* base = state_.fixed.data() + layout.offset;
    if (kind == "keys")
      return piece(window ? base + layout.keys : state_.keys[index].data(), tensor.Elements());
    if (kind == "values")
      return piece(window ? base + layout.values : state_.values[index].data(), tensor.Elements());
    if (kind.starts_with(kWaiting)) {
      const int gate = block.memory->FindGate(kind.substr(kWaiting.size()));
      return piece(base + layout.gates[gate], tensor.Elements());
    }
    if (kind == "pre_conv") return piece(base + layout.pre_conv, tensor.Elements());
    if (kind == "conv_qk") return piece(base + layout.conv_qk, tensor.Elements());
    if (kind == "conv_v") return piece(base + layout.conv_v, tensor.Elements());
    const int64_t offset = kind == "state"        ? 0
                           : kind == "normalizer" ? matrix
                                                  : matrix + parts_.config.Slots();
    const int64_t count = tensor.Elements() / parts_.config.heads;
    for (int64_t head = 0; head < parts_.config.heads; ++head)
      piece(base + layout.memory + head * layout.head_size + offset, count);
  }

 private:
  const ModelParts& parts_;
  SequenceState& state_;
};

int64_t LayerOf(const model::StateTensor& tensor) { return std::stoll(tensor.name.substr(7)); }

// The message authentication code of a serialised state. It covers the checksum, which covers the tensors and
// the position.
std::string SealOf(std::string_view key, const std::string& model, const std::string& checksum) {
  return io::HmacSha256Hex(key, StrCat(kKind, "\n", model, "\n", checksum));
}

// A comparison in constant time, so that timing does not reveal where the two differ.
bool SameSeal(std::string_view a, std::string_view b) {
  unsigned different = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    different |= static_cast<unsigned char>(a[i] ^ b[i]);
  return different == 0;
}

// The contents of a session file. `views` point into `held`.
struct FileContent {
  std::vector<std::vector<float>> held;
  std::vector<io::TensorView> views;
  io::Metadata metadata;
};

FileContent ContentOf(const Model& model, SequenceState state) {
  const ModelParts& parts = model.parts();
  FileContent out;
  Pieces pieces(parts, state);
  for (const model::StateTensor& tensor : model::ModelStates(parts.config, state.position)) {
    std::vector<float>& values = out.held.emplace_back();
    pieces.Visit(tensor, LayerOf(tensor),
                 [&](const float* data, int64_t count) { values.insert(values.end(), data, data + count); });
    out.views.push_back(io::ViewOf<float>(tensor.name, tensor.shape, values));
  }
  std::sort(out.views.begin(), out.views.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  const std::string position = StrCat(state.position);
  out.metadata = {{"kind", std::string(kKind)},
                  {"model", model.hash()},
                  {"position", position},
                  {"checksum", Checksum(out.views, position)}};
  return out;
}

}  // namespace

void Session::Save(const std::filesystem::path& path) const {
  const FileContent content = ContentOf(*model_, state_);
  io::WriteSafetensors(path, content.views, content.metadata);
}

std::string Session::Serialize(std::string_view key) const {
  FileContent content = ContentOf(*model_, state_);
  if (!key.empty()) content.metadata["seal"] = SealOf(key, model_->hash(), content.metadata.at("checksum"));
  return io::SafetensorsBytes(content.views, content.metadata);
}

Session Session::Load(std::shared_ptr<const Model> model, const std::filesystem::path& path) {
  return FromFile(std::move(model), io::Safetensors(path));
}

Session Session::Deserialize(std::shared_ptr<const Model> model, std::string_view bytes,
                             const std::string& source, std::string_view key) {
  // The tensors are read in place, so the bytes are copied to memory that is aligned for floats.
  const std::vector<std::byte> aligned(reinterpret_cast<const std::byte*>(bytes.data()),
                                       reinterpret_cast<const std::byte*>(bytes.data()) + bytes.size());
  const io::Safetensors file(aligned, source);
  const auto seal = file.metadata().find("seal");
  if (!key.empty()) {
    Check(seal != file.metadata().end() &&
              SameSeal(seal->second, SealOf(key, Field(file, "model"), Field(file, "checksum"))),
          "[session] ", source, " was not made here: it has no seal, or that of another key");
  }
  return FromFile(std::move(model), file);
}

Session Session::FromFile(std::shared_ptr<const Model> model, const io::Safetensors& file) {
  const std::string& source = file.source();
  const std::string kind = Field(file, "kind");
  Check(kind == kKind, "[session] ", source, " is of the kind \"", kind.substr(0, 64), "\"; expected \"",
        kKind, "\"");
  Check(Field(file, "model") == model->hash(), "[session] ", source,
        " was saved with another model (or another weight format); load it with the model it came from");
  const std::string position_text = Field(file, "position");
  const int64_t position = ParsePosition(position_text, source);

  const ModelParts& parts = model->parts();
  const std::vector<model::StateTensor> tensors = model::ModelStates(parts.config, position);
  Check(tensors.size() == file.tensors().size(), "[session] ", source, " holds ", file.tensors().size(),
        " tensors; a session of this model has ", tensors.size());
  for (const model::StateTensor& tensor : tensors) {
    const io::TensorView& view = file.Get(tensor.name);
    Check(view.shape == tensor.shape, "[session] ", source, ": \"", tensor.name, "\" has shape ",
          io::ShapeText(view.shape), "; expected ", io::ShapeText(tensor.shape));
    for (const float value : view.As<float>()) {
      Check(std::isfinite(value), "[session] ", source, ": \"", tensor.name,
            "\" holds a value that is not a number");
    }
  }
  std::vector<io::TensorView> views;
  for (const auto& [name, view] : file.tensors()) views.push_back(view);
  Check(Checksum(views, position_text) == Field(file, "checksum"), "[session] ", source,
        " is damaged: its checksum does not match");

  Session session(std::move(model));
  session.state_.position = position;
  const auto cached = static_cast<size_t>(position * parts.config.KvHeads() * parts.config.HeadDim());
  for (size_t i = 0; i < session.state_.keys.size(); ++i) {
    if (!parts.blocks[i].memory->attention || parts.blocks[i].config.window > 0) continue;
    session.state_.keys[i].resize(cached);
    session.state_.values[i].resize(cached);
  }
  Pieces pieces(parts, session.state_);
  for (const model::StateTensor& tensor : tensors) {
    const float* from = file.Get(tensor.name).As<float>().data();
    pieces.Visit(tensor, LayerOf(tensor), [&](float* data, int64_t count) {
      std::copy_n(from, count, data);
      from += count;
    });
  }
  return session;
}

}  // namespace lattice::runtime
