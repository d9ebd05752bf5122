// These functions multiply bf16 matrices with AMX, in tiles of 16 rows and 16 columns. The instructions are inline
// assembly, so that a file that includes this header needs no option of the compiler.
//
//   if (!HasAmx()) return;  // instruction_set.h
//   const AmxTiles tiles;   // the calling thread may now use tiles
//   MultiplyAmx({.a = a, .a_stride = 64, .b = b, .c = c, .c_stride = 64, .rows = 2, .cols = 4, .terms = 1}, false);
#ifndef WEFT_OPS_KERNELS_PRODUCT_AMX_H_
#define WEFT_OPS_KERNELS_PRODUCT_AMX_H_

#include <cstdint>
#include <type_traits>

namespace weft {

// Configures the tiles of the calling thread while it exists.
class AmxTiles {
 public:
  AmxTiles() {
    struct alignas(64) {
      uint8_t palette = 1, start_row = 0, reserved[14] = {};
      uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    } const configuration;
    asm volatile("ldtilecfg %0" ::"m"(configuration));
  }
  ~AmxTiles() { asm volatile("tilerelease"); }
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;
};

// Describes a product of whole tiles. Rows and strides are in words of 4 bytes: an f32 number, or two bf16 numbers that
// are neighbours along the inner dimension.
struct AmxProduct {
  const float* a;  // [16 rows, 16 terms]
  int64_t a_stride;
  const float* b;  // [16 terms, 64]
  float* c;        // [16 rows, 16 cols]
  int64_t c_stride;
  int64_t rows, cols, terms;  // rows: 1 or 2; cols: 1 to 4
};

namespace amx {

inline constexpr int64_t kTileWords = 16;        // words of a tile's row, and rows of a tile
inline constexpr int64_t kPanelWords = 64;       // words between rows of B
inline constexpr int kSums = 0, kA = 4, kB = 6;  // first tile registers: four of C, two of A and two of B

template <int kTile>
void Load(const float* from, int64_t stride) {
  asm volatile("tileloadd (%1,%2,1), %%tmm%c0" ::"i"(kTile), "r"(from), "r"(stride * 4) : "memory");
}
template <int kTile>
void Store(float* to, int64_t stride) {
  asm volatile("tilestored %%tmm%c0, (%1,%2,1)" ::"i"(kTile), "r"(to), "r"(stride * 4) : "memory");
}
template <int kTile>
void Clear() {
  asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
}
template <int kSum, int kLeft, int kRight>
void MultiplyAdd() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kLeft), "i"(kRight));
}

// Calls f(i, j) for the tiles of C, with compile-time constants.
template <int kRows, int kCols, class F>
void ForEachSum(F f) {
  const auto row = [&](auto i) {
    f(i, std::integral_constant<int, 0>());
    if constexpr (kCols == 2) f(i, std::integral_constant<int, 1>());
  };
  row(std::integral_constant<int, 0>());
  if constexpr (kRows == 2) row(std::integral_constant<int, 1>());
}

template <int kRows, int kCols>
void MultiplyTiles(const AmxProduct& p, int64_t column, bool add) {
  const float *a = p.a, *b = p.b + column * kTileWords;
  float* const c = p.c + column * kTileWords;
  ForEachSum<kRows, kCols>([&](auto i, auto j) {
    constexpr int kSum = kSums + 2 * i() + j();
    add ? Load<kSum>(c + i() * kTileWords * p.c_stride + j() * kTileWords, p.c_stride) : Clear<kSum>();
  });
  for (int64_t k = 0; k < p.terms; ++k, a += kTileWords, b += kTileWords * kPanelWords) {
    Load<kB>(b, kPanelWords);
    Load<kA>(a, p.a_stride);
    if constexpr (kCols == 2) Load<kB + 1>(b + kTileWords, kPanelWords);
    if constexpr (kRows == 2) Load<kA + 1>(a + kTileWords * p.a_stride, p.a_stride);
    ForEachSum<kRows, kCols>([&](auto i, auto j) { MultiplyAdd<kSums + 2 * i() + j(), kA + i(), kB + j()>(); });
  }
  ForEachSum<kRows, kCols>([&](auto i, auto j) {
    Store<kSums + 2 * i() + j()>(c + i() * kTileWords * p.c_stride + j() * kTileWords, p.c_stride);
  });
}

}  // namespace amx

// Computes c = a b or, if `add`, c += a b. An element of c is rounded after every 32 terms.
inline void MultiplyAmx(const AmxProduct& p, bool add) {
  for (int64_t j = 0; j < p.cols; j += 2) {
    const bool two = j + 1 < p.cols;
    const auto multiply = p.rows == 2 ? (two ? amx::MultiplyTiles<2, 2> : amx::MultiplyTiles<2, 1>)
                                      : (two ? amx::MultiplyTiles<1, 2> : amx::MultiplyTiles<1, 1>);
    multiply(p, j, add);
  }
}

}  // namespace weft

#endif  // WEFT_OPS_KERNELS_PRODUCT_AMX_H_
