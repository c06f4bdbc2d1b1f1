#include "base/format.h"

#include <gtest/gtest.h>

namespace lattice {
namespace {

TEST(Format, Counts) {
  EXPECT_EQ(CountText(0), "0");
  EXPECT_EQ(CountText(999), "999");
  EXPECT_EQ(CountText(1000), "1.00 k");
  EXPECT_EQ(CountText(999999), "1.00 M");
  EXPECT_EQ(CountText(12345), "12.3 k");
  EXPECT_EQ(CountText(123456789), "123 M");
}

TEST(Format, Durations) {
  EXPECT_EQ(DurationText(4.24), "4.2 s");
  EXPECT_EQ(DurationText(59.99), "1 min 00 s");
  EXPECT_EQ(DurationText(185), "3 min 05 s");
  EXPECT_EQ(DurationText(7620), "2 h 07 min");
}

TEST(Format, BytesAndGroups) {
  EXPECT_EQ(BytesText(2048), "2 KiB");
  EXPECT_EQ(BytesText(int64_t{820} << 20), "820 MiB");
  EXPECT_EQ(BytesText(int64_t{1536} << 20), "1.5 GiB");
  EXPECT_EQ(Grouped(1234567), "1,234,567");
  EXPECT_EQ(Grouped(-123), "-123");
  EXPECT_EQ(Grouped(-123456), "-123,456");
}

}  // namespace
}  // namespace lattice
