// ReadImages reads pictures and their classes: from CSV or MNIST's IDX files, which may be gzip-compressed, or PNG and
// JPEG files in folders or lists. WritePng writes a grey picture as a PNG file, which every browser shows.
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
#include "weft/formats/image_processor.h"

namespace weft {

struct Images {
  std::string path;  // for errors
  int64_t height = 0, width = 0;
  std::vector<float> pixels;    // [N, height, width, channels], with the file's values
  std::vector<int32_t> labels;  // [N], from 0; empty for pictures without labels
  int64_t channels = 1;
  std::vector<std::string> classes;  // the labels' names; empty for CSV and IDX
  bool processed = false;            // whether an ImageProcessor resized the pictures, which are PNG or JPEG files

  int64_t size() const { return pixels.empty() ? 0 : static_cast<int64_t>(pixels.size()) / pixels_each(); }
  int64_t pixels_each() const { return height * width * channels; }
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
//
// A folder has one folder of PNG or JPEG files for each class, named like the class. A line of a list has the path of a
// file, relative to the list, a tab and the name of a class. `processor` gives these pictures their size and channels.
// Labels are indices of `classes` or, if it is empty, of the sorted names of classes.
absl::StatusOr<Images> ReadImages(const std::string& path, const std::string& labels = "",
                                  const ImageProcessor& processor = {}, absl::Span<const std::string> classes = {});

// Reads pictures without labels. Pictures of CSV have `height` x `width` pixels; a label after them is ignored. If both
// are 0, pictures of CSV are square and each must have a label. An IDX file gives its own height and width, which are
// not checked. A PNG or JPEG file is one picture; in a folder or a list, labels are ignored.
absl::StatusOr<Images> ReadUnlabelledImages(const std::string& path, int64_t height, int64_t width,
                                            const ImageProcessor& processor = {});

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
