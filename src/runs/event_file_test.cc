#include "runs/event_file.h"

#include <gtest/gtest.h>

#include "io/file.h"
#include "io/testing.h"

namespace lattice::runs {
namespace {

// Check values of the CRC catalogue and of RFC 3720, B.4.
TEST(Crc32c, HasItsKnownValues) {
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
}

// tests/test_report.py reads the whole format with a parser of its own.
TEST(EventFile, StartsWithItsVersion) {
  const io::TestDir dir;
  { EventFile(dir / "tb", 4).Write(5, {{"train/loss", 1.5}}); }
  const auto path = std::filesystem::directory_iterator(dir / "tb")->path();
  EXPECT_TRUE(path.filename().string().starts_with("events.out.tfevents."));
  EXPECT_TRUE(io::Says(io::ReadFile(path), {"brain.Event:2", "train/loss"}));
}

}  // namespace
}  // namespace lattice::runs
