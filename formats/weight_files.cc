// A file of another program is known by its first bytes or, in a folder, by its name.
#include "weft/formats/weight_files.h"

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "weft/base/file.h"
#include "weft/base/json.h"
#include "weft/base/pattern.h"
#include "weft/base/status.h"
#include "weft/formats/all_containers.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;  // sorted, because an index may have many keys

// A file is of the first of these kinds that recognises it. A folder's weights are of the first kind that is there.
constexpr const Container* kContainers[] = {&kGguf, &kOnnx, &kSafetensors, &kPyTorch, &kTensorFlow, &kFlax};

bool BeginsWith(absl::string_view bytes, absl::string_view beginning) {
  const auto fits = [](char wanted, char got) { return wanted == '?' || wanted == got; };
  return !beginning.empty() && absl::c_equal(beginning, bytes.substr(0, beginning.size()), fits);
}

// Reports whether `name` is the name of a file of this kind.
bool HasEnding(const Container& container, absl::string_view name) {
  return absl::c_any_of(container.endings,
                        [&](absl::string_view each) { return !each.empty() && absl::EndsWith(name, each); });
}

absl::Status ForeignError(const fs::path& path, const Container& container) {
  return InvalidArgument(path.string(), " is ", container.what,
                         container.config == nullptr ? ", which is not read. " : ", which is a model by itself. ",
                         container.advice);
}

// Returns the container of a file by the file's first bytes or, for a model by itself, by its name. Returns null if
// there is none.
const Container* ContainerOf(const std::string& path) {
  const absl::StatusOr<RandomAccessFile> file = RandomAccessFile::Open(path);
  std::string bytes(16, '\0');
  if (!file.ok() || !file->Read(0, bytes.size(), bytes.data()).ok()) bytes.clear();
  for (const Container* const container : kContainers) {
    if (absl::c_any_of(container->beginnings, [&](absl::string_view each) { return BeginsWith(bytes, each); })) {
      return container;
    }
  }
  for (const Container* const container : kContainers) {
    if (container->config != nullptr && HasEnding(*container, path)) return container;
  }
  return nullptr;
}

// Reads the index `path` of files of `container` in `folder`.
absl::StatusOr<WeightFiles> ReadIndex(const std::string& folder, const std::string& path, const Container& container) {
  WEFT_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  WEFT_ASSIGN_OR_RETURN(const Json json, Annotate(ParseLargeJsonObject(text), path));
  const Json map = json.value("weight_map", Json());
  if (!map.is_object() || map.empty()) {
    return InvalidArgument(path, ": weight_map is missing or empty; wanted the name of a file for each tensor");
  }
  WeightFiles files = {path, {}};
  for (const auto& [tensor, file] : map.items()) {
    const std::string name = file.is_string() ? file.get<std::string>() : "";
    if (!HasEnding(container, name) || absl::StrContains(name, '/')) {
      return InvalidArgument(path, ": '", tensor, "' is in ", file.dump(-1, ' ', false, Json::error_handler_t::replace),
                             "; wanted the name of ", container.what, " in the same folder");
    }
    files.tensors[absl::StrCat(folder, "/", name)].push_back(tensor);
  }
  return files;
}

}  // namespace

constexpr Container kOnnx = {.what = "an ONNX file",
                             .beginnings = {"\x08?\x12"},
                             .endings = {".onnx"},
                             .advice = "Wanted the model that the file was exported from, as safetensors"};
constexpr Container kTensorFlow = {
    .what = "a file of TensorFlow",
    .beginnings = {"\x89HDF\r\n"},
    .endings = {".h5"},
    .advice =
        "In Python, from_pretrained(FOLDER, from_tf=True) and save_pretrained(OUT) of the package transformers, "
        "version 4, write model.safetensors"};
constexpr Container kFlax = {
    .what = "a file of Flax",
    .endings = {"flax_model.msgpack"},
    .advice =
        "In Python, from_pretrained(FOLDER, from_flax=True) and save_pretrained(OUT) of the package "
        "transformers, version 4, write model.safetensors"};
