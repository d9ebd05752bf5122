// An Initializer is the distribution of a parameter's initial values. The values depend only on the distribution, the
// seed, and the parameter's name and type.
//
//   Var w = tape.Parameter("weight", {kF32, {128, 64}}, XavierUniform());
//
// A parameter [out, in] has fan_in = in and fan_out = out. For [out, in, k...], both are multiplied by the product of
// all k. A vector has fan_in = fan_out = its size.
#ifndef WEFT_CORE_INITIALIZER_H_
#define WEFT_CORE_INITIALIZER_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "weft/core/tensor.h"

namespace weft {

struct Initializer {
  enum class Kind : uint8_t { kConstant, kGaussian, kTruncated, kUniform, kFanGaussian, kFanUniform, kOrthogonal };
  enum class Fan : uint8_t { kIn, kAverage };

  Kind kind = Kind::kConstant;
  Fan fan = Fan::kIn;
  // kConstant has the value a. kGaussian and kTruncated have mean a and standard deviation b (before truncation).
  // kUniform goes from a to b. The kinds with fans have variance a² / fan. kOrthogonal has gain a.
  float a = 0, b = 0;

  friend bool operator==(const Initializer&, const Initializer&) = default;
};

constexpr Initializer Constant(float value) { return {.a = value}; }
constexpr Initializer Zeros() { return Constant(0); }
constexpr Initializer Ones() { return Constant(1); }
constexpr Initializer Gaussian(float deviation, float mean = 0) {
  return {.kind = Initializer::Kind::kGaussian, .a = mean, .b = deviation};
}
// A Gaussian in which values more than two deviations from the mean are drawn again. `deviation`: the standard
// deviation before this truncation.
constexpr Initializer TruncatedGaussian(float deviation, float mean = 0) {
  return {.kind = Initializer::Kind::kTruncated, .a = mean, .b = deviation};
}
constexpr Initializer Uniform(float low, float high) {
  return {.kind = Initializer::Kind::kUniform, .a = low, .b = high};
}
// The variance is gain² · 2 / (fan_in + fan_out) (Glorot and Bengio, 2010).
constexpr Initializer XavierGaussian(float gain = 1) {
  return {.kind = Initializer::Kind::kFanGaussian, .fan = Initializer::Fan::kAverage, .a = gain};
}
constexpr Initializer XavierUniform(float gain = 1) {
  return {.kind = Initializer::Kind::kFanUniform, .fan = Initializer::Fan::kAverage, .a = gain};
}
// The variance is 2 / fan_in (He et al., 2015).
constexpr Initializer HeGaussian() { return {.kind = Initializer::Kind::kFanGaussian, .a = 1.41421356f}; }
constexpr Initializer HeUniform() { return {.kind = Initializer::Kind::kFanUniform, .a = 1.41421356f}; }
// The variance is 1 / fan_in (LeCun et al., "Efficient BackProp", 1998).
constexpr Initializer LeCunGaussian() { return {.kind = Initializer::Kind::kFanGaussian, .a = 1}; }
constexpr Initializer LeCunUniform() { return {.kind = Initializer::Kind::kFanUniform, .a = 1}; }

// `gain` times a matrix with orthonormal rows or, if it has fewer columns than rows, orthonormal columns (Saxe et al.,
// 2014). Its rows are axis 0 of the parameter; its columns are all other axes together.
constexpr Initializer Orthogonal(float gain = 1) { return {.kind = Initializer::Kind::kOrthogonal, .a = gain}; }

// Writes the initial values of the parameter `name` to `tensor`. For i32 and bool the kind must be kConstant, which the
// tape checks.
void Initialize(const Initializer& initializer, uint64_t seed, absl::string_view name, const Tensor& tensor);
// Does the same for a part of a parameter of shape `whole`: `tensor` gets its elements from `begin` on.
void InitializePart(const Initializer& initializer, uint64_t seed, absl::string_view name, const Shape& whole,
                    int64_t begin, const Tensor& tensor);

}  // namespace weft

#endif  // WEFT_CORE_INITIALIZER_H_
