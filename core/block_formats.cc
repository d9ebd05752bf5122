// Except in Q8_0, the scale and the minimum of a part of a block are found by trying several of them. For the integers
// that a trial gives, the best scale and minimum follow by least squares. Then each element is rounded by the scale and
// the minimum as they are stored.
#include "weft/core/block_formats.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/core/block_layouts.h"

namespace weft {
namespace {

constexpr int64_t kMaxBlock = 256;  // elements of a block of any format

// Rounds to the nearest integer, ties to even, as std::nearbyint does, for |x| < 2^22. The sum has no bits for
// fractions. This form can be compiled to vector instructions.
float Round(float x) {
  constexpr float kNoFractions = 0x1.8p23f;
  return (x + kNoFractions) - kNoFractions;
}

// Returns the element with the largest magnitude, with its sign. Returns NaN if an element is not finite.
template <int kCount>
float Extreme(const float* x) {
  float extreme = 0, sum = 0;
  for (int i = 0; i < kCount; ++i) {
    if (std::abs(x[i]) > std::abs(extreme)) extreme = x[i];
    sum += x[i] * 0;  // 0, or NaN after an element that is not finite
  }
  return extreme + sum;
}

void EncodeBlock(Q8_0Layout, const float* x, std::byte* out) {
  constexpr int kElements = Q8_0Layout::kElements;
  const float scale = std::abs(Extreme<kElements>(x)) / 127;
  Q8_0Layout::SetScales(out, &scale, nullptr);
  const float inverse = scale > 0 ? 1 / scale : 0;
  for (int i = 0; i < kElements; ++i) {
    const float q = std::isnan(scale) ? 0 : std::clamp(Round(x[i] * inverse), -127.0f, 127.0f);
    Q8_0Layout::Put(out, i, static_cast<int>(q) + Q8_0Layout::kOffset);
  }
}

// Returns the sum of term(i) over kCount elements. Adds parts of 4, so that the compiler can add vectors.
template <int kCount, class Term>
float SumOver(Term term) {
  float sums[4] = {};
  for (int i = 0; i < kCount; i += 4) {
    for (int k = 0; k < 4; ++k) sums[k] += term(i + k);
  }
  return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

// A scale and a minimum of the elements of a part, and the sum of the squared errors.
struct Fit {
  float scale = 0, minimum = 0;
  float error = std::numeric_limits<float>::infinity();
};

// Rounds the elements by a scale and a minimum. For the integers that this gives, returns the best scale and minimum by
// least squares.
template <class Layout>
Fit Improve(const float* x, float scale, float minimum) {
  constexpr int kCount = Layout::kElements;
  constexpr float kLow = -Layout::kOffset, kHigh = Layout::kMax - Layout::kOffset;
  float q[kCount];
  const float inverse = scale != 0 ? 1 / scale : 0;
  for (int i = 0; i < kCount; ++i) {
    const float rounded = Round((x[i] - minimum) * inverse), below = rounded < kHigh ? rounded : kHigh;
    q[i] = below > kLow ? below : kLow;
  }
  const float squares = SumOver<kCount>([&](int i) { return q[i] * q[i]; });
  const float products = SumOver<kCount>([&](int i) { return x[i] * q[i]; });
  Fit fit = {.scale = squares > 0 ? products / squares : scale};
  if constexpr (Layout::kHasMinimum) {
    const float count = kCount, sum = SumOver<kCount>([&](int i) { return x[i]; });
    const float sum_q = SumOver<kCount>([&](int i) { return q[i]; });
    const float determinant = count * squares - sum_q * sum_q;
    const float slope = determinant > 0 ? (count * products - sum * sum_q) / determinant : 0;
    const float least = (sum - slope * sum_q) / count;
    if (least <= Layout::kLargestMinimum) fit = {.scale = slope, .minimum = least};
  }
  fit.error = SumOver<kCount>([&](int i) {
    const float difference = x[i] - (fit.scale * q[i] + fit.minimum);
    return difference * difference;
  });
  return fit;
}

// Tries several scales, which divide the range of the elements into nearly the number of steps of the format. Returns
// the scale and the minimum with the smallest squared error.
template <class Layout>
Fit BestFit(const float* x) {
  constexpr float kSteps[] = {0, -0.5f, -1, 0.5f, 1};  // added to the number of steps
  constexpr int kCount = Layout::kElements;
  float minimum = 0, range;
  if constexpr (Layout::kHasMinimum) {
    const auto [low, high] = std::minmax_element(x, x + kCount);
    minimum = std::min(*low, Layout::kLargestMinimum);
    range = *high - minimum;
  } else {
    range = Extreme<kCount>(x);
  }
  const float steps = Layout::kHasMinimum ? Layout::kMax : -Layout::kOffset;
  Fit best;
  const auto attempt = [&](float divisor) {
    const Fit fit = Improve<Layout>(x, range / divisor, minimum);
    if (fit.error < best.error) best = fit;
  };
  for (float more : kSteps) attempt(steps > 0 ? steps + more : steps - more);
  if (!Layout::kHasMinimum) attempt(-1 - steps);  // the extreme element as the largest integer
  return best;
}

template <class Layout>
void EncodeBlock(Layout, const float* x, std::byte* out) {
  constexpr int kCount = Layout::kElements, kParts = Layout::kParts;
  std::fill_n(out, RowOf(Layout::kDType).bytes, std::byte{0});
  if (const float extreme = Extreme<kParts * kCount>(x); std::isnan(extreme)) {
    return StoreNumber(HalfBits(extreme), out + Layout::kScaleAt);
  }
  float scales[kParts], minima[kParts];
  for (int p = 0; p < kParts; ++p) {
    const Fit fit = BestFit<Layout>(x + p * kCount);
    scales[p] = fit.scale;
    minima[p] = fit.minimum;
  }
  Layout::SetScales(out, scales, minima);
  for (int p = 0; p < kParts; ++p) {
    const float scale = Layout::Scale(out, p, FromHalfBits), minimum = Layout::Minimum(out, p, FromHalfBits);
    const float inverse = scale != 0 ? 1 / scale : 0;
    for (int i = p * kCount; i < (p + 1) * kCount; ++i) {
      const float u = Round((x[i] - minimum) * inverse) + Layout::kOffset;
      Layout::Put(out, i, static_cast<int>(std::clamp<float>(u, 0, Layout::kMax)));
    }
  }
}

template <class Layout>
void DecodeBlock(const std::byte* block, float* x) {
  for (int p = 0, i = 0; p < Layout::kParts; ++p) {
    const float scale = Layout::Scale(block, p, FromHalfBits), minimum = Layout::Minimum(block, p, FromHalfBits);
    for (int end = i + Layout::kElements; i < end; ++i) {
      x[i] = scale * static_cast<float>(Layout::Get(block, i) - Layout::kOffset) + minimum;
    }
  }
}

// The bits of an f16, with the conversions that EncodeNumbers and DecodeNumbers need.
struct F16 {
  explicit F16(float value) : bits(HalfBits(value)) {}
  operator float() const { return FromHalfBits(bits); }
  uint16_t bits;
};

template <class T>
void EncodeNumbers(absl::Span<const float> values, std::byte* out) {
  absl::c_transform(values, reinterpret_cast<T*>(out), [](float value) { return T(value); });
}
template <class T>
void DecodeNumbers(const std::byte* bytes, absl::Span<float> values) {
  std::copy_n(reinterpret_cast<const T*>(bytes), values.size(), values.begin());
}

// Encode and decode a row by functions of one block. Zeros fill the last block.
template <class Layout>
void EncodeBlocks(absl::Span<const float> values, std::byte* out) {
  constexpr DTypeRow kRow = RowOf(Layout::kDType);
  static_assert(kMaxBlock % kRow.block == 0 && kRow.block == Layout::kParts * Layout::kElements);
  for (size_t i = 0; i < values.size(); i += kRow.block, out += kRow.bytes) {
    std::array<float, kRow.block> block = {};
    absl::c_copy(values.subspan(i, kRow.block), block.begin());
    EncodeBlock(Layout(), block.data(), out);
  }
}
template <class Layout>
void DecodeBlocks(const std::byte* bytes, absl::Span<float> values) {
  constexpr DTypeRow kRow = RowOf(Layout::kDType);
  for (; values.size() >= kRow.block; values.remove_prefix(kRow.block), bytes += kRow.bytes) {
    DecodeBlock<Layout>(bytes, values.data());
  }
  if (values.empty()) return;
  std::array<float, kRow.block> last;
  DecodeBlock<Layout>(bytes, last.data());
  std::copy_n(last.begin(), values.size(), values.begin());
}

template <class Layout>
bool HasFiniteScales(const std::byte* block) {
  for (int p = 0; p < Layout::kParts; ++p) {
    // Zero, or NaN if a number is not finite.
    if (Layout::Scale(block, p, FromHalfBits) * 0 + Layout::Minimum(block, p, FromHalfBits) * 0 != 0) return false;
  }
  return true;
}

struct WeightFormat {
  DType dtype;
  void (*encode)(absl::Span<const float> values, std::byte* out);
  void (*decode)(const std::byte* bytes, absl::Span<float> values);
  bool (*is_finite)(const std::byte* block) = nullptr;  // for block formats
};
template <class... Layouts>
constexpr auto FormatsOf(std::tuple<Layouts...>) {
  return std::to_array<WeightFormat>(
      {{kF32, EncodeNumbers<float>, DecodeNumbers<float>},
       {kBF16, EncodeNumbers<BF16>, DecodeNumbers<BF16>},
       {kF16, EncodeNumbers<F16>, DecodeNumbers<F16>},
       {Layouts::kDType, EncodeBlocks<Layouts>, DecodeBlocks<Layouts>, HasFiniteScales<Layouts>}...});
}
constexpr auto kFormats = FormatsOf(BlockLayouts());

const WeightFormat& FormatOf(DType dtype) {
  const auto format = absl::c_find_if(kFormats, [&](const WeightFormat& f) { return f.dtype == dtype; });
  WEFT_CHECK(format != std::end(kFormats));
  return *format;
}

}  // namespace

bool IsFiniteBlock(DType dtype, const std::byte* block) { return FormatOf(dtype).is_finite(block); }

void EncodeWeight(absl::Span<const float> values, DType to, std::byte* out) { FormatOf(to).encode(values, out); }

void DecodeWeight(DType from, const std::byte* bytes, absl::Span<float> values) {
  FormatOf(from).decode(bytes, values);
}

std::vector<std::string> WeightFormatNames() {
  std::vector<std::string> names;
  for (const WeightFormat& format : kFormats) names.emplace_back(Name(format.dtype));
  return names;
}

std::string WeightFormatList(bool with_bytes) {
  std::string list;
  for (const WeightFormat& format : kFormats) {
    const DType dtype = format.dtype;
    const std::string bytes = absl::StrCat(std::round(BytesOfElement(dtype) * 100) / 100);
    absl::StrAppend(&list,
                    list.empty()                            ? ""
                    : dtype == std::end(kFormats)[-1].dtype ? " or "
                                                            : ", ",
                    with_bytes ? absl::StrCat(bytes, " (", Name(dtype), ")") : std::string(Name(dtype)));
  }
  return list;
}

void ConvertWeight(const Tensor& from, const Tensor& to) {
  const DType dtype = from.type.dtype;
  if (dtype == to.type.dtype) {
    std::memcpy(to.data, from.data, from.type.bytes());
    return;
  }
  std::array<float, 16 * kMaxBlock> values;
  const int64_t rows = from.type.shape.rows(), cols = from.type.shape.cols();
  const std::byte* row = from.data;
  std::byte* out = to.data;
  for (int64_t r = 0; r < rows && cols > 0; ++r, row += BytesOf(dtype, cols), out += BytesOf(to.type.dtype, cols)) {
    for (int64_t begin = 0; begin < cols; begin += static_cast<int64_t>(values.size())) {
      const auto part = absl::MakeSpan(values).first(std::min(values.size(), static_cast<size_t>(cols - begin)));
      DecodeWeight(dtype, row + BytesOf(dtype, begin), part);
      EncodeWeight(part, to.type.dtype, out + BytesOf(to.type.dtype, begin));
    }
  }
}

}  // namespace weft
