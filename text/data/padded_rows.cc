#include "weft/text/data/padded_rows.h"

#include <algorithm>

namespace weft {

std::vector<int64_t> LengthsOf(absl::Span<const std::vector<int32_t>> texts) {
  std::vector<int64_t> lengths;
  for (const std::vector<int32_t>& text : texts) lengths.push_back(static_cast<int64_t>(text.size()));
  return lengths;
}

void PaddedRows::Fill(absl::Span<const std::vector<int32_t>> texts, absl::Span<const int32_t> examples,
                      const Shape& shape) {
  const auto rows = static_cast<size_t>(shape.rows), length = static_cast<size_t>(shape.length);
  tokens.assign(rows * length, shape.padding);
  lengths.assign(rows, 0);
  count = 0;
  for (size_t row = 0; row < examples.size(); ++row) {
    const std::vector<int32_t>& text = texts[static_cast<size_t>(examples[row])];
    std::copy(text.begin(), text.end(), &tokens[row * length]);
    lengths[row] = static_cast<int32_t>(text.size());
    count += lengths[row];
  }
}

}  // namespace weft
