// Comparison of numbers, and choice by bools, on contiguous arrays; on Highway, as vector.h.
//
//   Compare(Comparison::kLess, x, 1, &limit, 0, mask, n);  // mask[i] = x[i] < limit
//   Select(mask, x, 1, &limit, 0, y, n);                   // y[i] = mask[i] ? x[i] : limit
#ifndef WEFT_OPS_KERNELS_SELECT_H_
#define WEFT_OPS_KERNELS_SELECT_H_

#include <cstdint>

#include "weft/core/dtype.h"

namespace weft {

enum class Comparison : uint8_t { kEqual, kLess, kLessEqual };

// y[i] = whether a[i * a_step] compares so with b[i * b_step], for i < n, where steps are 0 or 1; false if one is NaN.
void Compare(Comparison c, const float* a, int a_step, const float* b, int b_step, bool* y, int64_t n);
void Compare(Comparison c, const double* a, int a_step, const double* b, int b_step, bool* y, int64_t n);
void Compare(Comparison c, const BF16* a, int a_step, const BF16* b, int b_step, bool* y, int64_t n);
void Compare(Comparison c, const int32_t* a, int a_step, const int32_t* b, int b_step, bool* y, int64_t n);

// y[i] = mask[i] ? a[i * a_step] : b[i * b_step], of the same bits. y may be a or b.
void Select(const bool* mask, const float* a, int a_step, const float* b, int b_step, float* y, int64_t n);
void Select(const bool* mask, const double* a, int a_step, const double* b, int b_step, double* y, int64_t n);
void Select(const bool* mask, const BF16* a, int a_step, const BF16* b, int b_step, BF16* y, int64_t n);
void Select(const bool* mask, const int32_t* a, int a_step, const int32_t* b, int b_step, int32_t* y, int64_t n);
void Select(const bool* mask, const bool* a, int a_step, const bool* b, int b_step, bool* y, int64_t n);

}  // namespace weft

#endif  // WEFT_OPS_KERNELS_SELECT_H_
