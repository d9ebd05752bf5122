// MultiplyPanels computes y = a Wᵀ for several rows of a and weights in a block format, on CPUs with AVX-512 VNNI. It
// copies kPanelColumns rows of W at a time to a panel. A vector of a panel has the same four elements of 16 rows of W.
// The blocks are added in the order of BlockFormat (weight_blocks-inl.h), so y has the same bits as with that kernel.
#if defined(WEFT_OPS_KERNELS_WEIGHTS_WEIGHT_PANELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_OPS_KERNELS_WEIGHTS_WEIGHT_PANELS_INL_H_
#undef WEFT_OPS_KERNELS_WEIGHTS_WEIGHT_PANELS_INL_H_
#else
#define WEFT_OPS_KERNELS_WEIGHTS_WEIGHT_PANELS_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "weft/ops/kernels/weights/weight_blocks-inl.h"
#include "weft/ops/kernels/weights/weight_formats-inl.h"
#include "weft/ops/kernels/weights/weight_rows.h"

HWY_BEFORE_NAMESPACE();
namespace weft {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3_DL

constexpr int64_t kMinPanelRows = 5;  // with fewer rows, copying costs more than it saves

constexpr int kPanelVectors = 2;  // vectors of columns
constexpr int64_t kPanelColumns = 16 * kPanelVectors;
constexpr int kPanelRows = 6;       // rows of a for which the sums fit into registers
constexpr int kWords = kBlock / 4;  // four elements of a block are a word

// One run of each column of a panel. `others`: as in QuadScales.
template <bool has_minimum, int halves>
struct PanelBlock {
  static constexpr bool kHasMinimum = has_minimum;
  static constexpr int kHalves = halves;
  alignas(64) int32_t words[kPanelVectors][kWords][16];
  alignas(64) float scales[kPanelVectors][16];
  alignas(64) float others[kPanelVectors][has_minimum || halves == 2 ? 16 : 0];
};
template <class Format>
using PanelBlockOf = PanelBlock<Format::kHasMinimum, Format::kHalves>;

// Transposes eight vectors. Vector j has words 0 .. 7 of columns j and j + 4 (j < 4), or of columns j + 4 and j + 8
// (j >= 4). Afterwards, vector k has word k of columns 0 .. 15.
HWY_INLINE void TransposeWords(__m512i (&v)[kWords]) {
  __m512i pairs[kWords], quads[kWords];
  HWY_UNROLL(4)
  for (int i = 0; i < kWords; i += 2) {
    pairs[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
    pairs[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
  }
  HWY_UNROLL(2)
  for (int i = 0; i < kWords; i += 4) {
    quads[i] = _mm512_unpacklo_epi64(pairs[i], pairs[i + 2]);
    quads[i + 1] = _mm512_unpackhi_epi64(pairs[i], pairs[i + 2]);
    quads[i + 2] = _mm512_unpacklo_epi64(pairs[i + 1], pairs[i + 3]);
    quads[i + 3] = _mm512_unpackhi_epi64(pairs[i + 1], pairs[i + 3]);
  }
  HWY_UNROLL(4)
  for (int i = 0; i < 4; ++i) {
    v[i] = _mm512_shuffle_i32x4(quads[i], quads[i + 4], 0x88);
    v[i + 4] = _mm512_shuffle_i32x4(quads[i], quads[i + 4], 0xdd);
  }
}

// Ahead prefetches bytes of W that are needed later. Each step requests `lines` cache lines for the L2 cache.
struct Ahead {
  const std::byte* next;
  int64_t lines;  // cache lines of a step
  HWY_INLINE void Step() {
    for (int64_t i = 0; i < lines; ++i, next += 64) Prefetch(next);
  }
};

// Copies the scales of runs `run` .. `run` + `runs` - 1 of 16 rows to vector `v` of the blocks `to`.
template <class Format>
HWY_INLINE void PackScales(const std::byte* const (&rows)[16], int64_t run, int64_t runs,
                           PanelBlockOf<Format>* const (&to)[QuantizedQuad::kBlocks], int v) {
  HWY_UNROLL(4)
  for (int j = 0; j < 16; j += 4) {
    __m128 scales[4], others[4];
    HWY_UNROLL(4)
    for (int i = 0; i < 4; ++i) {
      const QuadScales quad = ScalesOfQuad<Format>(rows[j + i], run, runs);
      scales[i] = quad.scales;
      others[i] = quad.others;
    }
    _MM_TRANSPOSE4_PS(scales[0], scales[1], scales[2], scales[3]);
    _MM_TRANSPOSE4_PS(others[0], others[1], others[2], others[3]);
    HWY_UNROLL(4)
    for (int64_t i = 0; i < runs; ++i) {
      _mm_store_ps(to[i][run / 4].scales[v] + j, scales[i]);
      if constexpr (sizeof(to[i]->others) > 0) _mm_store_ps(to[i][run / 4].others[v] + j, others[i]);
    }
  }
}

// Copies columns `first`, `first` + 1, ... to a panel. Columns from `last` on repeat column last - 1. The panel has the
// blocks in the order in which they are multiplied.
template <class Format>
void PackPanel(const WeightRows& w, int64_t first, int64_t last, PanelBlockOf<Format>* panel, Ahead& ahead) {
  const int64_t blocks = w.inner / kBlock, bytes = Format::RowBytes(w.inner);
  PanelBlockOf<Format>* blocks_of[QuantizedQuad::kBlocks];
  for (int64_t position = 0; position < QuantizedQuad::kBlocks; ++position) {
    const int64_t begin = QuantizedQuad::BlockAt(position);
    blocks_of[begin] = panel;
    panel += (blocks - begin + QuantizedQuad::kBlocks - 1) / QuantizedQuad::kBlocks;
  }
  for (int v = 0; v < kPanelVectors; ++v) {
    const std::byte* rows[16];
    for (int64_t j = 0; j < 16; ++j) rows[j] = w.data + std::min(first + 16 * v + j, last - 1) * bytes;
    for (int64_t b = 0; b < blocks; ++b) {
      ahead.Step();
      PanelBlockOf<Format>& to = blocks_of[b % QuantizedQuad::kBlocks][b / QuantizedQuad::kBlocks];
      __m512i words[kWords];
      HWY_UNROLL(8)
      for (int64_t j = 0; j < kWords; ++j) {
        const int64_t column = j % 4 + j / 4 * 8;
        words[j] = Format::BytesOf(rows[column], b, rows[column + 4], b);
      }
      TransposeWords(words);
      HWY_UNROLL(8)
      for (int k = 0; k < kWords; ++k) _mm512_store_si512(to.words[v][k], words[k]);
      if (b % QuantizedQuad::kBlocks == 0) {
        PackScales<Format>(rows, b, std::min(blocks - b, QuantizedQuad::kBlocks), blocks_of, v);
      }
    }
  }
}

// The destination of a panel's columns.
struct PanelOutput {
  float* y;        // the first row's first column
  int64_t stride;  // elements between rows
  int64_t cols;    // at most kPanelColumns
};

// Multiplies a panel by kRows rows of a. Formats with the same panels share this function.
template <int kRows, class Panel>
HWY_NOINLINE void PanelTimesRows(const Panel* panel, int64_t blocks, const QuantizedQuad* a, int64_t stride,
                                 const PanelOutput& out, Ahead* ahead) {
  alignas(64) float partial_sums[2][kRows][kPanelVectors][16];
  PrefetchOutput(out.y, kRows, out.cols, out.stride);
  for (int64_t position = 0; position < QuantizedQuad::kBlocks; ++position) {
    const int64_t first = QuantizedQuad::BlockAt(position);
    __m512 sums[kRows][kPanelVectors];
    HWY_UNROLL(6)
    for (int r = 0; r < kRows; ++r) {
      HWY_UNROLL(2)
      for (auto& sum : sums[r]) sum = _mm512_setzero_ps();
    }
    const QuantizedQuad* quad = a;
    for (int64_t b = first; b < blocks; b += QuantizedQuad::kBlocks, ++quad, ++panel) {
      if (ahead != nullptr) ahead->Step();
      HWY_UNROLL(2)
      for (int half = 0; half < Panel::kHalves; ++half) {
        __m512i products[kRows][kPanelVectors];
        HWY_UNROLL(6)
        for (int r = 0; r < kRows; ++r) {
          HWY_UNROLL(2)
          for (auto& product : products[r]) product = _mm512_set1_epi32(quad[r * stride].start[half][first]);
        }
        HWY_UNROLL(8)
        for (int i = 0; i < kWords / Panel::kHalves; ++i) {
          const int k = half * kWords / 2 + i;
          __m512i words[kPanelVectors];
          HWY_UNROLL(2)
          for (int v = 0; v < kPanelVectors; ++v) words[v] = _mm512_load_si512(panel->words[v][k]);
          HWY_UNROLL(6)
          for (int r = 0; r < kRows; ++r) {
            int32_t elements;
            std::memcpy(&elements, quad[r * stride].q[position] + 4 * k, sizeof(elements));
            const __m512i x = _mm512_set1_epi32(elements);
            HWY_UNROLL(2)
            for (int v = 0; v < kPanelVectors; ++v) products[r][v] = DotOfBytes(products[r][v], words[v], x);
          }
        }
        HWY_UNROLL(2)
        for (int v = 0; v < kPanelVectors; ++v) {
          const __m512 scales = _mm512_load_ps(half == 0 ? panel->scales[v] : panel->others[v]);
          HWY_UNROLL(6)
          for (int r = 0; r < kRows; ++r) {
            const __m512 factors = _mm512_mul_ps(scales, _mm512_set1_ps(quad[r * stride].scale[first]));
            sums[r][v] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(products[r][v]), factors, sums[r][v]);
            if constexpr (Panel::kHasMinimum) {
              const __m512 sum = _mm512_set1_ps(quad[r * stride].sum[first]);
              sums[r][v] = _mm512_fmadd_ps(_mm512_load_ps(panel->others[v]), sum, sums[r][v]);
            }
          }
        }
      }
    }
    for (int r = 0; r < kRows; ++r) {
      HWY_UNROLL(2)
      for (int v = 0; v < kPanelVectors; ++v) {
        float* const to = partial_sums[position / 2][r][v];
        const bool adds = position % 2 == 1;
        _mm512_store_ps(to, adds ? _mm512_add_ps(_mm512_load_ps(to), sums[r][v]) : sums[r][v]);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(2)
    for (int v = 0; v < kPanelVectors; ++v) {
      const int64_t cols = std::clamp<int64_t>(out.cols - 16 * v, 0, 16);
      const __m512 sum = _mm512_add_ps(_mm512_load_ps(partial_sums[0][r][v]), _mm512_load_ps(partial_sums[1][r][v]));
      _mm512_mask_storeu_ps(out.y + r * out.stride + 16 * v, static_cast<__mmask16>((1 << cols) - 1), sum);
    }
  }
}

// Multiplies a panel by the first min(rows, kRows) rows of a, and returns their number.
template <int kRows, class Panel>
HWY_INLINE int64_t SomePanelRows(const Panel* panel, int64_t blocks, const QuantizedQuad* a, int64_t stride,
                                 int64_t rows, const PanelOutput& out, Ahead* ahead) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return SomePanelRows<kRows - 1>(panel, blocks, a, stride, rows, out, ahead);
  }
  PanelTimesRows<kRows>(panel, blocks, a, stride, out, ahead);
  return kRows;
}

size_t PanelWorkspace(DType dtype, int64_t inner) {
  return static_cast<size_t>(BlocksOf(dtype, inner) * RowOf(dtype).block / kBlock) * sizeof(PanelBlock<true, 1>);
}

// Computes columns `first` .. `last` - 1 of y. The copy of a panel and its product with the first rows of a prefetch
// the next panel.
template <class Format>
void MultiplyPanels(const WeightRows& w, int64_t first, int64_t last, const QuantizedQuad* a, int64_t rows, float* y,
                    PanelBlockOf<Format>* panel) {
  const int64_t blocks = w.inner / kBlock, stride = Format::Stride(w.inner), bytes = Format::RowBytes(w.inner);
  const int64_t steps = std::max<int64_t>(1, (kPanelVectors + 1) * blocks);
  for (int64_t col = first; col < last; col += kPanelColumns) {
    PanelOutput out = {.y = y + col, .stride = w.cols, .cols = std::min(kPanelColumns, last - col)};
    const int64_t next = std::min(col + kPanelColumns, last), after = std::min(next + kPanelColumns, last);
    Ahead ahead = {w.data + next * bytes, ((after - next) * bytes / 64 + steps - 1) / steps};
    PackPanel<Format>(w, col, last, panel, ahead);
    for (int64_t r = 0; r < rows;) {
      out.y = y + col + r * w.cols;
      // The remaining rows are divided among as few passes as possible. All passes have nearly the same number of rows.
      const int64_t passes = (rows - r + kPanelRows - 1) / kPanelRows;
      r += SomePanelRows<kPanelRows>(panel, blocks, a + r * stride, stride, (rows - r + passes - 1) / passes, out,
                                     r == 0 ? &ahead : nullptr);
    }
  }
}

#else

size_t PanelWorkspace(DType, int64_t) { return 0; }

#endif

}  // namespace HWY_NAMESPACE
}  // namespace weft
HWY_AFTER_NAMESPACE();

#endif  // per target
