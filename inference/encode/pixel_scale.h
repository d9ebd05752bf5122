// A PixelScale turns the pixels of a file into the values that a Vision Transformer reads.
//
//   WEFT_ASSIGN_OR_RETURN(const PixelScale scale, ReadPixelScale("runs/vit-1"));
//   const float value = scale(255);
#ifndef WEFT_INFERENCE_ENCODE_PIXEL_SCALE_H_
#define WEFT_INFERENCE_ENCODE_PIXEL_SCALE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "weft/formats/images.h"
#include "weft/models/vit.h"

namespace weft {

struct PixelScale {
  double rescale = 1.0 / 255, mean = 0.5, deviation = 0.5;
  float operator()(float pixel) const { return static_cast<float>((pixel * rescale - mean) / deviation); }
};

// Reads preprocessor_config.json in the folder of `model`. A training run must have that file; otherwise, without it,
// pixels from 0 to 255 become -1 to 1.
absl::StatusOr<PixelScale> ReadPixelScale(const std::string& model);

// Returns InvalidArgument if the model takes pictures of several channels, because Images have one. `path`: the model.
absl::Status CheckOneChannel(const std::string& path, const VitConfig& config);
// Returns InvalidArgument if the pictures' size is not the model's.
absl::Status CheckSize(const Images& images, const VitConfig& config);

}  // namespace weft

#endif  // WEFT_INFERENCE_ENCODE_PIXEL_SCALE_H_
