// A ModelConversion writes a model in another format, and copies its tokenizer and the other files beside it. Settings
// of generation in config.json and generation_config.json, such as the end token, become a generation_config.json.
//
//   WEFT_ASSIGN_OR_RETURN(ModelConversion conversion,
//                         ModelConversion::Prepare({.model = "runs/gpt-1", .out = "gpt2"}));
//   WEFT_RETURN_IF_ERROR(conversion.Write());
#ifndef WEFT_FORMATS_CONVERT_H_
#define WEFT_FORMATS_CONVERT_H_

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "weft/formats/model_formats.h"
#include "weft/text/tokenizers/load_tokenizer.h"

namespace weft {

struct ConvertOptions {
  std::string model;                   // file or folder, as for ReadModel
  std::string out;                     // the folder to write
  std::string tokenizer = "";          // the tokenizer's file or folder; empty: the files beside the model
  std::string format = "huggingface";  // the name of a Format that can be written
  ReadModelOptions read = {};
  WriteModelOptions write = {};
  uint64_t max_shard_size = 0;  // bytes of a file of weights (DivideWeights in weight_files.h); 0: one file
  bool overwrite = false;       // replaces the files of a model if `out` is not empty
};

class ModelConversion {
 public:
  // Reads the model, and checks all that can be checked without writing. Returns an error if the model can't be read,
  // if a weight is NaN or infinite, if `tokenizer` names no file, if a tokenizer does not fit the model, or if the
  // format has no such models. `out` must not be a file, a training run, or the folder of the model or its tokenizer.
  // Without `overwrite`, `out` must be missing or empty.
  static absl::StatusOr<ModelConversion> Prepare(const ConvertOptions& options);

  // Writes the model and copies the files beside it. All files are written to a temporary folder inside `out` and then
  // renamed one by one; if writing fails, the files in `out` stay unchanged. Then removes files that another model has
  // left in `out`. `out` is locked meanwhile, so temporary folders that are there were left by a process that was
  // killed; they are removed. Returns InvalidArgument if the format can't express the model, or if `out` can't be made.
  // Returns FailedPrecondition if another process writes to `out`, and Aborted if a written file disappears meanwhile.
  // Calls `before_moves` once, after all files are written or writing has failed, and before the first is renamed.
  absl::Status Write(absl::FunctionRef<void()> before_moves = [] {}) const;

  // Returns the folder in which Write writes its files before it renames them.
  std::string TemporaryFolder() const;
  // Returns the number of weights, over all tensors.
  int64_t CountWeights() const;
  std::vector<ParameterSpec> parameters() const { return ParametersOf(model_); }
  // Returns the number of bytes of the written files of weights.
  uint64_t StoredBytes() const;
  // Returns the names and types of tensors that ignore_extra_tensors left out.
  const std::vector<std::string>& extra() const { return WeightsOf(model_).extra(); }
  bool has_tokenizer() const;

 private:
  explicit ModelConversion(ConvertOptions options) : options_(std::move(options)) {}
  absl::Status WriteFiles(const std::string& folder) const;
  absl::Status RemoveStale(const std::set<std::string>& written) const;

  ConvertOptions options_;
  const Format* format_ = nullptr;
  std::vector<TokenizerFile> files_;  // tokenizer and other files beside the model
  PublishedModel model_;
  std::string generation_;  // contents of generation_config.json, with all settings of the model's files; may be empty
};

}  // namespace weft

#endif  // WEFT_FORMATS_CONVERT_H_
