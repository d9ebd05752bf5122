// These functions find the files of a model's weights, and divide weights into several files. They also recognise files
// of programs whose formats Weft does not read. No other folder includes this header.
#ifndef WEFT_FORMATS_WEIGHT_FILES_H_
#define WEFT_FORMATS_WEIGHT_FILES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weft {

inline constexpr char kWeightIndex[] = "model.safetensors.index.json";

struct WeightFiles {
  std::string path;                                         // the file, or the index that lists the files; for errors
  std::map<std::string, std::vector<std::string>> tensors;  // by path of a file, names that the file must have
};
// Returns the files of the weights at `path`: itself, or in a folder model.safetensors or, if it is missing, the files
// that kWeightIndex lists. The errors name files of other programs that are there instead.
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
