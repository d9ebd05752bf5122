// An ImageProcessor makes the input of a Vision Transformer from PNG and JPEG files. It does what Hugging Face's
// ViTImageProcessor and DeiTImageProcessor do with Pillow, and what preprocessor_config.json says.
//
//   WEFT_ASSIGN_OR_RETURN(const ImageProcessor processor, ReadImageProcessor("vit-base", config));
//   WEFT_ASSIGN_OR_RETURN(const RgbPicture picture, processor.Read("cat.jpg", bytes));
//   const float input = processor(picture.pixels[i], i);
#ifndef WEFT_FORMATS_IMAGE_PROCESSOR_H_
#define WEFT_FORMATS_IMAGE_PROCESSOR_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/models/vit.h"

namespace weft {

struct RgbPicture {
  int64_t height = 0, width = 0;
  std::vector<uint8_t> pixels;  // [height, width, 3]: red, green, blue
};

struct ImageProcessor {
  int64_t channels = 3;
  const struct Resampling* resampling = nullptr;  // null: pictures are not resized
  int64_t height = 0, width = 0;            // the size; without a width, `height` is the length of the shorter edge
  int64_t crop_height = 0, crop_width = 0;  // of the middle that is kept; 0: all of the picture
  double rescale = 1.0 / 255;
  std::vector<double> mean = {0.5}, deviation = {0.5};  // of each channel, or of all
  std::string file;                                     // preprocessor_config.json; "" without it

  // Reads a PNG or JPEG file of at most 8 bits a channel as a picture in the size of the input. As in Pillow,
  // transparency is left out, and pictures are turned as their EXIF or XMP data say. `path`: for errors. Returns
  // InvalidArgument for another or a damaged file, for more than 178,956,970 pixels (Pillow's limit), and for a picture
  // that is smaller than the part to keep.
  absl::StatusOr<RgbPicture> Read(const std::string& path, absl::string_view bytes) const;
  // Returns the input for `pixel`, the value `i` of a picture whose last axis has the channels.
  float operator()(float pixel, size_t i) const {
    return static_cast<float>((pixel * rescale - mean[i % mean.size()]) / deviation[i % deviation.size()]);
  }
};

// Reports whether a file begins as PNG or JPEG files do.
bool IsPicture(absl::string_view bytes);

// Reads preprocessor_config.json in the folder of `model`. A training run must have that file; otherwise, without it,
// pictures keep their size, and pixels from 0 to 255 become -1 to 1. A missing key has the default of the class.
// Returns InvalidArgument for a key or value that is not followed. `config`: of the model.
absl::StatusOr<ImageProcessor> ReadImageProcessor(const std::string& model, const VitConfig& config);

}  // namespace weft

#endif  // WEFT_FORMATS_IMAGE_PROCESSOR_H_
