#include "weft/train/run/checkpoint.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "weft/base/arena.h"
#include "weft/base/checksum.h"
#include "weft/base/file.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/core/safetensors.h"
#include "weft/distributed/piece_name.h"
#include "weft/formats/run_folder.h"
#include "weft/train/run/build_info.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr char kWriting[] = ".writing-", kReplaced[] = ".replaced-", kRemoving[] = ".removing-";
// Early builds of Weft 0.1.0 wrote checkpoint.json without these two keys. Such a file has no checksum to verify.
constexpr char kChecksum[] = "checksum", kTrainer[] = "trainer";

absl::Status Remove(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  return SystemStatus("remove", path, error.value());
}

absl::Status Rename(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::rename(from, to, error);
  return SystemStatus("rename", from, error.value());
}

std::string WritingFolder(const std::string& checkpoints, int64_t step) {
  return absl::StrCat(checkpoints, "/", kWriting, step);
}

std::string FileOfRank(const std::string& folder, int rank) {
  return absl::StrCat(folder, "/state.", rank, ".safetensors");
}

// The rows of a tensor, seen as a matrix, that a file contains.
struct StoredRows {
  IndexRange rows;
  Tensor tensor;
};

IndexRange RowsOf(const std::string& name, const Tensor& tensor) {
  const std::optional<Piece> piece = ParsePiece(name);
  return piece ? piece->rows : IndexRange{0, tensor.type.shape.rows()};
}

// Copies the rows `rows` of a tensor to `wanted`. Returns false if `stored` lacks some of the rows.
bool CopyRows(const std::vector<StoredRows>& stored, IndexRange rows, const Tensor& wanted) {
  const size_t row_bytes = wanted.type.bytes() / static_cast<size_t>(std::max<int64_t>(rows.size(), 1));
  int64_t copied = 0;
  for (const StoredRows& from : stored) {
    const int64_t begin = std::max(from.rows.begin, rows.begin), end = std::min(from.rows.end, rows.end);
    const bool fits = from.tensor.type.dtype == wanted.type.dtype &&
                      from.tensor.type.bytes() == static_cast<size_t>(from.rows.size()) * row_bytes;
    if (begin >= end || !fits) continue;
    std::memcpy(wanted.data + static_cast<size_t>(begin - rows.begin) * row_bytes,
                from.tensor.data + static_cast<size_t>(begin - from.rows.begin) * row_bytes,
                static_cast<size_t>(end - begin) * row_bytes);
    copied += end - begin;
  }
  return copied == rows.size();
}

}  // namespace

