// These functions multiply bf16 matrices with AMX, in tiles of 16 rows and 16 columns.
//
//   if (!HasAmx()) return;  // instruction_set.h
//   const AmxTiles tiles;   // the calling thread may now use tiles
//   MultiplyAmx({.a = a, .a_stride = 64, .b = b, .c = c, .c_stride = 64, .rows = 2, .cols = 4, .terms = 1}, false);
#ifndef WEFT_OPS_KERNELS_PRODUCT_AMX_H_
#define WEFT_OPS_KERNELS_PRODUCT_AMX_H_

#include <cstdint>

namespace weft {

// Configures the tiles of the calling thread while it exists.
class AmxTiles {
 public:
  AmxTiles();
  ~AmxTiles();
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

// Computes c = a b or, if `add`, c += a b. An element of c is rounded after every 32 terms.
void MultiplyAmx(const AmxProduct& product, bool add);

}  // namespace weft

#endif  // WEFT_OPS_KERNELS_PRODUCT_AMX_H_
