// This file has the state files of ranks that divide the optimizer's states.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "weft/base/arena.h"
#include "weft/base/status.h"
#include "weft/core/safetensors.h"
#include "weft/distributed/piece_name.h"
#include "weft/formats/run_folder.h"
#include "weft/train/run/checkpoint.h"

namespace weft {
namespace {

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

absl::Status WriteStatePieces(const std::string& folder, int rank, const Parameters& parameters) {
  std::vector<NamedTensor> pieces;
  for (const std::string& name : parameters.Names(Parameters::kAll)) {
    if (ParsePiece(name)) pieces.push_back({name, *parameters.Find(name)});
  }
  return pieces.empty() ? absl::OkStatus() : WriteSafetensors(FileOfRank(folder, rank), pieces);
}

absl::Status LoadState(const std::string& folder, Parameters* parameters) {
  std::vector<SafetensorsFile> files;
  WEFT_ASSIGN_OR_RETURN(files.emplace_back(), SafetensorsFile::Open(folder + kCheckpointState, WantedChecksum::kOfRun));
  std::error_code error;
  std::vector<std::string> paths;
  for (std::filesystem::directory_iterator i(folder, error), end; !error && i != end; i.increment(error)) {
    const std::string name = i->path().filename().string();
    int rank = 0;
    if (std::sscanf(name.c_str(), "state.%d.", &rank) == 1 && i->path() == FileOfRank(folder, rank)) {
      paths.push_back(i->path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) {
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
  return parameters->Set(folder + kCheckpointState, tensors, Parameters::kAll);
}

}  // namespace weft
