// ParseShape reads the shapes that tests write as text, such as "[2,3]".
#ifndef WEFT_TESTS_PARSE_SHAPE_H_
#define WEFT_TESTS_PARSE_SHAPE_H_

#include <cstdint>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "weft/core/tensor.h"

namespace weft {

// Returns the shape that ToString writes as `text`, or nothing.
inline std::optional<Shape> ParseShape(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, "[") || !absl::ConsumeSuffix(&text, "]")) return std::nullopt;
  Shape shape;
  if (text.empty()) return shape;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    int64_t size;
    if (shape.rank() == Shape::kMaxRank || !absl::SimpleAtoi(part, &size)) return std::nullopt;
    shape.Append(size);
  }
  return shape;
}

}  // namespace weft

#endif  // WEFT_TESTS_PARSE_SHAPE_H_
