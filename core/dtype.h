// A DType is the element type of a tensor. This header has the C++ types, names and sizes of all dtypes.
#ifndef WEFT_CORE_DTYPE_H_
#define WEFT_CORE_DTYPE_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "absl/strings/string_view.h"

namespace weft {

// Q8_0 and Q4_0 are the block formats of weights (core/block_formats.h): their elements have no addresses of their own.
enum class DType : uint8_t { kF32, kF64, kBF16, kI32, kBool, kQ8_0, kQ4_0 };
inline constexpr DType kF32 = DType::kF32, kF64 = DType::kF64, kBF16 = DType::kBF16, kI32 = DType::kI32,
                       kBool = DType::kBool, kQ8_0 = DType::kQ8_0, kQ4_0 = DType::kQ4_0;
inline constexpr int kDTypeCount = 7;

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

// Computed<T> is the type in which kernels compute on elements of type T: float for bf16, otherwise T.
template <class T>
using Computed = std::conditional_t<std::is_same_v<T, BF16>, float, T>;
constexpr DType ComputedIn(DType dtype) { return dtype == kBF16 ? kF32 : dtype; }

template <class T>
extern const DType kDTypeOf;  // defined for the five element types
template <>
inline constexpr DType kDTypeOf<float> = DType::kF32;
template <>
inline constexpr DType kDTypeOf<double> = DType::kF64;
template <>
inline constexpr DType kDTypeOf<BF16> = DType::kBF16;
template <>
inline constexpr DType kDTypeOf<int32_t> = DType::kI32;
template <>
inline constexpr DType kDTypeOf<bool> = DType::kBool;

// Calls `f` with a zero of the C++ type of `dtype`, which is not a block format, and returns the result of `f`:
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
constexpr size_t SizeOf(DType dtype) {
  constexpr size_t kSizes[] = {4, 8, 2, 4, 1};
  return kSizes[static_cast<int>(dtype)];
}
constexpr bool IsFloat(DType dtype) { return dtype <= DType::kBF16; }

inline constexpr int64_t kBlockElements = 32;  // elements of a block of Q8_0 or Q4_0
constexpr bool IsBlockFormat(DType dtype) { return dtype >= DType::kQ8_0; }
// Returns the bytes of a block: an f16 scale and 8 or 4 bits for each element.
constexpr size_t BlockBytes(DType dtype) { return dtype == DType::kQ8_0 ? 34 : 18; }
// Returns the number of blocks of a row. Zeros fill the last block.
constexpr int64_t BlocksOf(int64_t row_elements) { return (row_elements + kBlockElements - 1) / kBlockElements; }
// Returns the bytes of a row of `elements` elements, in whole blocks if `dtype` is a block format.
constexpr size_t BytesOf(DType dtype, int64_t elements) {
  if (IsBlockFormat(dtype)) return static_cast<size_t>(BlocksOf(elements)) * BlockBytes(dtype);
  return static_cast<size_t>(elements) * SizeOf(dtype);
}

inline constexpr absl::string_view kDTypeNames[kDTypeCount] = {"f32", "f64", "bf16", "i32", "bool", "q8_0", "q4_0"};
constexpr absl::string_view Name(DType dtype) { return kDTypeNames[static_cast<int>(dtype)]; }
// If a dtype is called `name`, sets `*dtype` to it and returns true. Otherwise returns false.
inline bool ParseDType(absl::string_view name, DType* dtype) {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (kDTypeNames[i] != name) continue;
    *dtype = static_cast<DType>(i);
    return true;
  }
  return false;
}

}  // namespace weft

#endif  // WEFT_CORE_DTYPE_H_