constexpr Container kSafetensors = {.what = "a safetensors file",
                                    .beginnings = {"????????{"},
                                    .endings = {".safetensors"},
                                    .advice = "Wanted its folder, with config.json",
                                    .weights_file = kWeightsFile,
                                    .open = [](const std::string& path, WantedChecksum checksum) {
                                      return Shared(SafetensorsFile::Open(path, checksum));
                                    }};

absl::StatusOr<nlohmann::ordered_json> ReadFileConfig(const std::string& path) {
  const Container* const container = ContainerOf(path);
  if (container == nullptr) return nlohmann::ordered_json();
  if (container->config == nullptr) return ForeignError(path, *container);
  if (HasEnding(*container, path)) return container->config(path);
  return InvalidArgument(path, " is ", container->what, "; wanted a name that ends with ", container->endings[0]);
}

absl::Status CheckNotForeign(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    const Container* const container = ContainerOf(path);
    return container == nullptr ? absl::OkStatus() : ForeignError(path, *container);
  }
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) files.push_back(entry.path());
  absl::c_sort(files);
  for (const Container* const container : kContainers) {
    for (const fs::path& file : files) {
      if ((container->open == nullptr || container->config != nullptr) &&
          HasEnding(*container, file.filename().string())) {
        return ForeignError(file, *container);
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const TensorFile>> OpenTensorFile(const std::string& path, WantedChecksum checksum) {
  for (const Container* const container : kContainers) {
    if (container->open != nullptr && HasEnding(*container, path)) return container->open(path, checksum);
  }
  return kSafetensors.open(path, checksum);
}

absl::StatusOr<WeightFiles> FindWeightFiles(const std::string& path) {
  if (!IsFolder(path)) return WeightFiles{path, {{path, {}}}};
  for (const Container* const container : kContainers) {
    if (container->open == nullptr || container->weights_file.empty()) continue;
    const std::string single = absl::StrCat(path, "/", container->weights_file), index = single + ".index.json";
    if (Exists(single)) return WeightFiles{single, {{single, {}}}};
    if (Exists(index)) return ReadIndex(path, index, *container);
  }
  WEFT_RETURN_IF_ERROR(CheckNotForeign(path));
  return SystemStatus("open", WeightsPath(path), ENOENT);
}

absl::Status DivideWeights(const std::string& folder, uint64_t max_bytes) {
  WEFT_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(WeightsPath(folder)));
  std::vector<std::vector<NamedTensor>> shards;
  uint64_t total = 0, bytes = 0;  // bytes of all shards, and of the newest
  for (const NamedTensor& named : file.tensors()) {
    const uint64_t more = named.tensor.type.bytes();
    if (shards.empty() || bytes + more > max_bytes) {
      shards.emplace_back();
      bytes = 0;
    }
    shards.back().push_back(named);
    bytes += more;
    total += more;
  }
  if (shards.size() < 2) return absl::OkStatus();
  Json map = Json::object();
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string name = absl::StrFormat("model-%05d-of-%05d.safetensors", i + 1, shards.size());
    WEFT_RETURN_IF_ERROR(WriteSafetensors(absl::StrCat(folder, "/", name), shards[i], {{"format", "pt"}}));
    for (const NamedTensor& named : shards[i]) map[named.name] = name;
  }
  const Json index = {{"metadata", {{"total_size", total}}}, {"weight_map", std::move(map)}};
  WEFT_RETURN_IF_ERROR(WriteFile(absl::StrCat(folder, "/", kWeightIndex), {index.dump(2), "\n"}));
  std::error_code error;
  fs::remove(WeightsPath(folder), error);
  return error ? SystemStatus("remove", WeightsPath(folder), error.value()) : absl::OkStatus();
}

bool IsWeightShard(absl::string_view name) {
  return MatchesPattern("model-[0-9][0-9][0-9][0-9][0-9]-of-[0-9][0-9][0-9][0-9][0-9].safetensors", name);
}

}  // namespace weft
