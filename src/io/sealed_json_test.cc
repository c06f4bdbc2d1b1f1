#include "io/sealed_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "io/file.h"
#include "io/testing.h"

namespace lattice::io {
namespace {

TEST(SealedJson, ReadsBackAndNoticesEveryFlippedBit) {
  const TestDir dir;
  const nlohmann::json object = {{"step", 12}, {"loss", 1e-300}, {"name", "a"}, {"list", {1, 2}}};
  WriteSealedJson(dir / "x", object);
  EXPECT_EQ(ReadSealedJson(dir / "x"), object);
  const std::string whole = ReadFile(dir / "x");
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string bad = whole;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    dir.Put("bad", bad);
    EXPECT_TRUE(Says(ErrorOf([&] { ReadSealedJson(dir / "bad"); }), {"bad"})) << bit;
  }
  for (size_t size = 0; size < whole.size(); ++size) {
    dir.Put("bad", whole.substr(0, size));
    EXPECT_NE(ErrorOf([&] { ReadSealedJson(dir / "bad"); }), "no error") << size;
  }
}

}  // namespace
}  // namespace lattice::io
