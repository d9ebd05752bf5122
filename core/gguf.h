// A GgufFile reads, and a GgufWriter writes, GGUF (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md), the
// files of llama.cpp. A file has metadata, which are keys with values of stated types, then the name, shape, type and
// offset of each tensor, and then the tensors' bytes.
//
//   WEFT_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Open("model.gguf"));
//   file.metadata()["general.architecture"]              // "llama"
//   for (const auto& [name, tensor] : file.tensors()) ...
#ifndef WEFT_CORE_GGUF_H_
#define WEFT_CORE_GGUF_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/base/file.h"
#include "weft/core/safetensors.h"
#include "weft/core/tensor.h"

namespace weft {

inline constexpr char kGgufEnding[] = ".gguf";

inline constexpr size_t kGgufShortList = 64;  // values

// Which lists of the metadata GgufFile::Open reads.
enum class GgufLists {
  kAll,
  kShort  // lists of more than kGgufShortList values, such as the vocabulary, are null
};

class GgufFile : public TensorFile {
 public:
  // Maps a file of version 2 or 3 and checks it. Sizes and offsets must fit the file, and the bytes of tensors must not
  // overlap. Shapes have the outermost axis first, whereas GGUF has it last. Errors name the file and the key or the
  // tensor.
  static absl::StatusOr<GgufFile> Open(const std::string& path, GgufLists lists = GgufLists::kAll);

  // The metadata as one object. Texts may be no UTF-8. A 32-bit float is the shortest decimal number that rounds to it.
  const nlohmann::ordered_json& metadata() const { return metadata_; }

 private:
  nlohmann::ordered_json metadata_ = nlohmann::ordered_json::object();
};

// Writes a file of version 3, one tensor after the other. So the tensors need not be in memory at the same time.
class GgufWriter {
 public:
  using NamedType = std::pair<std::string, TensorType>;
  // `metadata`: an object of texts, true and false, numbers, and lists that have values of one type. The type in the
  // file is uint32, int32 or float32 for unsigned, signed and fractional numbers. Numbers must fit.
  static absl::StatusOr<GgufWriter> Create(const std::string& path, const nlohmann::ordered_json& metadata,
                                           absl::Span<const NamedType> tensors);
  // Writes the bytes of the next tensor.
  absl::Status Add(const Tensor& tensor);
  // Must be called after all tensors. Without Finish, `path` stays as it was.
  absl::Status Finish() { return file_.Commit(); }

 private:
  explicit GgufWriter(NewFile file) : file_(std::move(file)) {}

  NewFile file_;
};

}  // namespace weft

#endif  // WEFT_CORE_GGUF_H_
