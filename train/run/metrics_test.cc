#include "weft/train/run/metrics.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

Metrics Line(int64_t step) {
  return {.step = step,
          .tokens = step * 768,
          .seconds = 0.5 * static_cast<double>(step),
          .training =
              Metrics::Training{.loss = 4.1, .learning_rate = 1e-3, .gradient_norm = 0.1, .tokens_per_second = 3e4}};
}

TEST(MetricsTest, PrintsALineThatReadsBack) {
  Metrics line = Line(3);
  EXPECT_EQ(ToJsonLine(line),
            R"({"step":3,"tokens":2304,"seconds":1.5,"train_loss":4.1,"learning_rate":0.001,"grad_norm":0.1,)"
            R"("tokens_per_second":30000.0})");
  line.validation = {.loss = 1.0 / 3};
  EXPECT_EQ(
      ToJsonLine(line),
      R"({"step":3,"tokens":2304,"seconds":1.5,"train_loss":4.1,"val_loss":0.3333333333333333,"learning_rate":0.001,)"
      R"("grad_norm":0.1,"tokens_per_second":30000.0})");
  EXPECT_EQ(ToJsonLine({.step = 1, .memory = 123456789}), R"({"step":1,"tokens":0,"seconds":0.0,"memory":123456789})");
}

TEST(MetricsTest, HasTheLossForAByte) {
  const Metrics line = {.step = 1, .validation = Metrics::Validation{.loss = 2.5, .bits_per_byte = 1.5}};
  EXPECT_EQ(ToJsonLine(line), R"({"step":1,"tokens":0,"seconds":0.0,"val_loss":2.5,"val_bits_per_byte":1.5})");
}

}  // namespace
}  // namespace weft
