// A Gemm computes a matrix product, or a batch of them. Its GemmShape (own_gemm.h) holds their sizes and dtypes.
//
// A product is an OwnGemm where oneDNN has no fast kernel (own_gemm.h). Other products are oneDNN primitives. All run
// on the calling thread. Any number of threads may share a Gemm; each thread brings its own workspace.
//
// If oneDNN is faster without gaps between the rows of C, the product is computed in the workspace, and then copied to
// C. With AMX, bf16 products that add to C are computed there, too, and then added. A product of many rows packs B in
// the workspace, if B is stored transposed: a few columns at a time, which stay in the cache.
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

#include "weft/ops/kernels/own_gemm.h"

namespace weft {

bool HasBF16Products();        // whether the CPU multiplies bf16
bool HasPackedBF16Products();  // whether bf16 products read panels directly; otherwise panels are slow

// Reports whether a bf16 product packs B, which is stored transposed. Sums have `inner` terms.
bool PacksTransposedBF16(int64_t rows, int64_t inner);

class Gemm {
 public:
  static std::shared_ptr<const Gemm> Create(const GemmShape& shape);
  ~Gemm();

  size_t workspace() const { return workspace_; }  // bytes of workspace, which must be aligned to kAlignment
  void Run(const std::byte* a, const std::byte* b, std::byte* c, std::byte* workspace) const;

 private:
  struct Primitive;
  struct Call;
  explicit Gemm(const GemmShape& shape);
  void RunPanels(const std::byte* a, const std::byte* b, std::byte* c, std::byte* workspace) const;

  const GemmShape shape_;
  std::unique_ptr<Primitive> primitive_;            // null if the product is empty, an OwnGemm, or consists of others
  std::shared_ptr<const Gemm> panel_, last_panel_;  // if B is packed in the workspace: the products of its panels
  bool own_ = false;                                // true: the product is an OwnGemm
  bool buffered_ = false;                           // true: the product goes to the end of the workspace, then to C
  size_t workspace_ = 0;
};

// Holds the products of a node's tiles: one Gemm for each different GemmShape.
class GemmSet {
 public:
  void Add(const GemmShape& shape);
  size_t workspace() const { return workspace_; }  // bytes for the largest product
  // Runs the product of `shape`. If `shape` was not added, creates a Gemm and a workspace for this call only.
  void Run(const GemmShape& shape, const std::byte* a, const std::byte* b, std::byte* c, std::byte* workspace) const;

 private:
  const Gemm* Find(const GemmShape& shape) const;

  std::vector<std::pair<GemmShape, std::shared_ptr<const Gemm>>> gemms_;
  size_t workspace_ = 0;
};

// Computes the product in double precision by plain loops. It serves f64 and tests.
void PlainGemm(const GemmShape& shape, const double* a, const double* b, double* c);

}  // namespace weft

#endif  // WEFT_OPS_KERNELS_GEMM_H_
