// PaddedRows put texts of different lengths into the rows of a batch [B, T], with padding after each text.
//
//   PaddedRows rows;
//   rows.Fill(texts, batch.examples, {.rows = 32, .length = 64});   // texts: token ids
//   runner.Run({{tokens, rows.tokens}, {lengths, rows.lengths}});
#ifndef WEFT_TEXT_DATA_PADDED_ROWS_H_
#define WEFT_TEXT_DATA_PADDED_ROWS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace weft {

// Returns the number of tokens of each text, for BucketLengths and BucketBatches (text/data/buckets.h).
std::vector<int64_t> LengthsOf(absl::Span<const std::vector<int32_t>> texts);

struct PaddedRows {
  struct Shape {
    int64_t rows = 1, length = 1;  // B, T
    int32_t padding = 0;           // the token that fills the rest of a row
  };

  std::vector<int32_t> tokens;   // [B, T]
  std::vector<int32_t> lengths;  // [B]: the number of tokens of each text; 0 for a row without a text
  int64_t count = 0;             // tokens of all texts, without padding

  // Fills the first rows with texts[examples[0]], texts[examples[1]] and so on. There are at most `shape.rows`
  // examples, of at most `shape.length` tokens each.
  void Fill(absl::Span<const std::vector<int32_t>> texts, absl::Span<const int32_t> examples, const Shape& shape);
};

}  // namespace weft

#endif  // WEFT_TEXT_DATA_PADDED_ROWS_H_
