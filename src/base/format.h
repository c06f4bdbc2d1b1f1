// Numbers as text for people.
#ifndef LATTICE_BASE_FORMAT_H_
#define LATTICE_BASE_FORMAT_H_

#include <cstdint>
#include <string>

namespace lattice {

// 1234567 -> "1.23 M"; below 1000 as it is.
std::string CountText(double count);
// "820 MiB", "1.4 GiB"
std::string BytesText(int64_t bytes);
// "4.2 s", "3 min 05 s", "2 h 07 min"
std::string DurationText(double seconds);
// 1234567 -> "1,234,567"
std::string Grouped(int64_t value);
// printf("%.*f")
std::string Fixed(double value, int digits);
// printf("%.*g")
std::string Short(double value, int digits);

}  // namespace lattice

#endif  // LATTICE_BASE_FORMAT_H_
