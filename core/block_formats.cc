// A Q4_0 scale is found by trying several scales near the largest magnitude divided by 8. For the integers that a scale
// gives, the best scale follows by least squares.
#include "weft/core/block_formats.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "weft/base/status.h"

namespace weft {
namespace {

constexpr int kElements = 32, kHalf = kElements / 2;  // of a block of Q8_0 or Q4_0
constexpr int64_t kMaxBlock = 256;                    // elements of a block of any format

// Rounds to the nearest integer, ties to even, as std::nearbyint does, for |x| < 2^22. The sum has no bits for
// fractions. This form can be compiled to vector instructions.
float Round(float x) {
  constexpr float kNoFractions = 0x1.8p23f;
  return (x + kNoFractions) - kNoFractions;
}

// Returns the element with the largest magnitude, with its sign. Returns NaN if an element is not finite.
float Extreme(const float* x) {
  float extreme = 0, sum = 0;
  for (int i = 0; i < kElements; ++i) {
    if (std::abs(x[i]) > std::abs(extreme)) extreme = x[i];
    sum += x[i] * 0;  // 0, or NaN after an element that is not finite
  }
  return extreme + sum;
}

void EncodeQ8(const float* x, std::byte* out) {
  const float scale = std::abs(Extreme(x)) / 127;
  const uint16_t half = HalfBits(scale);
  std::memcpy(out, &half, sizeof(half));
  const float inverse = scale > 0 ? 1 / scale : 0;
  for (int i = 0; i < kElements; ++i) {
    const float q = std::isnan(scale) ? 0 : std::clamp(Round(x[i] * inverse), -127.0f, 127.0f);
    out[sizeof(half) + i] = static_cast<std::byte>(static_cast<int8_t>(q));
  }
}

// Returns the sum of term(i) over a block. Adds halves, so that the compiler can add vectors.
template <class Term>
float SumOverBlock(Term term) {
  float sums[kElements];
  for (int i = 0; i < kElements; ++i) sums[i] = term(i);
  for (int i = 0; i < 16; ++i) sums[i] += sums[i + 16];
  for (int i = 0; i < 8; ++i) sums[i] += sums[i + 8];
  for (int i = 0; i < 4; ++i) sums[i] += sums[i + 4];
  return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

// The integers and the scale of one block of Q4_0, and the sum of the squared errors.
struct Q4Block {
  float q[kElements] = {};
  uint16_t scale = 0;
  float error = std::numeric_limits<float>::infinity();
};

Q4Block WithScale(const float* x, float scale) {
  Q4Block block;
  const float inverse = scale != 0 ? 1 / scale : 0;
  for (int i = 0; i < kElements; ++i) {
    const float q = Round(x[i] * inverse), below = q < 7 ? q : 7;
    block.q[i] = below > -8 ? below : -8;
  }
  const float* const q = block.q;
  const float square = SumOverBlock([&](int i) { return q[i] * q[i]; });
  const float product = SumOverBlock([&](int i) { return x[i] * q[i]; });
  block.scale = HalfBits(square > 0 ? product / square : scale);
  const float stored = FromHalfBits(block.scale);
  block.error = SumOverBlock([&](int i) { return (x[i] - stored * q[i]) * (x[i] - stored * q[i]); });
  return block;
}

void EncodeQ4(const float* x, std::byte* out) {
  constexpr float kDivisors[] = {-8, -7.5f, -7, -8.5f, -9, 7};
  const float extreme = Extreme(x);
  Q4Block best;
  if (std::isnan(extreme)) {
    best.scale = HalfBits(extreme);
  } else {
    for (float divisor : kDivisors) {
      const Q4Block block = WithScale(x, extreme / divisor);
      if (block.error < best.error) best = block;
    }
  }
  std::memcpy(out, &best.scale, sizeof(best.scale));
  const auto bits = [&](int i) { return static_cast<int>(best.q[i]) + 8; };
  for (int i = 0; i < kHalf; ++i) {
    out[sizeof(best.scale) + i] = static_cast<std::byte>(bits(i) | bits(i + kHalf) << 4);
  }
}

void DecodeQ8(const std::byte* block, float* x) {
  const float scale = BlockScale(block);
  for (int i = 0; i < kElements; ++i) x[i] = scale * static_cast<int8_t>(block[2 + i]);
}

void DecodeQ4(const std::byte* block, float* x) {
  const float scale = BlockScale(block);
  for (int i = 0; i < kHalf; ++i) {
    const int byte = static_cast<int>(block[2 + i]);
    x[i] = scale * static_cast<float>((byte & 15) - 8);
    x[i + kHalf] = scale * static_cast<float>((byte >> 4) - 8);
  }
}

template <class T>
void EncodeNumbers(absl::Span<const float> values, std::byte* out) {
  absl::c_transform(values, reinterpret_cast<T*>(out), [](float value) { return T(value); });
}
template <class T>
void DecodeNumbers(const std::byte* bytes, absl::Span<float> values) {
  std::copy_n(reinterpret_cast<const T*>(bytes), values.size(), values.begin());
}

// Encode and decode a row by functions of one block. Zeros fill the last block.
template <DType dtype, void (*encode)(const float* x, std::byte* out)>
void EncodeBlocks(absl::Span<const float> values, std::byte* out) {
  constexpr size_t kBlock = static_cast<size_t>(RowOf(dtype).block);
  static_assert(kMaxBlock % RowOf(dtype).block == 0);
  for (size_t i = 0; i < values.size(); i += kBlock, out += RowOf(dtype).bytes) {
    std::array<float, kBlock> block = {};
    absl::c_copy(values.subspan(i, kBlock), block.begin());
    encode(block.data(), out);
  }
}
template <DType dtype, void (*decode)(const std::byte* block, float* x)>
void DecodeBlocks(const std::byte* bytes, absl::Span<float> values) {
  constexpr size_t kBlock = static_cast<size_t>(RowOf(dtype).block);
  for (; values.size() >= kBlock; values.remove_prefix(kBlock), bytes += RowOf(dtype).bytes) {
    decode(bytes, values.data());
  }
  if (values.empty()) return;
  std::array<float, kBlock> last;
  decode(bytes, last.data());
  std::copy_n(last.begin(), values.size(), values.begin());
}

struct WeightFormat {
  DType dtype;
  void (*encode)(absl::Span<const float> values, std::byte* out);
  void (*decode)(const std::byte* bytes, absl::Span<float> values);
};
constexpr WeightFormat kFormats[] = {
    {kF32, EncodeNumbers<float>, DecodeNumbers<float>},
    {kBF16, EncodeNumbers<BF16>, DecodeNumbers<BF16>},
    {kQ8_0, EncodeBlocks<kQ8_0, EncodeQ8>, DecodeBlocks<kQ8_0, DecodeQ8>},
    {kQ4_0, EncodeBlocks<kQ4_0, EncodeQ4>, DecodeBlocks<kQ4_0, DecodeQ4>},
};

const WeightFormat& FormatOf(DType dtype) {
  const auto format = absl::c_find_if(kFormats, [&](const WeightFormat& f) { return f.dtype == dtype; });
  WEFT_CHECK(format != std::end(kFormats));
  return *format;
}

}  // namespace

uint16_t HalfBits(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), magnitude = bits & 0x7fffffffu;
  const uint32_t sign = bits >> 16 & 0x8000u;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds beyond 65504
  if (magnitude < 0x38800000u) {  // below 2^-14: multiples of 2^-24, which an f32 sum with 0.5 rounds to
    const float sum = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(sum) - 0x3f000000u));
  }
  const uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

float FromHalfBits(uint16_t bits) {
  const uint32_t sign = (bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  if (magnitude < 0x400u) {
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return sign != 0 ? -value : value;
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
}

float BlockScale(const std::byte* block) {
  uint16_t half;
  std::memcpy(&half, block, sizeof(half));
  return FromHalfBits(half);
}

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
  for (const auto& [dtype, encode, decode] : kFormats) {
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
