#include "weft/lab/ranks/measure_network.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

// A busy machine only makes messages slower.
TEST(MeasureNetworkTest, FindsTheImitatedNetwork) {
  const Network network = MeasureImitatedNetwork({.latency_seconds = 2e-3, .bytes_per_second = 200e6});
  EXPECT_GE(network.latency_seconds, 2e-3);
  EXPECT_LE(network.latency_seconds, 20e-3);
  EXPECT_LE(network.bytes_per_second, 210e6);
  EXPECT_GE(network.bytes_per_second, 40e6);
}

}  // namespace
}  // namespace weft
