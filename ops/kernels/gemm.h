// One matrix product of fixed sizes, or a batch of them: C = A' B', where A' is A or Aᵀ and B' is B or Bᵀ.
//
// f32 and bf16 products are oneDNN primitives: they run on the calling thread alone and may be shared by any number of
// threads. They take the operands as they lie. Each thread brings working memory of its own: where oneDNN is faster at
// a result without gaps between its rows, it is made there and copied. Where the CPU has no products of bf16, operands
// are widened into that memory and multiplied in f32.
//
//   const auto gemm = Gemm::Create({.rows = 8, .cols = 512, .inner = 768, .a_stride = 768, .b_stride = 768,
//                                   .c_stride = 512, .transpose_b = true});
//   gemm->Run(a, b, c, workspace);
#ifndef WEFT_OPS_KERNELS_GEMM_H_
#define WEFT_OPS_KERNELS_GEMM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "weft/core/dtype.h"

namespace weft {

struct GemmShape {
  int64_t batch = 1;
  int64_t rows = 0, cols = 0, inner = 0;             // of C: [rows, cols]; inner is what is summed over
  int64_t a_stride = 0, b_stride = 0, c_stride = 0;  // elements between the rows as stored
  int64_t a_step = 0, b_step = 0, c_step = 0;        // elements between the matrices of a batch; 0: all use one
  bool transpose_a = false, transpose_b = false;     // A is stored as [inner, rows], B as [cols, inner]
  bool packed_b = false;                             // B, of bf16, lies in panels (kernels/pack.h)
  bool accumulate = false;                           // C += A' B'
  DType in = kF32, out = kF32;                       // of A and B, and of C: f32, or bf16 operands and either result

  friend bool operator==(const GemmShape&, const GemmShape&) = default;
};

bool HasBF16Products();        // of the CPU
bool HasPackedBF16Products();  // whether it has some that take panels as they lie: without, panels are slow

class Gemm {
 public:
  static std::shared_ptr<const Gemm> Create(const GemmShape& shape);
  ~Gemm();

  size_t workspace() const { return workspace_; }  // bytes, at a boundary of kAlignment
  void Run(const std::byte* a, const std::byte* b, std::byte* c, std::byte* workspace) const;

 private:
  struct Primitive;
  struct Call;
  explicit Gemm(const GemmShape& shape);
  void RunWidened(const BF16* a, const BF16* b, std::byte* c, std::byte* workspace) const;

  const GemmShape shape_;
  std::unique_ptr<Primitive> primitive_;  // null where there is nothing to multiply, or no product of bf16
  std::shared_ptr<const Gemm> widened_;   // in place of the latter: the product of one matrix in f32
  bool copies_rows_ = false;              // from the end of the workspace to C
  size_t workspace_ = 0;
};

// The products of a node's tiles, one for each size.
class GemmSet {
 public:
  void Add(const GemmShape& shape);
  size_t workspace() const { return workspace_; }  // of the largest
  // One that was not added is made for this call.
  void Run(const GemmShape& shape, const std::byte* a, const std::byte* b, std::byte* c, std::byte* workspace) const;

 private:
  const Gemm* Find(const GemmShape& shape) const;

  std::vector<std::pair<GemmShape, std::shared_ptr<const Gemm>>> gemms_;
  size_t workspace_ = 0;
};

// The same in double precision by plain loops, for proofs.
void PlainGemm(const GemmShape& shape, const double* a, const double* b, double* c);

}  // namespace weft

#endif  // WEFT_OPS_KERNELS_GEMM_H_
