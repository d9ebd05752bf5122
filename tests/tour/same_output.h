// SameOutput compares the output of a command with the output that a page shows.
//
//   EXPECT_TRUE(SameOutput("loss 1.2345 after 0.83 s\n", "loss 1.2346 after … s\n"));
#ifndef WEFT_TESTS_TOUR_SAME_OUTPUT_H_
#define WEFT_TESTS_TOUR_SAME_OUTPUT_H_

#include <gtest/gtest.h>

#include <string>

namespace weft {

// Expects `got` to be the text `shown`, in which "…" stands for any text in a line, and a line of "…" for any lines.
// White space only separates words. A number with decimals may differ by two in the last digit, because CPUs differ in
// rounding.
testing::AssertionResult SameOutput(const std::string& got, const std::string& shown);

// Reports whether `text`, a number, is a rounding of `number`, such as "1.2" of 1.234.
bool Rounds(const std::string& text, double number);

}  // namespace weft

#endif  // WEFT_TESTS_TOUR_SAME_OUTPUT_H_
