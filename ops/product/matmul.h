// Declares the attributes of matmul, which the compiler's passes read, and the sizes of the tiles of products. Also
// declares the products that only these passes record: by panels (pack and packed_matmul), and of few rows
// (weight_matmul).
#ifndef WEFT_OPS_PRODUCT_MATMUL_H_
#define WEFT_OPS_PRODUCT_MATMUL_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <tuple>

#include "weft/core/dtype.h"
#include "weft/core/op.h"

namespace weft {

// The tolerance of examples whose sums have more than 100 terms (see OpExample::tolerance).
inline constexpr double kSumTolerance = 1e-5;

struct MatMulAttrs {
  bool transpose_a = false, transpose_b = false;  // the last two axes of the operand are stored swapped
  bool f32_output = false;                        // bf16 inputs give f32
  auto Fields() const {
    return std::tuple{AttrField{"transpose_a", transpose_a}, AttrField{"transpose_b", transpose_b},
                      AttrField{"f32_output", f32_output, /*printed=*/f32_output}};
  }
};

// Cuts `size` into about equal parts and returns their length, a multiple of `unit`. The number of parts is the largest
// power of two for which a part has at least `minimum` elements; it is 1 if `size` < `minimum`.
inline int64_t EqualParts(int64_t size, int64_t minimum, int64_t unit) {
  const int64_t parts =
      static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(1, size / minimum))));
  return std::max<int64_t>(unit, (size + parts * unit - 1) / (parts * unit) * unit);
}

// Least rows of a tile of a product with a transposed B: 512 rows amortise packing B for each tile.
inline constexpr int64_t kProductTileRows = 512;

// Tiles of products, and parts of these tiles, begin at multiples of these rows and columns.
inline constexpr int64_t kProductUnitRows = 32, kProductUnitCols = 64;

// Return the rows and columns of a product's tiles: enough rows to amortise a tile's work on B, and enough columns to
// amortise reading A.
inline int64_t ProductRows(int64_t rows, int64_t least = 128) { return EqualParts(rows, least, kProductUnitRows); }
inline int64_t ProductColumns(int64_t cols, int64_t least = 256) { return EqualParts(cols, least, kProductUnitCols); }

// Returns the cost of a product of a [..., K], input 0, with a weight that is stored in another way than for matmul.
inline Cost ProductCost(const OpArgs& args) {
  return {.flops = 2.0 * args.outputs[0].shape.elements() * args.inputs[0].shape.dim(-1), .bytes = OperandBytes(args)};
}

// Packs f32 B [K, N], stored as [N, K] if `transposed`, into panels [panels, K, W] of `dtype`, f32 or bf16. A panel
// holds W columns (ops/kernels/product/gemm.h). In bf16, W is 64 and K is rounded up to a multiple of 32. There is no
// gradient.
Var Pack(Var b, bool transposed, DType dtype);
// Returns y[..., j] = Σ_k a[..., k] · B[k, j] for j < cols, where `panels` hold B in a's dtype. If `f32_output`, the
// result of bf16 operands is f32.
Var PackedMatMul(Var a, Var panels, int64_t cols, bool f32_output = false);

// Number of rows up to which weight_matmul is fast: the default of CompileOptions::few_rows. With more rows, products
// of packed weights are faster, unless FastWithManyRows() is true.
inline constexpr int64_t kFewRows = 48;

// Reports whether weight_matmul is the faster product for any number of rows, on this CPU. `weight`: dtype of w.
bool FastWithManyRows(DType weight);

}  // namespace weft

#endif  // WEFT_OPS_PRODUCT_MATMUL_H_
