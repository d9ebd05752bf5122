// RunSpelling compiles one spelling of a pattern. It reports the ops of the compiled graph, and how far its values and
// gradients are from those of the graph as spelt.
//
//   const SpellingResult norm = RunSpelling({.types = "[3,37] [37]", .record = MyNorm}, kF32);
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
  const char* types = "";                   // types of the inputs, as in OpExample::in
  VarList (*record)(VarSpan in) = nullptr;  // records the spelling; its results are floats
  const char* declined = "";                // part of the reason why it is not raised; "" if it is raised
  double low = -1, high = 1;                // float inputs are uniform over [low, high)
  int below = 2;                            // integer inputs are drawn from 0 .. below - 1
};

struct SpellingResult {
  std::vector<std::string> ops;       // names of the ops in the raised graph of values and gradients
  std::vector<std::string> declined;  // reasons why patterns were not raised
  int raised = 0;                     // number of raised patterns
  // The largest difference between the graph with raised patterns and the graph as spelt. It is relative to 1 + |x|,
  // where x is the value as spelt. Compares all values, and the gradients of a weighted sum of all values by each float
  // input.
  double difference = 0;
};

// Types without dtype get `dtype`. Reports failures through GoogleTest.
SpellingResult RunSpelling(const Spelling& spelling, DType dtype);

}  // namespace weft

#endif  // WEFT_TESTS_SPELLING_H_
