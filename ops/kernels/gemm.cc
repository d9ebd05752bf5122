// oneDNN's primitives are created and run with one OpenMP thread, because two threads change the bits of some products.
#include "weft/ops/kernels/gemm.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <optional>
#include <vector>

#include "oneapi/dnnl/dnnl.hpp"
#include "weft/core/arena.h"
#include "weft/core/cores.h"
#include "weft/core/status.h"
#include "weft/ops/kernels/own_gemm.h"
#include "weft/ops/kernels/pack.h"
#include "weft/ops/kernels/rows.h"

// OpenMP's header is missing if the compiler's OpenMP runtime is not installed, so its functions are declared here.
extern "C" {
int omp_get_max_threads();
void omp_set_num_threads(int count);
}

namespace weft {
namespace {

using dnnl::memory;

// While a OneThread exists, OpenMP regions that this thread opens have one thread. oneDNN reads this limit when it
// creates a primitive, to decide how sums are split, and when it runs the primitive.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const int before_;
};

const dnnl::engine& Engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

bool HasIsa(dnnl_cpu_isa_t wanted) { return (static_cast<int>(dnnl::get_effective_cpu_isa()) & wanted) == wanted; }

// Reports whether oneDNN has no fast kernel for the product.
bool IsOwn(const GemmShape& shape) {
  static const bool has_avx512 = HasIsa(dnnl_cpu_isa_avx512_core);
  return shape.in == kBF16 ? !HasBF16Products() : !has_avx512;
}

// Reports whether oneDNN computes the product with AMX, in tiles of bf16.
bool UsesAmx(const GemmShape& shape) {
  static const bool has_amx = HasIsa(dnnl_cpu_isa_avx512_core_amx);
  return has_amx && shape.in == kBF16;
}

// Reports whether the product is described as a batch. oneDNN multiplies a small single matrix without AMX, which adds
// in another order. The bits of a row would then depend on the size of its tile. oneDNN multiplies batches of any size
// with AMX, so a single matrix is described as a batch of one. Panels cannot be described so. The tiles of their
// products have more rows and columns than the matrices that oneDNN calls small.
bool IsBatch(const GemmShape& shape) { return shape.batch > 1 || (UsesAmx(shape) && !shape.packed_b); }

// Describes a matrix [rows, cols], or a batch of them. `stride`: elements between stored rows. `batch_stride`: elements
// between matrices; 0: one for all. If `transposed`, the transpose is stored.
memory::desc Matrix(const GemmShape& shape, DType dtype, int64_t rows, int64_t cols, int64_t stride,
                    int64_t batch_stride, bool transposed) {
  memory::dims dims = {rows, cols};
  memory::dims strides = transposed ? memory::dims{1, stride} : memory::dims{stride, 1};
  if (IsBatch(shape)) {
    dims.insert(dims.begin(), batch_stride == 0 ? 1 : shape.batch);
    strides.insert(strides.begin(), batch_stride == 0 ? stride * (transposed ? cols : rows) : batch_stride);
  }
  return memory::desc(dims, dtype == kBF16 ? memory::data_type::bf16 : memory::data_type::f32, strides);
}

// Describes B [rows, cols] in bf16 panels.
memory::desc Packed(int64_t rows, int64_t cols) {
  return memory::desc({rows, cols}, memory::data_type::bf16, memory::format_tag::BA16a64b2a);
}

dnnl::matmul::primitive_desc Describe(const dnnl::primitive_attr& attr, const memory::desc& a, const memory::desc& b,
                                      const memory::desc& c) {
#if DNNL_VERSION_MAJOR >= 3
  return dnnl::matmul::primitive_desc(Engine(), a, b, c, attr);
#else
  return dnnl::matmul::primitive_desc(dnnl::matmul::desc(a, b, c), attr, Engine());
#endif
}

// Reports whether the product is computed in the workspace, without gaps between rows, and then copied or added to C.
// Without gaps, oneDNN is faster for bf16 results, with AMX, for packed B, and for f32 products with Bᵀ of at least 64
// rows. With AMX, oneDNN adds C at another place of a sum if C has gaps, so products that add to C have none.
bool IsBuffered(const GemmShape& shape) {
  constexpr int64_t kMinRows = 64;  // 64 rows amortise the reordering of B that such an f32 product needs
  if (shape.accumulate) return UsesAmx(shape);
  if (shape.batch != 1 || shape.c_stride == shape.cols) return false;
  return shape.out == kBF16 || shape.packed_b || UsesAmx(shape) ||
         (shape.in == kF32 && shape.transpose_b && !shape.transpose_a && shape.rows >= kMinRows);
}
size_t RowBytes(const GemmShape& shape) { return SizeOf(shape.out) * static_cast<size_t>(shape.cols); }
size_t BufferBytes(const GemmShape& shape) { return static_cast<size_t>(shape.batch * shape.rows) * RowBytes(shape); }

// Copies or adds the buffered product to C.
void CopyOrAddToC(const GemmShape& shape, const std::byte* buffer, std::byte* c) {
  const size_t row = RowBytes(shape);
  for (int64_t m = 0; m < shape.batch; ++m) {
    for (int64_t r = 0; r < shape.rows; ++r, buffer += row) {
      std::byte* const to =
          c + (m * shape.c_batch_stride + r * shape.c_stride) * static_cast<int64_t>(SizeOf(shape.out));
      if (shape.accumulate) {
        Rows<float>().add_to(reinterpret_cast<const float*>(buffer), reinterpret_cast<float*>(to), shape.cols);
      } else {
        std::memcpy(to, buffer, row);
      }
    }
  }
}

dnnl::matmul::primitive_desc Describe(const GemmShape& shape) {
  const int64_t rows = shape.rows, cols = shape.cols, inner = shape.inner;
  const memory::desc a = Matrix(shape, shape.in, rows, inner, shape.a_stride, shape.a_batch_stride, shape.transpose_a);
  const memory::desc b =
      shape.packed_b ? Packed(inner, cols)
                     : Matrix(shape, shape.in, inner, cols, shape.b_stride, shape.b_batch_stride, shape.transpose_b);
  const bool buffered = IsBuffered(shape);
  const memory::desc c = Matrix(shape, shape.out, rows, cols, buffered ? cols : shape.c_stride,
                                buffered ? rows * cols : shape.c_batch_stride, false);
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (shape.accumulate && !buffered) {
    dnnl::post_ops sum;
    sum.append_sum();
    attr.set_post_ops(sum);
  }
  return Describe(attr, a, b, c);
}

// Reports whether the product packs B, which is stored transposed, in the workspace. It packs a panel of columns at a
// time, and multiplies the panel while it is in the cache. With fewer rows or terms, packing costs more than it saves.
bool PacksPanels(const GemmShape& shape) {
  constexpr int64_t kMinRows = 256, kMinInner = 64;  // in f32
  if (shape.batch != 1 || shape.transpose_a || !shape.transpose_b || shape.packed_b) return false;
  if (shape.b_stride != shape.inner) return false;
  if (shape.in == kBF16) return PacksTransposedBF16(shape.rows, shape.inner);
  return shape.rows >= kMinRows && shape.inner >= kMinInner;
}

// Returns the shape of `cols` columns of B, which are packed together.
PanelShape PanelOf(const GemmShape& shape, int64_t cols) {
  return {
      .inner = shape.inner, .cols = cols, .width = shape.in == kBF16 ? 64 : (cols + 15) / 16 * 16, .dtype = shape.in};
}
// Returns the product of `cols` packed columns. The result has no gaps, on which the bits of f32 products depend.
GemmShape ProductOfPanel(GemmShape shape, int64_t cols) {
  shape.cols = shape.c_stride = cols;
  shape.accumulate = false;
  shape.transpose_b = false;
  shape.packed_b = shape.in == kBF16;
  shape.b_stride = PanelOf(shape, cols).width;
  return shape;
}

}  // namespace

