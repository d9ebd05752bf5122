#include "weft/lab/network.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(NetworkTest, ReadsUnitsAndTopologies) {
  const absl::StatusOr<Network> network = ParseNetwork("25us,10Gbit");
  ASSERT_TRUE(network.ok()) << network.status();
  EXPECT_DOUBLE_EQ(network->latency_seconds, 25e-6);
  EXPECT_DOUBLE_EQ(network->bytes_per_second, 1.25e9);
  EXPECT_DOUBLE_EQ(network->LinkSeconds(1.25e9, 0, 99), 1);
  for (const char* text :
       {"25us,10Gbit", "1.5ms,800Mbit", "2s,1Tbit", "0ms,12kbit", "30ns,3bit", "5us,1Gbit,tree:16:4"}) {
    const absl::StatusOr<Network> parsed = ParseNetwork(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(ToString(*parsed), text);
  }
  EXPECT_TRUE(ParseNetwork("25us,10Gbit,flat").ok());
}

TEST(NetworkTest, MessagesBetweenSwitchesShareTheUplink) {
  const absl::StatusOr<Network> network = ParseNetwork("0s,8Gbit,tree:4:2.5");
  ASSERT_TRUE(network.ok()) << network.status();
  EXPECT_DOUBLE_EQ(network->LinkSeconds(1e9, 4, 7), 1);
  EXPECT_DOUBLE_EQ(network->LinkSeconds(1e9, 3, 4), 2.5);
}

TEST(NetworkTest, NamesWhatIsNoNetwork) {
  for (const char* text : {"", "25us", "25,10Gbit", "25us,10", "-1us,10Gbit", "25us,0Gbit", "25us,10GB", "us,10Gbit",
                           "25us,10Gbit,ring", "25us,10Gbit,tree", "25us,10Gbit,tree:0:4", "25us,10Gbit,tree:4:0.5",
                           "nanus,10Gbit", "25us,10Gbit,flat,flat"}) {
    const absl::StatusOr<Network> network = ParseNetwork(text);
    ASSERT_FALSE(network.ok()) << text;
    EXPECT_EQ(network.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(network.status().message().find("such as 25us,10Gbit"), std::string::npos);
  }
}

// A busy machine only makes messages slower.
TEST(NetworkTest, MeasuresTheImitatedNetwork) {
  const Network network = MeasureImitatedNetwork({.latency_seconds = 2e-3, .bytes_per_second = 200e6});
  EXPECT_GE(network.latency_seconds, 2e-3);
  EXPECT_LE(network.latency_seconds, 20e-3);
  EXPECT_LE(network.bytes_per_second, 210e6);
  EXPECT_GE(network.bytes_per_second, 40e6);
}

}  // namespace
}  // namespace weft
