// What a spelling of a pattern becomes, and whether it still computes the same.
//
//   const SpellingResult norm = RunSpelling({{.types = "[3,37] [37]", .record = MyNorm}, kF32);
//   EXPECT_THAT(norm.ops, Contains("rms_norm"));
//   EXPECT_LT(norm.difference, 1e-5);
#ifndef WEFT_TESTS_SPELLING_H_
#define WEFT_TESTS_SPELLING_H_

#include <string>
#include <vector>

#include "weft/core/tape.h"

namespace weft {

struct Spelling {
  const char* name = "";
  const char* types = "";                   // of the inputs, as in OpExample::in
  VarList (*record)(VarSpan in) = nullptr;  // floats
  const char* declined = "";                // why it is left alone; part of it, empty where it is raised
  double low = -1, high = 1;                // float inputs are uniform over [low, high)
  int below = 2;                            // integer inputs are drawn from 0 .. below - 1
};

struct SpellingResult {
  std::vector<std::string> ops;       // of the graph of values and gradients, raised
  std::vector<std::string> declined;  // reasons
  int raised = 0;                     // patterns
  // The largest difference of any value, and of any gradient of a weighted sum of all values by any float input,
  // between the graph with raised patterns and the one as spelt: relative to 1 + |the latter|.
  double difference = 0;
};

// Free dtypes in the types are `dtype`. Failures go through GoogleTest.
SpellingResult RunSpelling(const Spelling& spelling, DType dtype);

}  // namespace weft

#endif  // WEFT_TESTS_SPELLING_H_
