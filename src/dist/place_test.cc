// The environment of a rank is read as its launcher means it, and mistakes in it are named.
#include "dist/place.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <map>

#include "base/error.h"
#include "dist/network.h"

namespace lattice::dist {
namespace {

class PlaceTest : public ::testing::Test {
 protected:
  PlaceTest() {
    for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT",
                             "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_USE_AGENT_STORE", kListenerVariable})
      ::unsetenv(name);
  }
  static void Set(const std::map<std::string, std::string>& variables) {
    for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
  }
  static std::string ErrorOf(const std::map<std::string, std::string>& variables) {
    Set(variables);
    try {
      PlaceFromEnvironment();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(PlaceTest, OneProcessHasNoPlace) {
  EXPECT_FALSE(PlaceFromEnvironment());
  Set({{"RANK", "0"}, {"WORLD_SIZE", "1"}});
  EXPECT_FALSE(PlaceFromEnvironment());
}

TEST_F(PlaceTest, TorchrunsVariablesAreRead) {
  Set({{"RANK", "3"},
       {"WORLD_SIZE", "4"},
       {"LOCAL_RANK", "1"},
       {"MASTER_ADDR", "node-a"},
       {"MASTER_PORT", "29500"},
       {"TORCHELASTIC_RESTART_COUNT", "2"},
       {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  const std::optional<Place> place = PlaceFromEnvironment();
  ASSERT_TRUE(place);
  EXPECT_EQ(place->rank, 3);
  EXPECT_EQ(place->size, 4);
  EXPECT_EQ(place->local_rank, 1);
  EXPECT_EQ(place->address, "node-a");
  EXPECT_EQ(place->port, 29500);
  EXPECT_EQ(place->attempt, 2);
  EXPECT_TRUE(place->store_is_there);
}

TEST_F(PlaceTest, MistakesAreNamed) {
  EXPECT_NE(ErrorOf({{"RANK", "1"}}).find("WORLD_SIZE is not"), std::string::npos);
  EXPECT_NE(ErrorOf({{"WORLD_SIZE", "2"}}).find("MASTER_ADDR is not"), std::string::npos);
  EXPECT_NE(ErrorOf({{"RANK", "2"}}).find("RANK=2 is no number from 0 to 1"), std::string::npos);
  EXPECT_NE(ErrorOf({{"RANK", "1x"}}).find("RANK=1x"), std::string::npos);
  EXPECT_NE(
      ErrorOf({{"RANK", "1"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "70000"}}).find("MASTER_PORT=70000"),
      std::string::npos);
}

TEST(NetworkTest, ListensOnOneAddress) {
  const int socket = Listen("127.0.0.1", 0);
  const int port = PortOf(socket);
  EXPECT_GT(port, 0);
  EXPECT_THROW(Listen("127.0.0.1", port), Error) << "the port is in use";
  // Another address of the loopback network is free, so not all interfaces are taken.
  const int other = Listen("127.0.0.2", port);
  ::close(other);
  ::close(socket);
}

TEST(NetworkTest, WrongAddressesAreRefused) {
  EXPECT_THROW(Listen("192.0.2.1", 0), Error);  // reserved for documentation: no host has it
  EXPECT_THROW(Resolve("no-such-host.invalid"), Error);
  EXPECT_EQ(Resolve("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(OwnAddressTowards("127.0.0.1"), "127.0.0.1");
}

}  // namespace
}  // namespace lattice::dist
