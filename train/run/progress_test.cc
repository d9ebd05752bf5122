#include <gtest/gtest.h>

#include <algorithm>

#include "weft/train/run/metrics.h"

namespace weft {
namespace {

// Returns the text that `show` prints.
template <class F>
std::string Printed(ProgressOptions options, F show) {
  options.out = std::tmpfile();
  Progress progress(options);
  progress.Begin(0, 10);
  show(progress);
  std::rewind(options.out);
  std::string text;
  for (int c; (c = std::fgetc(options.out)) != EOF;) text += static_cast<char>(c);
  std::fclose(options.out);
  return text;
}

TEST(ProgressTest, FormatsALine) {
  EXPECT_EQ(FormatStep(120, 2000, {.loss = 2.34561, .learning_rate = 9.8e-4, .tokens_per_second = 31249}, 65),
            "step 120/2000  loss 2.3456  rate 9.80e-04  31.2k tokens/s  1:05 left");
  EXPECT_EQ(FormatDuration(59.4), "59s");
  EXPECT_EQ(FormatDuration(7207), "2:00:07");
}

TEST(ProgressTest, WritesPlainLinesToAFile) {
  const std::string text = Printed({.log_every = 4}, [](Progress& progress) {
    for (int64_t step = 1; step <= 10; ++step) progress.Step(step, {});
    progress.Evaluation({.step = 10, .seconds = 3, .validation = Metrics::Validation{.loss = 1.5}});
    progress.End();
  });
  EXPECT_EQ(text.find("step 4/10"), 0);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4);  // steps 4, 8 and 10, and the evaluation
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_NE(text.find("step 10/10  validation loss 1.5000  after 3s\n"), std::string::npos);
}

TEST(ProgressTest, PrintsTheLossForAByteIfItIsKnown) {
  const std::string text = Printed({.log_every = 4}, [](Progress& progress) {
    progress.Begin(10, 10);
    progress.Evaluation({.step = 10,
                         .seconds = 3,
                         .validation = Metrics::Validation{.loss = 2.31, .bits_per_byte = 1.63},
                         .ema = Metrics::Validation{.loss = 2.3, .bits_per_byte = 1.62}});
    progress.End();
  });
  EXPECT_EQ(text,
            "step 10/10  validation loss 2.3100 nats a token, 1.6300 bits a byte  of averaged weights 2.3000 nats a "
            "token, 1.6200 bits a byte  after 3s\n");
}

TEST(ProgressTest, PrintsNothingIfQuiet) {
  for (const bool terminal : {false, true}) {
    EXPECT_EQ(Printed({.terminal = terminal, .quiet = true, .log_every = 1},
                      [](Progress& progress) {
                        progress.Say("hello");
                        progress.Step(1, {});
                        progress.Evaluation({.step = 10, .seconds = 3, .validation = Metrics::Validation{.loss = 1.5}});
                        progress.Step(10, {});
                        progress.End();
                      }),
              "");
  }
}

TEST(ProgressTest, RewritesOneLineOnATerminal) {
  const std::string text = Printed({.terminal = true, .between = 1e6}, [](Progress& progress) {
    progress.Step(1, {});
    progress.Step(2, {});  // too soon to show
    progress.Say("hello");
    progress.Step(10, {});
    progress.End();
  });
  EXPECT_EQ(text.find("\r\x1b[Kstep 1/10"), 0);
  EXPECT_EQ(text.find("step 2/10"), std::string::npos);
  EXPECT_NE(text.find("\r\x1b[Khello\n\r\x1b[Kstep 10/10"), std::string::npos);
  EXPECT_EQ(text.back(), '\n');
}

}  // namespace
}  // namespace weft
