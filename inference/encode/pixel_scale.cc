// The file has the format of Hugging Face's image processors.
#include "weft/inference/encode/pixel_scale.h"

#include <nlohmann/json.hpp>

#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/formats/config_keys.h"
#include "weft/formats/run_folder.h"
#include "weft/formats/run_path.h"

namespace weft {

absl::StatusOr<PixelScale> ReadPixelScale(const std::string& model) {
  const std::string path = ParseRunPath(model).folder + "/preprocessor_config.json";
  const auto file = ReadJsonFile(path);
  if (absl::IsNotFound(file.status()) && !IsRun(model)) return PixelScale();
  WEFT_RETURN_IF_ERROR(file.status());
  KeyReader keys(*file);
  // Reads a number, which may be in a list of length 1, because pictures have one channel.
  const auto number = [&](const char* key, double& value) {
    const nlohmann::ordered_json* json = keys.Find(key);
    if (json != nullptr && json->is_array() && json->size() == 1) json = &json->front();
    if (json != nullptr && json->is_number()) {
      value = json->get<double>();
    } else if (file->contains(key)) {
      keys.Refuse(key, "a number");
    }
  };
  PixelScale scale;
  bool rescale = true, normalize = true;
  number("rescale_factor", scale.rescale);
  number("image_mean", scale.mean);
  number("image_std", scale.deviation);
  for (const auto& [key, value] : {std::pair("do_rescale", &rescale), std::pair("do_normalize", &normalize)}) {
    if (keys.IsNull(key)) keys.Refuse(key, "true or false");
    keys.Field(key, *value);
  }
  if (!rescale) scale.rescale = 1;
  if (!normalize) scale.mean = 0, scale.deviation = 1;
  if (scale.deviation == 0) keys.Refuse("image_std", "another number");
  WEFT_RETURN_IF_ERROR(Annotate(keys.Refused(), path));
  return scale;
}

absl::Status CheckOneChannel(const std::string& path, const VitConfig& config) {
  if (config.channels == 1) return absl::OkStatus();
  return InvalidArgument(path, ": the model takes pictures of ", config.channels,
                         " channels, but only pictures of one can be read");
}

absl::Status CheckSize(const Images& images, const VitConfig& config) {
  if (images.height == config.image_height && images.width == config.image_width) return absl::OkStatus();
  return InvalidArgument(images.path, " has pictures of ", images.height, " x ", images.width,
                         " pixels, but the model takes ", config.image_height, " x ", config.image_width);
}

}  // namespace weft