absl::Status TidyCheckpoints(const std::string& checkpoints) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(checkpoints));
  for (const std::string& name : names) {
    const std::string path = absl::StrCat(checkpoints, "/", name);
    absl::string_view step = name;
    if (absl::StartsWith(name, kWriting) || absl::StartsWith(name, kRemoving)) WEFT_RETURN_IF_ERROR(Remove(path));
    if (!absl::ConsumePrefix(&step, kReplaced)) continue;
    const std::string wanted = absl::StrCat(checkpoints, "/", step);
    WEFT_RETURN_IF_ERROR(Exists(wanted) ? Remove(path) : Rename(path, wanted));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> BeginCheckpoint(const std::string& checkpoints, int64_t step) {
  const std::string writing = WritingFolder(checkpoints, step);
  WEFT_RETURN_IF_ERROR(Remove(writing));
  const bool first = !Exists(checkpoints);
  std::error_code error;
  fs::create_directories(writing, error);
  WEFT_RETURN_IF_ERROR(SystemStatus("create", writing, error.value()));
  if (first) WEFT_RETURN_IF_ERROR(SyncParent(checkpoints));
  return writing;
}

absl::Status SaveCheckpoint(const std::string& checkpoints, CheckpointInfo info, const Parameters& parameters,
                            int64_t keep, bool begun) {
  WEFT_ASSIGN_OR_RETURN(const nlohmann::ordered_json trainer, Annotate(ParseJsonObject(info.trainer), "trainer"));
  const std::string writing = WritingFolder(checkpoints, info.step);
  if (!begun) WEFT_RETURN_IF_ERROR(BeginCheckpoint(checkpoints, info.step).status());
  WEFT_RETURN_IF_ERROR(parameters.Save(writing + kCheckpointState, Parameters::kAll));
  const nlohmann::ordered_json json = {{kChecksum, kNoChecksum}, {"step", info.step},
                                       {"seed", info.seed},      {"parameters_step", info.parameters_step},
                                       {"data", info.data},      {"version", BuildName()},
                                       {"cpu", CpuFeatures()},   {kTrainer, trainer}};
  std::string text = json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  PutChecksum(&text);
  WEFT_RETURN_IF_ERROR(WriteFile(writing + kCheckpointInfo, {text}));
  WEFT_RETURN_IF_ERROR(SyncFolder(writing));
  const std::string path = CheckpointFolder(checkpoints, info.step);
  const std::string replaced = absl::StrCat(checkpoints, "/", kReplaced, info.step);
  WEFT_RETURN_IF_ERROR(Remove(replaced));
  if (Exists(path)) WEFT_RETURN_IF_ERROR(Rename(path, replaced));
  WEFT_RETURN_IF_ERROR(Rename(writing, path));
  WEFT_RETURN_IF_ERROR(SyncFolder(checkpoints));
  WEFT_RETURN_IF_ERROR(Remove(replaced));
  return PruneCheckpoints(checkpoints, info.step, keep);
}

absl::Status PruneCheckpoints(const std::string& checkpoints, int64_t step, int64_t keep) {
  std::vector<int64_t> steps = ListCheckpoints(checkpoints);
  std::rotate(steps.begin(), absl::c_find_if(steps, [&](int64_t each) { return each <= step; }), steps.end());
  if (steps.size() <= static_cast<size_t>(keep)) return absl::OkStatus();
  for (size_t i = static_cast<size_t>(keep); i < steps.size(); ++i) {
    const std::string removing = absl::StrCat(checkpoints, "/", kRemoving, steps[i]);
    WEFT_RETURN_IF_ERROR(Remove(removing));
    WEFT_RETURN_IF_ERROR(Rename(CheckpointFolder(checkpoints, steps[i]), removing));
    WEFT_RETURN_IF_ERROR(Remove(removing));
  }
  return SyncFolder(checkpoints);
}

absl::StatusOr<CheckpointInfo> ReadCheckpointInfo(const std::string& checkpoints, int64_t step) {
  const std::string path = CheckpointFolder(checkpoints, step) + kCheckpointInfo;
  WEFT_ASSIGN_OR_RETURN(const std::string contents, ReadFile(path));
  const absl::StatusOr<nlohmann::ordered_json> parsed = ParseJsonObject(contents);
  if (!parsed.ok()) return absl::DataLossError(absl::StrCat(path, ": ", parsed.status().message()));
  const nlohmann::ordered_json& json = *parsed;
  // The keys of all versions, and whether their values are texts.
  constexpr std::pair<const char*, bool> kKeys[] = {{"step", false}, {"seed", false},   {"parameters_step", false},
                                                    {"data", true},  {"version", true}, {"cpu", true}};
  for (const auto& [key, is_text] : kKeys) {
    if (json.contains(key) && (is_text ? json[key].is_string() : json[key].is_number_integer())) continue;
    return absl::DataLossError(absl::StrCat(path, ": no ", is_text ? "text" : "whole number", " '", key, "'"));
  }
  std::string trainer = "{}";
  if (json.size() != std::size(kKeys)) {
    const auto digits = json.find(kChecksum), object = json.find(kTrainer);
    if (digits == json.end() || !digits->is_string() || object == json.end() || !object->is_object()) {
      return absl::DataLossError(absl::StrCat(path, ": no '", kChecksum, "' or no '", kTrainer, "'"));
    }
    WEFT_RETURN_IF_ERROR(Annotate(CheckOwnChecksum(contents, digits->get_ref<const std::string&>()), path));
    trainer = object->dump();
  }
  if (json["step"] != step) return absl::DataLossError(absl::StrCat(path, ": is of step ", json["step"].dump()));
  return CheckpointInfo{.step = step,
                        .seed = json["seed"].get<uint64_t>(),
                        .parameters_step = json["parameters_step"].get<uint32_t>(),
                        .data = json["data"].get<std::string>(),
                        .version = json["version"].get<std::string>(),
                        .cpu = json["cpu"].get<std::string>(),
                        .trainer = std::move(trainer)};
}

absl::Status WriteStatePieces(const std::string& folder, int rank, const Parameters& parameters) {
  std::vector<NamedTensor> pieces;
  for (const std::string& name : parameters.Names(Parameters::kAll)) {
    if (ParsePiece(name)) pieces.push_back({name, *parameters.Find(name)});
  }
  return pieces.empty() ? absl::OkStatus() : WriteSafetensors(FileOfRank(folder, rank), pieces);
}

absl::Status LoadCheckpoint(const std::string& checkpoints, const CheckpointInfo& info, Parameters* parameters) {
  const std::string folder = CheckpointFolder(checkpoints, info.step);
  std::vector<SafetensorsFile> files;
  WEFT_ASSIGN_OR_RETURN(files.emplace_back(), SafetensorsFile::Open(folder + kCheckpointState, WantedChecksum::kOfRun));
  std::vector<std::string> names = NamesIn(folder).value_or(std::vector<std::string>());
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    int rank = 0;
    const std::string path = absl::StrCat(folder, "/", name);
    if (std::sscanf(name.c_str(), "state.%d.", &rank) != 1 || path != FileOfRank(folder, rank)) continue;
    WEFT_ASSIGN_OR_RETURN(files.emplace_back(), SafetensorsFile::Open(path, WantedChecksum::kOfRun));
  }
  absl::flat_hash_map<std::string, std::vector<StoredRows>> stored;  // by the name of the whole tensor
  std::vector<NamedTensor> tensors;                                  // the argument of Parameters::Set
  for (const SafetensorsFile& file : files) {
    for (const NamedTensor& tensor : file.tensors()) {
      stored[std::string(WeightOfPiece(tensor.name))].push_back({RowsOf(tensor.name, tensor.tensor), tensor.tensor});
    }
  }
  Arena memory;
  absl::flat_hash_set<std::string> used;
  for (const std::string& name : parameters->Names(Parameters::kAll)) {
    const Tensor wanted = *parameters->Find(name);
    const std::string weight(WeightOfPiece(name));
    const std::vector<StoredRows>& rows = stored[weight];
    used.insert(weight);
    if (rows.size() == 1 && rows[0].tensor.type == wanted.type && rows[0].rows == RowsOf(name, wanted)) {
      tensors.push_back({name, rows[0].tensor});
      continue;
    }
    const Tensor joined = {wanted.type, memory.Allocate(wanted.type.bytes())};
    if (joined.data == nullptr) return absl::ResourceExhaustedError("no memory to read a checkpoint");
    if (CopyRows(rows, RowsOf(name, wanted), joined)) {
      tensors.push_back({name, joined});
    } else if (rows.size() == 1) {
      tensors.push_back({name, rows[0].tensor});  // its type differs; Set reports the error
    }
  }
  for (const SafetensorsFile& file : files) {
    for (const NamedTensor& tensor : file.tensors()) {
      if (!used.contains(std::string(WeightOfPiece(tensor.name)))) tensors.push_back(tensor);
    }
  }
  WEFT_RETURN_IF_ERROR(parameters->Set(folder + kCheckpointState, tensors, Parameters::kAll));
  parameters->set_step(info.parameters_step);
  return absl::OkStatus();
}

}  // namespace weft
