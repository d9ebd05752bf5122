// Containers are the kinds of files that hold weights, such as safetensors and GGUF. These functions recognise and read
// them, find the files of a model's weights, and divide weights into several files. docs/extending.md says how to add a
// container. No other folder includes this header.
#ifndef WEFT_FORMATS_WEIGHT_FILES_H_
#define WEFT_FORMATS_WEIGHT_FILES_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "weft/core/safetensors.h"

namespace weft {

// The file that holds a model's weights in its folder, or lists the files that do.
inline constexpr char kWeightsFile[] = "model.safetensors", kWeightIndex[] = "model.safetensors.index.json";
inline std::string WeightsPath(const std::string& folder) { return absl::StrCat(folder, "/", kWeightsFile); }

// Returns a file that was opened, for Container::open.
template <class File>
absl::StatusOr<std::shared_ptr<const TensorFile>> Shared(absl::StatusOr<File> file) {
  if (!file.ok()) return file.status();
  return std::make_shared<const File>(*std::move(file));
}

struct Container {
  absl::string_view what;                       // with an article: "a GGUF file"
  std::array<absl::string_view, 4> beginnings;  // first bytes of a file, where ? is any byte
  std::array<absl::string_view, 5> endings;     // of the names of files in a model's folder
  // Says what to do with a file that is not read, or that can't be a model by itself.
  absl::string_view advice;
  // The file that holds a model's weights in its folder, or empty; and the function that opens such files, or null if
  // the container is not read.
  absl::string_view weights_file;
  absl::StatusOr<std::shared_ptr<const TensorFile>> (*open)(const std::string& path, WantedChecksum checksum);
  // Returns what such a file says of its model, in the keys of config.json. Null if such files hold weights only.
  absl::StatusOr<nlohmann::ordered_json> (*config)(const std::string& path);
};
// Returns what the file of a model says of it (Container::config). Returns null for a file of no container, such as one
// of llama2.c, and the error of CheckNotForeign for a file that is no model by itself.
absl::StatusOr<nlohmann::ordered_json> ReadFileConfig(const std::string& path);
// Opens a file of weights by the container that its name ends with or, if there is none, as safetensors.
absl::StatusOr<std::shared_ptr<const TensorFile>> OpenTensorFile(const std::string& path, WantedChecksum checksum);

struct WeightFiles {
  std::string path;                                         // the file, or the index that lists the files; for errors
  std::map<std::string, std::vector<std::string>> tensors;  // by path of a file, names that the file must have
};
// Returns the files of the weights at `path`: itself, or in a folder the `weights_file` of a container, such as
// model.safetensors, or, if it is missing, the files that its index lists, such as kWeightIndex. The errors name files
// of other programs that are there instead.
absl::StatusOr<WeightFiles> FindWeightFiles(const std::string& path);

// Divides model.safetensors of `folder` as the package transformers does: into files model-00001-of-00003.safetensors
// with tensors of at most `max_bytes` bytes, or with one larger tensor. Writes kWeightIndex. If one file is enough,
// changes nothing.
absl::Status DivideWeights(const std::string& folder, uint64_t max_bytes);
// Reports whether a file has a name that DivideWeights gives.
bool IsWeightShard(absl::string_view name);

// Returns InvalidArgument if `path` is a file of another program, or a folder with such a file. The error says what the
// file is and how to convert it.
absl::Status CheckNotForeign(const std::string& path);

}  // namespace weft

#endif  // WEFT_FORMATS_WEIGHT_FILES_H_
