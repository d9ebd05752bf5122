#include "weft/core/initializer.h"

#include <cmath>
#include <numbers>

#include "weft/core/random.h"

namespace weft {
namespace {

double Deviation(const Initializer& initializer, const Shape& shape) {
  const double kernel = shape.rank() > 2 ? static_cast<double>(shape.Product(2, shape.rank())) : 1;
  const double in = static_cast<double>(shape.dim(shape.rank() < 2 ? 0 : 1)) * kernel;
  const double out = static_cast<double>(shape.dim(0)) * kernel;
  const double fan = initializer.fan == Initializer::Fan::kIn    ? in
                     : initializer.fan == Initializer::Fan::kOut ? out
                                                                 : (in + out) / 2;
  return initializer.a / std::sqrt(fan > 0 ? fan : 1);
}

// Box and Muller's method: a standard Gaussian from the two words of index `i`.
double Gaussian(const RandomStream& random, uint64_t i) {
  const double u = 1 - static_cast<double>(random.Uniform(2 * i)), v = random.Uniform(2 * i + 1);
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

}  // namespace

void Initialize(const Initializer& initializer, uint64_t seed, absl::string_view name, const Tensor& tensor) {
  using Kind = Initializer::Kind;
  const RandomStream random = {.seed = seed ^ StableHash(name)};
  const bool fan = initializer.kind == Kind::kFanGaussian || initializer.kind == Kind::kFanUniform;
  const double deviation = fan ? Deviation(initializer, tensor.type.shape) : 0;
  const double a = initializer.a, b = initializer.b;
  const auto value = [&](uint64_t i) -> double {
    switch (initializer.kind) {
      case Kind::kConstant:
        return a;
      case Kind::kGaussian:
        return a + b * Gaussian(random, i);
      case Kind::kUniform:
        return a + (b - a) * random.Uniform(i);
      case Kind::kFanGaussian:
        return deviation * Gaussian(random, i);
      case Kind::kFanUniform:
        break;
    }
    return deviation * std::sqrt(3.0) * (2 * random.Uniform(i) - 1);
  };
  Dispatch(tensor.type.dtype, [&](auto zero) {
    using T = decltype(zero);
    uint64_t i = 0;
    for (T& x : tensor.span<T>()) x = static_cast<T>(value(i++));
  });
}

}  // namespace weft