bool HasBF16Products() {
  static const bool has = HasIsa(dnnl_cpu_isa_avx512_core_bf16);
  return has;
}

bool HasPackedBF16Products() {
  static const bool has = HasBF16Products() && [] {
    const memory::dims square = {128, 128};
    const memory::desc plain(square, memory::data_type::bf16, memory::format_tag::ab);
    const memory::desc any(square, memory::data_type::bf16, memory::format_tag::any);
    const OneThread one_thread;
    return Describe({}, plain, any, plain).weights_desc() == Packed(128, 128);
  }();
  return has;
}

bool PacksTransposedBF16(int64_t rows, int64_t inner) {
  return HasPackedBF16Products() && rows >= 128 && inner % 32 == 0;  // with fewer rows, packing costs too much
}

// Holds oneDNN's handles for one call of Gemm::Run.
struct Gemm::Call {
  explicit Call(const dnnl::matmul::primitive_desc& d)
      : a(d.src_desc(), Engine(), nullptr),
        b(d.weights_desc(), Engine(), nullptr),
        c(d.dst_desc(), Engine(), nullptr),
        workspace(d.scratchpad_desc(), Engine(), nullptr),
        arguments{{{DNNL_ARG_SRC, a.get()},
                   {DNNL_ARG_WEIGHTS, b.get()},
                   {DNNL_ARG_DST, c.get()},
                   {DNNL_ARG_SCRATCHPAD, workspace.get()}}} {}

