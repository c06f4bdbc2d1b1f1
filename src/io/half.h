// float16 and bfloat16 as stored in files, widened to float32.
#ifndef LATTICE_IO_HALF_H_
#define LATTICE_IO_HALF_H_

#include <bit>
#include <cmath>
#include <cstdint>

namespace lattice::io {

inline float WidenF16(uint16_t half) {
  const uint32_t sign = uint32_t{half & 0x8000u} << 16, exponent = (half >> 10) & 31, mantissa = half & 1023;
  if (exponent == 0) return std::copysign(std::ldexp(static_cast<float>(mantissa), -24), sign ? -1.0f : 1.0f);
  const uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | (wide << 23) | (mantissa << 13));
}

inline float WidenBf16(uint16_t half) { return std::bit_cast<float>(uint32_t{half} << 16); }

}  // namespace lattice::io

#endif  // LATTICE_IO_HALF_H_
