// Arithmetic checks calculations as a reader would write them, such as "d = 64" and "√d = 8" below it.
//
//   Arithmetic arithmetic;
//   EXPECT_EQ(arithmetic.Check("y = 2 · 3 + 1 = 7"), "");
//   EXPECT_EQ(arithmetic.Check("y / 3 = 2.33"), "");        // rounded
//   EXPECT_EQ(arithmetic.Check("y / 3 = 2.34"), "2.34 should be 2.3333333333");
#ifndef WEFT_TESTS_TOUR_ARITHMETIC_H_
#define WEFT_TESTS_TOUR_ARITHMETIC_H_

#include <map>
#include <string>

namespace weft {

class Arithmetic {
 public:
  // Checks that all sides of the line's equations are equal, and returns the first difference or error, or "". If the
  // first side is a name without a value, the line gives it one. A number with decimals, or after "≈", stands for all
  // numbers that are rounded to it. Known are + - · × / ^, parentheses, √, exp, log, sin, cos and tanh. A text after
  // '#' is a comment.
  std::string Check(std::string line);

 private:
  std::map<std::string, double> values_;  // by name
};

}  // namespace weft

#endif  // WEFT_TESTS_TOUR_ARITHMETIC_H_
