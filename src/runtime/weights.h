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

// A format's name, "float32", "bf16", "int8" or "int4", and the format of a name. FormatNamed throws Error for
// others.
std::string_view Name(WeightFormat format);
WeightFormat FormatNamed(std::string_view name);

// A buffer in huge pages where the system provides them: streaming int8 weights from small pages takes 1.7
// times as long. Huge pages are 2 MiB and aligned to that, so many matrices should share a buffer.
class HugePageBuffer {
 public:
  explicit HugePageBuffer(size_t bytes);
  ~HugePageBuffer();
  HugePageBuffer(HugePageBuffer&& other) noexcept;
  HugePageBuffer& operator=(HugePageBuffer&&) = delete;
  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

// Writes the values of one tensor.
using TensorSource = std::function<void(const model::TensorInfo& info, std::span<float> out)>;

// The rows of a matrix in its format, as files hold them, or null where TensorSource has to give the values. They are
// copied.
using RowSource = std::function<const std::byte*(const model::TensorInfo& info)>;

// The format that a matrix has in a model of `format`: that one, but in int4 only projections have four bits; the
// embedding and the head are int8.
WeightFormat FormatOf(const model::TensorInfo& info, WeightFormat format);

// Immutable once made; may be read by all threads.
class Weights {
 public:
  // Reads model.safetensors at `path` and checks it against the config and the recorded checksum, if there is
  // one. The weights are converted to `format`, or keep the format of the file; F16 becomes float32. Matrices
  // of other formats than float32 are packed into panels. The file is read, not mapped, so it may change
  // afterwards.
  Weights(const model::ModelConfig& config, const std::filesystem::path& path,
          std::optional<WeightFormat> format);
  // Weights from another source: `fill` writes the values of each tensor, [Elements()]. `rows`, which may be empty,
  // gives those matrices that are in their format already, bf16 or int4.
  Weights(const model::ModelConfig& config, const TensorSource& fill, WeightFormat format,
          const RowSource& rows = {});

  WeightFormat format() const { return format_; }
  // A tensor for which TensorInfo::IsMatrix.
  const WeightMatrix& Matrix(std::string_view name) const;
  // Any other tensor, as float32.
  std::span<const float> Vector(std::string_view name) const;
  // What decoding a token reads: every matrix once, except an untied embedding, of which it reads a row, and
  // all small tensors.
  int64_t BytesPerToken() const { return bytes_per_token_; }
  // 64 hexadecimal digits over names, shapes, formats and samples of every tensor, so that another training
  // step or format gives another hash. Only samples are hashed because hashing everything would take longer
  // than loading the model.
  const std::string& hash() const { return hash_; }

 private:
  // A row-major matrix, as in a file.
  struct StoredMatrix {
    WeightFormat format = WeightFormat::kF32;
    int64_t rows = 0, cols = 0;
    const std::byte* data = nullptr;
    const float* scales = nullptr;  // for kInt8

    void Widen(int64_t row, float* out) const;
  };

  static StoredMatrix AsStored(const io::Safetensors& file, const model::TensorInfo& info);
  // The matrix in the format `to`. float32 that stays float32 is not copied.
  WeightMatrix Converted(const StoredMatrix& from, WeightFormat to);
  WeightMatrix Packed(const StoredMatrix& from, WeightFormat to);
  std::span<const float> Widened(const io::TensorView& view);
  // Memory that lives as long as this object, aligned to a cache line.
  std::byte* Allocate(size_t bytes);
  // Sets hash_ and bytes_per_token_, once all tensors are there.
  void HashAndCount(const model::ModelConfig& config);

  WeightFormat format_ = WeightFormat::kF32;
  std::vector<HugePageBuffer> owned_;
  size_t used_ = 0, room_ = 0;  // bytes used in the last buffer, and its size
  std::map<std::string, WeightMatrix, std::less<>> matrices_;
  std::map<std::string, std::span<const float>, std::less<>> vectors_;
  int64_t bytes_per_token_ = 0;
  std::string hash_;
};

// Converts all elements of an F32, BF16 or F16 tensor to float32; its bytes may be unaligned.
void WidenTensor(const io::TensorView& tensor, float* out);

// Converts row `row` to float32.
void WidenRow(const WeightMatrix& matrix, int64_t row, float* out);

// torch's name of the type of weights in a file: "float32" or "bfloat16".
std::string_view TorchName(WeightFormat format);

// Writes the weights in their format to `path`, as docs/checkpoint-format.md specifies. `name_of` gives the names
// in the file, for the formats of others; null: our own.
void WriteWeights(const model::ModelConfig& config, const Weights& weights, const std::filesystem::path& path,
                  std::string (*name_of)(std::string_view ours) = nullptr);

}  // namespace lattice::runtime

#endif  // LATTICE_RUNTIME_WEIGHTS_H_
