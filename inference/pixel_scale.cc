// The file has the format of Hugging Face's image processors.
#include "weft/inference/pixel_scale.h"

#include <nlohmann/json.hpp>

#include "weft/core/json.h"
#include "weft/core/status.h"
#include "weft/formats/run_folder.h"
#include "weft/formats/run_path.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

absl::Status Refuse(const char* key, const Json& value, const char* wanted) {
  return InvalidArgument(key, " is ", value.dump(), ", which is not supported; wanted ", wanted);
}

// Reads the number at `key`, which may be in a list of length 1, because pictures have one channel. If the key is
// missing, `number` stays unchanged.
absl::Status ReadNumber(const Json& json, const char* key, double* number) {
  const auto found = json.find(key);
  if (found == json.end()) return absl::OkStatus();
  const Json& value = found->is_array() && found->size() == 1 ? (*found)[0] : *found;
  if (!value.is_number()) return Refuse(key, *found, "a number");
  *number = value.get<double>();
  return absl::OkStatus();
}

// Returns the value of `key`, which says whether pixels are rescaled or normalised. A missing key means true.
absl::StatusOr<bool> Does(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end()) return true;
  if (!found->is_boolean()) return Refuse(key, *found, "true or false");
  return found->get<bool>();
}

}  // namespace

absl::StatusOr<PixelScale> ReadPixelScale(const std::string& model) {
  const std::string path = ParseRunPath(model).folder + "/preprocessor_config.json";
  const absl::StatusOr<Json> file = ReadJsonFile(path);
  if (absl::IsNotFound(file.status()) && !IsRun(model)) return PixelScale();
  WEFT_RETURN_IF_ERROR(file.status());
  PixelScale scale;
  const auto read = [&, &json = *file]() -> absl::Status {
    WEFT_RETURN_IF_ERROR(ReadNumber(json, "rescale_factor", &scale.rescale));
    WEFT_RETURN_IF_ERROR(ReadNumber(json, "image_mean", &scale.mean));
    WEFT_RETURN_IF_ERROR(ReadNumber(json, "image_std", &scale.deviation));
    WEFT_ASSIGN_OR_RETURN(const bool rescale, Does(json, "do_rescale"));
    WEFT_ASSIGN_OR_RETURN(const bool normalize, Does(json, "do_normalize"));
    if (!rescale) scale.rescale = 1;
    if (!normalize) scale.mean = 0, scale.deviation = 1;
    return scale.deviation != 0 ? absl::OkStatus() : Refuse("image_std", 0, "another number");
  };
  WEFT_RETURN_IF_ERROR(Annotate(read(), path));
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
