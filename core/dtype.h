// A DType is the element type of a tensor. This header has the C++ types, names and sizes of all dtypes.
#ifndef WEFT_CORE_DTYPE_H_
#define WEFT_CORE_DTYPE_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <type_traits>

#include "absl/strings/string_view.h"

namespace weft {

// Those after kBool only store weights (core/block_formats.h). No C++ type has their elements, and in block formats
// elements have no addresses of their own.
enum class DType : uint8_t {
  kF32,
  kF64,
  kBF16,
  kI32,
  kBool,
  kF16,
  kQ8_0,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ4_K,
  kQ5_K,
  kQ6_K
};
inline constexpr DType kF32 = DType::kF32, kF64 = DType::kF64, kBF16 = DType::kBF16, kI32 = DType::kI32,
                       kBool = DType::kBool, kF16 = DType::kF16, kQ8_0 = DType::kQ8_0, kQ4_0 = DType::kQ4_0,
                       kQ4_1 = DType::kQ4_1, kQ5_0 = DType::kQ5_0, kQ5_1 = DType::kQ5_1, kQ4_K = DType::kQ4_K,
                       kQ5_K = DType::kQ5_K, kQ6_K = DType::kQ6_K;

struct DTypeRow {
  absl::string_view name;
  int64_t block;       // elements that are stored together; 1: each has its own bytes
  size_t bytes;        // of a block
  int file_type = -1;  // general.file_type of a GGUF file with most matrices in this dtype; -1: no file has it
  // The dtype of weights whose rows are not whole blocks, if zeros would fill much of them; llama.cpp's choice.
  absl::string_view otherwise = {};
};
// Indexed by DType.
inline constexpr DTypeRow kDTypes[] = {
    {"f32", 1, 4, 0},
    {"f64", 1, 8},
    {"bf16", 1, 2, 32},
    {"i32", 1, 4},
    {"bool", 1, 1},
    {"f16", 1, 2, 1},
    {"q8_0", 32, 34, 7},
    {"q4_0", 32, 18, 2},
    {"q4_1", 32, 20, 3},
    {"q5_0", 32, 22, 8},
    {"q5_1", 32, 24, 9},
    {"q4_k", 256, 144, 14, "q5_0"},
    {"q5_k", 256, 176, 16, "q5_1"},
    {"q6_k", 256, 210, 18, "q8_0"},
};
inline constexpr int kDTypeCount = static_cast<int>(std::size(kDTypes));
constexpr const DTypeRow& RowOf(DType dtype) { return kDTypes[static_cast<int>(dtype)]; }

// A bfloat16 is the upper half of an f32. Conversion rounds to nearest, ties to even; a NaN becomes a quiet NaN.
struct BF16 {
  uint16_t bits = 0;

  BF16() = default;
  explicit BF16(float value) {
    const uint32_t u = std::bit_cast<uint32_t>(value);
    const bool nan = (u & 0x7fffffffu) > 0x7f800000u;
    bits = static_cast<uint16_t>(nan ? (u >> 16) | 0x40u : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

// Converts between f32 and the bits of an IEEE 754 binary16. HalfBits rounds to nearest, ties to even; numbers beyond
// the largest binary16 become infinite.
inline uint16_t HalfBits(float value) {
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
inline float FromHalfBits(uint16_t bits) {
  const uint32_t sign = (bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  if (magnitude < 0x400u) {
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return sign != 0 ? -value : value;
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
}

// Computed<T> is the type in which kernels compute on elements of type T: float for bf16, otherwise T.
template <class T>
using Computed = std::conditional_t<std::is_same_v<T, BF16>, float, T>;
constexpr DType ComputedIn(DType dtype) { return dtype == kBF16 ? kF32 : dtype; }

template <class T>  // one of the five element types; others do not compile
inline constexpr DType kDTypeOf = std::is_same_v<T, float>     ? kF32
                                  : std::is_same_v<T, double>  ? kF64
                                  : std::is_same_v<T, BF16>    ? kBF16
                                  : std::is_same_v<T, int32_t> ? kI32
                                  : std::is_same_v<T, bool>    ? kBool
                                                               : throw "no dtype";

// Calls `f` with a zero of the C++ type of `dtype`, which does not only store weights, and returns the result of `f`:
//   Dispatch(dtype, [&](auto zero) { using T = decltype(zero); ... })
template <class F>
auto Dispatch(DType dtype, F&& f) {
  if (dtype == kF32) return f(float{});
  if (dtype == kF64) return f(double{});
  if (dtype == kBF16) return f(BF16{});
  if (dtype == kI32) return f(int32_t{});
  return f(bool{});
}

// Returns the bytes of one element. `dtype` is not a block format.
constexpr size_t SizeOf(DType dtype) { return RowOf(dtype).bytes; }
constexpr bool IsFloat(DType dtype) { return dtype <= DType::kBF16; }
// Reports whether only weights have this dtype.
constexpr bool OnlyStoresWeights(DType dtype) { return dtype > DType::kBool; }
constexpr bool IsBlockFormat(DType dtype) { return RowOf(dtype).block > 1; }
// Returns the number of blocks of a row. In a block format, zeros fill the last block.
constexpr int64_t BlocksOf(DType dtype, int64_t row_elements) {
  return (row_elements + RowOf(dtype).block - 1) / RowOf(dtype).block;
}
// Returns the bytes of a row of `elements` elements, which are whole blocks.
constexpr size_t BytesOf(DType dtype, int64_t elements) {
  return static_cast<size_t>(BlocksOf(dtype, elements)) * RowOf(dtype).bytes;
}
// Returns the mean bytes of an element of a row of whole blocks. Fewer bytes are less precise.
constexpr double BytesOfElement(DType dtype) {
  return static_cast<double>(RowOf(dtype).bytes) / static_cast<double>(RowOf(dtype).block);
}

constexpr absl::string_view Name(DType dtype) { return RowOf(dtype).name; }
// If a dtype is called `name`, sets `*dtype` to it and returns true. Otherwise returns false.
inline bool ParseDType(absl::string_view name, DType* dtype) {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (kDTypes[i].name != name) continue;
    *dtype = static_cast<DType>(i);
    return true;
  }
  return false;
}

}  // namespace weft

#endif  // WEFT_CORE_DTYPE_H_
