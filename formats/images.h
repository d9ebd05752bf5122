// Pictures and their classes, for training: from CSV, or from MNIST's IDX files. gzip may have compressed either.
//
//   WEFT_ASSIGN_OR_RETURN(Images images, ReadImages("digits.csv.gz"));
#ifndef WEFT_FORMATS_IMAGES_H_
#define WEFT_FORMATS_IMAGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace weft {

struct Images {
  std::string path;  // for errors
  int64_t height = 0, width = 0;
  std::vector<float> pixels;    // [N, height, width], as the file has them
  std::vector<int32_t> labels;  // [N], from 0; none of pictures without labels

  int64_t size() const { return pixels.empty() ? 0 : static_cast<int64_t>(pixels.size()) / pixels_each(); }
  int64_t pixels_each() const { return height * width; }
  absl::Span<const float> operator[](int64_t i) const {
    return absl::MakeConstSpan(pixels).subspan(static_cast<size_t>(i * pixels_each()),
                                               static_cast<size_t>(pixels_each()));
  }
};

// CSV: a picture a line, its pixels row by row, then its label; pictures are square. IDX (LeCun's, of 8-bit pixels):
// `path` has the pictures, `labels` their labels. InvalidArgument, with file and line or place, for what is neither,
// for pixels below 0, labels that are no whole numbers of 0 .. 65535, and for files that differ in how many they have.
absl::StatusOr<Images> ReadImages(const std::string& path, const std::string& labels = "");

// The same of pictures of so many pixels: CSV may be without labels, and IDX needs none. No label is read.
absl::StatusOr<Images> ReadUnlabelledImages(const std::string& path, int64_t height, int64_t width);

// Every n-th picture is taken from `images`, for validation.
Images HoldOut(Images* images, int64_t n);

}  // namespace weft

#endif  // WEFT_FORMATS_IMAGES_H_
