// A file of another program is known by its first bytes or, in a folder, by its name.
#include "weft/formats/weight_files.h"

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weft/base/file.h"
#include "weft/base/json.h"
#include "weft/base/random_access_file.h"
#include "weft/base/status.h"
#include "weft/core/safetensors.h"
#include "weft/formats/published.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;  // sorted, because an index may have many keys

struct ForeignKind {
  const char* what;
  std::vector<absl::string_view> beginnings;  // first bytes of a file, where ? is any byte
  std::vector<absl::string_view> endings;     // of a file's name
  const char* advice;
};

constexpr char kFromPyTorch[] =
    "In Python, AutoModelForCausalLM.from_pretrained(FOLDER).save_pretrained(OUT) of the package transformers, or the "
    "same of the model's own class, writes model.safetensors";

const std::vector<ForeignKind>& ForeignKinds() {
  static const auto* const kinds = new std::vector<ForeignKind>{
      {"a GGUF file",
       {"GGUF"},
       {".gguf"},
       "In Python, AutoModelForCausalLM.from_pretrained(FOLDER, gguf_file=FILE).save_pretrained(OUT) of the package "
       "transformers writes model.safetensors"},
      {"an ONNX file", {"\x08?\x12"}, {".onnx"}, "Wanted the model that the file was exported from, as safetensors"},
      // torch.save writes a zip file, and before version 1.6 a pickle.
      {"a PyTorch file",
       {"PK\x03\x04", "\x80\x02\x8a\x0a", "\x80\x02}", "\x80\x04\x95"},
       {"pytorch_model.bin", "pytorch_model.bin.index.json", ".pt", ".pth", ".ckpt"},
       kFromPyTorch},
      {"a file of TensorFlow",
       {"\x89HDF\r\n"},
       {".h5"},
       "In Python, from_pretrained(FOLDER, from_tf=True) and save_pretrained(OUT) of the package transformers, version "
       "4, write model.safetensors"},
      {"a file of Flax",
       {},
       {"flax_model.msgpack"},
       "In Python, from_pretrained(FOLDER, from_flax=True) and save_pretrained(OUT) of the package transformers, "
       "version 4, write model.safetensors"},
      {"a safetensors file", {"????????{"}, {}, "Wanted its folder, with config.json"},
  };
  return *kinds;
}

bool BeginsWith(absl::string_view bytes, absl::string_view beginning) {
  if (bytes.size() < beginning.size()) return false;
  for (size_t i = 0; i < beginning.size(); ++i) {
    if (beginning[i] != '?' && beginning[i] != bytes[i]) return false;
  }
  return true;
}

absl::Status ForeignError(const fs::path& path, const ForeignKind& kind) {
  return InvalidArgument(path.string(), " is ", kind.what, ", which is not read. ", kind.advice);
}

}  // namespace

absl::Status CheckNotForeign(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    const absl::StatusOr<RandomAccessFile> file = RandomAccessFile::Open(path);
    std::string bytes(16, '\0');
    if (!file.ok() || !file->Read(0, bytes.size(), bytes.data()).ok()) return absl::OkStatus();
    for (const ForeignKind& kind : ForeignKinds()) {
      if (absl::c_any_of(kind.beginnings, [&](absl::string_view each) { return BeginsWith(bytes, each); })) {
        return ForeignError(path, kind);
      }
    }
    return absl::OkStatus();
  }
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) files.push_back(entry.path());
  absl::c_sort(files);
  for (const ForeignKind& kind : ForeignKinds()) {
    for (const fs::path& file : files) {
      const std::string name = file.filename().string();
      if (absl::c_any_of(kind.endings, [&](absl::string_view each) { return absl::EndsWith(name, each); })) {
        return ForeignError(file, kind);
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<WeightFiles> FindWeightFiles(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return WeightFiles{path, {{path, {}}}};
  const std::string single = WeightsPath(path), index = absl::StrCat(path, "/", kWeightIndex);
  if (Exists(single)) return WeightFiles{single, {{single, {}}}};
  if (!Exists(index)) {
    WEFT_RETURN_IF_ERROR(CheckNotForeign(path));
    return SystemStatus("open", single, ENOENT);
  }
  WEFT_ASSIGN_OR_RETURN(const std::string text, ReadFile(index));
  WEFT_ASSIGN_OR_RETURN(const Json json, Annotate(ParseLargeJsonObject(text), index));
  const Json map = json.value("weight_map", Json());
  if (!map.is_object() || map.empty()) {
    return InvalidArgument(index, ": weight_map is missing or empty; wanted the name of a file for each tensor");
  }
  WeightFiles files = {index, {}};
  for (const auto& [tensor, file] : map.items()) {
    const std::string name = file.is_string() ? file.get<std::string>() : "";
    if (!absl::EndsWith(name, ".safetensors") || absl::StrContains(name, '/')) {
      return InvalidArgument(index, ": '", tensor, "' is in ",
                             file.dump(-1, ' ', false, Json::error_handler_t::replace),
                             "; wanted the name of a safetensors file in the same folder");
    }
    files.tensors[absl::StrCat(path, "/", name)].push_back(tensor);
  }
  return files;
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
  const absl::string_view pattern = "model-00000-of-00000.safetensors";
  if (name.size() != pattern.size()) return false;
  for (size_t i = 0; i < name.size(); ++i) {
    if (pattern[i] == '0' ? !absl::ascii_isdigit(static_cast<unsigned char>(name[i])) : name[i] != pattern[i])
      return false;
  }
  return true;
}

}  // namespace weft
