// Weights can be stored in f32, bf16, f16, and in block formats, which take fewer bytes. In a block format, some
// consecutive elements of a row are a block (DTypeRow::block). It has scales d and sometimes minima m, and an integer q
// for each element, which stands for d · q or d · q + m. Zeros fill the last block of a row. The formats and their
// bytes (block_layouts.h) are those of GGUF, whose rows are whole blocks.
//
// A new format is an enumerator and a row of kDTypes (core/dtype.h), and a type in BlockLayouts (core/block_layouts.h).
// A new layout is a struct there, and a specialization of Unpacked in ops/kernels/weights/weight_formats-inl.h, which
// unpacks its integers.
//
//   EncodeWeight(weights, kQ8_0, bytes);   // f32 to Q8_0
//   DecodeWeight(kQ8_0, bytes, weights);   // and back
#ifndef WEFT_CORE_BLOCK_FORMATS_H_
#define WEFT_CORE_BLOCK_FORMATS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "weft/core/dtype.h"
#include "weft/core/tensor.h"

namespace weft {

// Writes `values`, which begin with a row or with one of its blocks, to `out` in the dtype `to`: f32, bf16, f16, or a
// block format. Q8_0 divides by the largest magnitude, as GGUF's tools do. For the others several scales are tried, and
// the one with the smallest squared error is taken. A block that has a NaN or an infinity becomes NaN.
void EncodeWeight(absl::Span<const float> values, DType to, std::byte* out);

// Reads `values.size()` elements of a row of the dtype `from`: f32, bf16, f16, or a block format.
void DecodeWeight(DType from, const std::byte* bytes, absl::Span<float> values);

// Reports whether the scales and minima of a block are finite, and so all of its elements. `dtype` is a block format.
bool IsFiniteBlock(DType dtype, const std::byte* block);

// Reports whether `dtype` is one that EncodeWeight writes.
constexpr bool IsWeightFormat(DType dtype) { return dtype == kF32 || dtype == kBF16 || OnlyStoresWeights(dtype); }
// Returns the names of these dtypes.
std::vector<std::string> WeightFormatNames();
// Returns them as "f32, bf16 or q8_0" or, with the bytes that a number takes, "4 (f32), 2 (bf16) or 1.06 (q8_0)".
std::string WeightFormatList(bool with_bytes = false);

// Copies a tensor of one of these dtypes to another of the same shape. Equal dtypes keep their bits.
void ConvertWeight(const Tensor& from, const Tensor& to);

}  // namespace weft

#endif  // WEFT_CORE_BLOCK_FORMATS_H_
