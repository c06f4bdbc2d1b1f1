// The tensors of a model in memory, in the format they are computed with.
#ifndef LATTICE_RUNTIME_WEIGHTS_H_
#define LATTICE_RUNTIME_WEIGHTS_H_

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/safetensors.h"
#include "kernels/dense/matmul.h"
#include "model/config.h"
#include "model/tensors.h"

namespace lattice::runtime {

using kernels::WeightFormat;
using kernels::WeightMatrix;

// "float32", "bf16", "int8"; the way back throws Error that lists them.
std::string_view Name(WeightFormat format);
WeightFormat FormatNamed(std::string_view name);

// Memory of its own, in huge pages where the system gives them. Those are 2 MiB and must be aligned, so many
// matrices share a block: streaming int8 weights from small pages takes 1.7 times as long.
class Block {
 public:
  explicit Block(size_t bytes);
  ~Block();
  Block(Block&& other) noexcept;
  Block& operator=(Block&&) = delete;
  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

// Writes the values of one tensor.
using TensorSource = std::function<void(const model::TensorInfo& info, std::span<float> out)>;

// Immutable once made; may be read by all threads.
class Weights {
 public:
  // DIRECTORY/model.safetensors, checked against the config and the checksum that training recorded for it,
  // in `format` or as the file has it. F16 becomes float32; bf16 and int8 are put in the order of products.
  // The file is read, not mapped: it may change afterwards.
  Weights(const model::ModelConfig& config, const std::filesystem::path& path,
          std::optional<WeightFormat> format);
  // Values from elsewhere: `fill` writes each tensor's, [Elements()].
  Weights(const model::ModelConfig& config, const TensorSource& fill, WeightFormat format);

  WeightFormat format() const { return format_; }
  // A tensor of TensorInfo::IsMatrix.
  const WeightMatrix& Matrix(std::string_view name) const;
  // Any other tensor, as float32.
  std::span<const float> Vector(std::string_view name) const;
  // What a token reads: every matrix once (an untied embedding is only looked up) and all small tensors.
  int64_t BytesPerToken() const { return bytes_per_token_; }
  // 64 hexadecimal digits over names, shapes, formats and samples of every tensor: another training step or
  // format gives another one. Samples, because hashing everything would take longer than starting.
  const std::string& hash() const { return hash_; }

 private:
  // A matrix row by row, as files have it.
  struct StoredMatrix {
    WeightFormat format = WeightFormat::kF32;
    int64_t rows = 0, cols = 0;
    const std::byte* data = nullptr;
    const float* scales = nullptr;  // of kInt8

    void Widen(int64_t row, float* out) const;
  };

  static StoredMatrix AsStored(const io::Safetensors& file, const model::TensorInfo& info);
  // In format_; float32 that is to stay float32 is not copied.
  WeightMatrix Converted(const StoredMatrix& from);
  WeightMatrix Packed(const StoredMatrix& from);
  std::span<const float> Widened(const io::TensorView& view);
  // Memory that lives as long as this, aligned to a cache line.
  std::byte* Allocate(size_t bytes);
  void Finish(const model::ModelConfig& config);

  WeightFormat format_ = WeightFormat::kF32;
  std::vector<Block> owned_;
  size_t used_ = 0, room_ = 0;  // of the last block
  std::map<std::string, WeightMatrix, std::less<>> matrices_;
  std::map<std::string, std::span<const float>, std::less<>> vectors_;
  int64_t bytes_per_token_ = 0;
  std::string hash_;
};

// All elements of a tensor of F32, BF16 or F16 as float32; its bytes may be unaligned.
void WidenTensor(const io::TensorView& tensor, float* out);

// Row `row` as float32.
void WidenRow(const WeightMatrix& matrix, int64_t row, float* out);

// Writes the weights as `path` in their format, as docs/checkpoint-format.md has it.
void WriteWeights(const model::ModelConfig& config, const Weights& weights,
                  const std::filesystem::path& path);

}  // namespace lattice::runtime

#endif  // LATTICE_RUNTIME_WEIGHTS_H_
