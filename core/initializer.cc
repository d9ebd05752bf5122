#include "weft/core/initializer.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <vector>

#include "weft/core/block_formats.h"
#include "weft/core/random.h"

namespace weft {
namespace {

// Returns the standard deviation a / √fan.
double Deviation(const Initializer& initializer, const Shape& shape) {
  const double kernel = shape.rank() > 2 ? static_cast<double>(shape.Product(2, shape.rank())) : 1;
  const double in = static_cast<double>(shape.dim(shape.rank() < 2 ? 0 : 1)) * kernel;
  const double out = static_cast<double>(shape.dim(0)) * kernel;
  const double fan = initializer.fan == Initializer::Fan::kIn ? in : (in + out) / 2;
  return initializer.a / std::sqrt(fan > 0 ? fan : 1);
}

// Returns a standard Gaussian number, made from the random words 2i and 2i + 1 by the method of Box and Muller.
double Gaussian(const RandomStream& random, uint64_t i) {
  const double u = 1 - static_cast<double>(random.Uniform(2 * i)), v = random.Uniform(2 * i + 1);
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

double TruncatedGaussian(const RandomStream& random, uint64_t i) {
  constexpr uint64_t kAttempt = uint64_t{1} << 48;  // the maximum number of elements, so no two attempts share an index
  for (uint64_t index = i;; index += kAttempt) {
    if (const double x = Gaussian(random, index); std::abs(x) <= 2) return x;
  }
}

// Returns a matrix [out, in] with orthonormal rows or, if there are fewer columns, orthonormal columns. Each row or
// column starts as Gaussian numbers. Its projections on the earlier ones are subtracted (Gram and Schmidt), twice to
// remove rounding errors. Then it is scaled to length 1.
std::vector<double> OrthogonalMatrix(const RandomStream& random, int64_t out, int64_t in) {
  const bool by_row = out <= in;
  const int64_t count = std::min(out, in), size = std::max(out, in);
  std::vector<double> vectors(static_cast<size_t>(count * size));
  for (int64_t v = 0; v < count; ++v) {
    double* const x = vectors.data() + v * size;
    for (int64_t i = 0; i < size; ++i) x[i] = Gaussian(random, static_cast<uint64_t>(v * size + i));
    for (int64_t before = 0; before < 2 * v; ++before) {
      const double* const y = vectors.data() + before % v * size;
      const double product = std::inner_product(x, x + size, y, 0.0);
      for (int64_t i = 0; i < size; ++i) x[i] -= product * y[i];
    }
    const double norm = std::sqrt(std::inner_product(x, x + size, x, 0.0));
    for (int64_t i = 0; i < size; ++i) x[i] /= norm;
  }
  if (by_row) return vectors;
  std::vector<double> columns(vectors.size());
  for (int64_t v = 0; v < count; ++v) {
    for (int64_t i = 0; i < size; ++i) columns[i * count + v] = vectors[v * size + i];
  }
  return columns;
}

}  // namespace

void Initialize(const Initializer& initializer, uint64_t seed, absl::string_view name, const Tensor& tensor) {
  InitializePart(initializer, seed, name, tensor.type.shape, /*begin=*/0, tensor);
}

void InitializePart(const Initializer& initializer, uint64_t seed, absl::string_view name, const Shape& whole,
                    int64_t begin, const Tensor& tensor) {
  using Kind = Initializer::Kind;
  const RandomStream random = {.seed = seed ^ StableHash(name)};
  const Kind kind = initializer.kind;
  const bool fan = kind == Kind::kFanGaussian || kind == Kind::kFanUniform;
  const double deviation = fan ? Deviation(initializer, whole) : 0;
  const double a = initializer.a, b = initializer.b;
  std::vector<double> matrix;
  if (kind == Kind::kOrthogonal && whole.elements() > 0) {
    const int64_t out = whole.dim(0);
    matrix = OrthogonalMatrix(random, out, whole.elements() / out);
  }
  const auto value = [&](uint64_t i) -> double {
    if (kind == Kind::kConstant) return a;
    if (kind == Kind::kGaussian) return a + b * Gaussian(random, i);
    if (kind == Kind::kTruncated) return a + b * TruncatedGaussian(random, i);
    if (kind == Kind::kOrthogonal) return a * matrix[i];
    if (kind == Kind::kUniform) return a + (b - a) * random.Uniform(i);
    if (kind == Kind::kFanGaussian) return deviation * Gaussian(random, i);
    return deviation * std::sqrt(3.0) * (2 * random.Uniform(i) - 1);
  };
  auto i = static_cast<uint64_t>(begin);
  if (OnlyStoresWeights(tensor.type.dtype)) {
    std::vector<float> row(static_cast<size_t>(tensor.type.shape.cols()));
    for (int64_t r = 0; r < tensor.type.shape.rows(); ++r) {
      for (float& x : row) x = static_cast<float>(value(i++));
      EncodeWeight(row, tensor.type.dtype, tensor.data + r * BytesOf(tensor.type.dtype, tensor.type.shape.cols()));
    }
    return;
  }
  Dispatch(tensor.type.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (T& x : tensor.span<T>()) x = static_cast<T>(value(i++));
  });
}

}  // namespace weft
