// ReadImages reads pictures and their classes from CSV or MNIST's IDX files, which may be gzip-compressed. WritePng
// writes a grey picture as a PNG file, which every browser shows.
//
//   WEFT_ASSIGN_OR_RETURN(Images images, ReadImages("digits.csv.gz"));
//   GreyPicture picture(/*height=*/28, /*width=*/28);
//   picture.at(0, 3) = 255;
//   WEFT_RETURN_IF_ERROR(WritePng("digit.png", picture));
#ifndef WEFT_FORMATS_IMAGES_H_
#define WEFT_FORMATS_IMAGES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace weft {

struct Images {
  std::string path;  // for errors
  int64_t height = 0, width = 0;
  std::vector<float> pixels;    // [N, height, width], with the file's values
  std::vector<int32_t> labels;  // [N], from 0; empty for pictures without labels

  int64_t size() const { return pixels.empty() ? 0 : static_cast<int64_t>(pixels.size()) / pixels_each(); }
  int64_t pixels_each() const { return height * width; }
  absl::Span<const float> operator[](int64_t i) const {
    return absl::MakeConstSpan(pixels).subspan(static_cast<size_t>(i * pixels_each()),
                                               static_cast<size_t>(pixels_each()));
  }
};

// Reads pictures with labels. A line of CSV has the pixels of one square picture, row by row, and then its label; all
// pictures have one size, and `labels` must be empty. For IDX (LeCun's format, with 8-bit pixels), `path` has the
// pictures and `labels` has their labels. Pixels are at least 0, and labels are whole numbers below 65536. Returns
// InvalidArgument, with the file and for CSV the line, if a file breaks these rules, or if the numbers of pictures and
// labels differ. A CSV whose first column has the labels, as that of some programs, also gives InvalidArgument. Such a
// file is recognised if its first column has all of the labels 0, 1, ..., and its last one rather has pixels.
absl::StatusOr<Images> ReadImages(const std::string& path, const std::string& labels = "");

// Reads pictures without labels. Pictures of CSV have `height` x `width` pixels; a label after them is ignored. If both
// are 0, pictures of CSV are square and each must have a label. An IDX file gives its own height and width, which are
// not checked.
absl::StatusOr<Images> ReadUnlabelledImages(const std::string& path, int64_t height, int64_t width);

// Removes all pictures but the first `count`.
void KeepFirst(int64_t count, Images* images);

// Removes every n-th picture from `images`, and returns the removed pictures for validation.
Images HoldOut(Images* images, int64_t n);

struct GreyPicture {
  GreyPicture(int64_t height, int64_t width, uint8_t grey = 0)
      : height(height), width(width), pixels(static_cast<size_t>(height * width), grey) {}

  uint8_t& at(int64_t y, int64_t x) { return pixels[static_cast<size_t>(y * width + x)]; }

  int64_t height, width;
  std::vector<uint8_t> pixels;  // [height, width], from 0, black, to 255, white
};

// Writes `picture` to the file `path`, which it replaces.
absl::Status WritePng(const std::string& path, const GreyPicture& picture);

}  // namespace weft

#endif  // WEFT_FORMATS_IMAGES_H_