  dnnl::stream stream{Engine()};
  memory a, b, c, workspace;
  std::array<dnnl_exec_arg_t, 4> arguments;
  std::atomic<bool> taken{false};
};

struct Gemm::Primitive {
  explicit Primitive(const GemmShape& shape) : description(Describe(shape)), matmul(description) {
    for (int i = 0; i < Cores(); ++i) calls.push_back(std::make_unique<Call>(description));
  }

  // Returns a Call that the caller owns until it sets the Call's `taken` to false. Returns null if all are taken.
  Call* Take() const {
    for (const std::unique_ptr<Call>& call : calls) {
      if (!call->taken.exchange(true, std::memory_order_acquire)) return call.get();
    }
    return nullptr;
  }

  const dnnl::matmul::primitive_desc description;
  const dnnl::matmul matmul;
  std::vector<std::unique_ptr<Call>> calls;  // one for each core, created in advance, because creation allocates
};

Gemm::Gemm(const GemmShape& shape) : shape_(shape) {
  if (shape.batch == 0 || shape.rows == 0 || shape.cols == 0 || shape.inner == 0) return;
  own_ = IsOwn(shape);
  if (own_) {
    workspace_ = OwnGemmWorkspace(shape);
    return;
  }
  if (PacksPanels(shape)) {
    constexpr int64_t kPanelBytes = 512 << 10;  // half of an L2 cache
    const int64_t columns = kPanelBytes / (shape.inner * static_cast<int64_t>(SizeOf(shape.in)));
    const GemmShape panel = ProductOfPanel(shape, std::min(shape.cols, std::max<int64_t>(1, columns / 64) * 64));
    const GemmShape last = ProductOfPanel(shape, (shape.cols - 1) % panel.cols + 1);
    panel_ = Create(panel);
    last_panel_ = last == panel ? panel_ : Create(last);
    workspace_ = AlignUp(std::max(panel_->workspace(), last_panel_->workspace())) + AlignUp(BufferBytes(panel)) +
                 PanelOf(shape, panel.cols).bytes();
    return;
  }
  const OneThread one_thread;
  primitive_ = std::make_unique<Primitive>(shape);
  workspace_ = primitive_->description.scratchpad_desc().get_size();
  buffered_ = IsBuffered(shape);
  if (buffered_) workspace_ = AlignUp(workspace_) + BufferBytes(shape);
}

Gemm::~Gemm() = default;

std::shared_ptr<const Gemm> Gemm::Create(const GemmShape& shape) {
  return std::shared_ptr<const Gemm>(new Gemm(shape));
}

void Gemm::RunPanels(const std::byte* a, const std::byte* b, std::byte* c, std::byte* workspace) const {
  const int64_t cols = panel_->shape_.cols;
  std::byte* const packed = workspace + workspace_ - PanelOf(shape_, cols).bytes();
  std::byte* const result = packed - AlignUp(BufferBytes(panel_->shape_));
  for (int64_t j = 0; j < shape_.cols; j += cols) {
    const Gemm& product = j + cols <= shape_.cols ? *panel_ : *last_panel_;
    const PanelShape panel = PanelOf(shape_, product.shape_.cols);
    const std::byte* const rows = b + j * shape_.inner * static_cast<int64_t>(SizeOf(shape_.in));
    if (shape_.in == kBF16) {
      PackTransposedBF16(panel, reinterpret_cast<const BF16*>(rows), 0, panel.count(), packed);
    } else {
      PackPanels(panel, /*transposed=*/true, reinterpret_cast<const float*>(rows), 0, panel.count(), packed);
    }
    product.Run(a, packed, result, workspace);
    GemmShape columns = shape_;
    columns.cols = panel.cols;
    CopyOrAddToC(columns, result, c + j * static_cast<int64_t>(SizeOf(shape_.out)));
  }
}

