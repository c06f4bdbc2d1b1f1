#include "text/base64.h"

#include <gtest/gtest.h>

#include <string_view>

namespace lattice::text {
namespace {

// The vectors of RFC 4648.
TEST(Base64, HasPadding) {
  const auto encoded = [](std::string_view text) {
    return Base64({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  };
  EXPECT_EQ(encoded(""), "");
  EXPECT_EQ(encoded("f"), "Zg==");
  EXPECT_EQ(encoded("fo"), "Zm8=");
  EXPECT_EQ(encoded("foo"), "Zm9v");
  EXPECT_EQ(encoded("foobar"), "Zm9vYmFy");
  EXPECT_EQ(encoded("\xff\xfe\xfd"), "//79");
}

}  // namespace
}  // namespace lattice::text