void Gemm::Run(const std::byte* a, const std::byte* b, std::byte* c, std::byte* workspace) const {
  if (panel_ != nullptr) return RunPanels(a, b, c, workspace);
  if (own_) return OwnGemm(shape_, a, b, c, workspace);
  if (primitive_ == nullptr) {  // sums of no terms are 0
    if (shape_.accumulate) return;
    const size_t size = SizeOf(shape_.out);
    for (int64_t m = 0; m < shape_.batch; ++m) {
      for (int64_t r = 0; r < shape_.rows; ++r) {
        std::memset(c + (m * shape_.c_batch_stride + r * shape_.c_stride) * size, 0, shape_.cols * size);
      }
    }
    return;
  }
  const OneThread one_thread;
  std::optional<Call> own;  // used if more threads than cores run this product
  Call* call = primitive_->Take();
  if (call == nullptr) call = &own.emplace(primitive_->description);
  call->a.set_data_handle(const_cast<std::byte*>(a));
  call->b.set_data_handle(const_cast<std::byte*>(b));
  std::byte* const buffer = workspace + workspace_ - BufferBytes(shape_);
  call->c.set_data_handle(buffered_ ? buffer : c);
  call->workspace.set_data_handle(workspace);
  // The C++ interface would allocate a vector of arguments for each call.
  const dnnl_status_t status = dnnl_primitive_execute(primitive_->matmul.get(), call->stream.get(),
                                                      static_cast<int>(call->arguments.size()), call->arguments.data());
  WEFT_CHECK(status == dnnl_success);
  call->taken.store(false, std::memory_order_release);
  if (buffered_) CopyOrAddToC(shape_, buffer, c);
}

const Gemm* GemmSet::Find(const GemmShape& shape) const {
  for (const auto& [known, gemm] : gemms_) {
    if (known == shape) return gemm.get();
  }
  return nullptr;
}

void GemmSet::Add(const GemmShape& shape) {
  if (Find(shape) != nullptr) return;
  gemms_.emplace_back(shape, Gemm::Create(shape));
  workspace_ = std::max(workspace_, gemms_.back().second->workspace());
}

void GemmSet::Run(const GemmShape& shape, const std::byte* a, const std::byte* b, std::byte* c,
                  std::byte* workspace) const {
  const Gemm* gemm = Find(shape);
  std::shared_ptr<const Gemm> own;
  Arena arena;
  if (gemm == nullptr) {
    own = Gemm::Create(shape);
    gemm = own.get();
    workspace = arena.Allocate(gemm->workspace());
    WEFT_CHECK(workspace != nullptr);
  }
  gemm->Run(a, b, c, workspace);
}

void PlainGemm(const GemmShape& shape, const double* a, const double* b, double* c) {
  constexpr int64_t kBlock = 64;  // these rows of B' stay in the cache while all rows of A' are multiplied
  const int64_t a_row = shape.transpose_a ? 1 : shape.a_stride, a_col = shape.transpose_a ? shape.a_stride : 1;
  const int64_t b_row = shape.transpose_b ? 1 : shape.b_stride, b_col = shape.transpose_b ? shape.b_stride : 1;
  for (int64_t m = 0; m < shape.batch;
       ++m, a += shape.a_batch_stride, b += shape.b_batch_stride, c += shape.c_batch_stride) {
    for (int64_t i = 0; i < shape.rows && !shape.accumulate; ++i) std::fill_n(c + i * shape.c_stride, shape.cols, 0.0);
    for (int64_t begin = 0; begin < shape.inner; begin += kBlock) {
      const int64_t end = std::min(begin + kBlock, shape.inner);
      for (int64_t i = 0; i < shape.rows; ++i) {
        double* const row = c + i * shape.c_stride;
        for (int64_t k = begin; k < end; ++k) {
          const double factor = a[i * a_row + k * a_col];
          for (int64_t j = 0; j < shape.cols; ++j) row[j] += factor * b[k * b_row + j * b_col];
        }
      }
    }
  }
}

}  // namespace weft
