// A ModelConversion writes a model in another format, and copies its tokenizer and the other files beside it.
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

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "weft/formats/model_formats.h"
#include "weft/text/load_tokenizer.h"

namespace weft {

struct ConvertOptions {
  std::string model;                   // file or folder, as for ReadModel
  std::string out;                     // the folder to write
  std::string tokenizer = "";          // the tokenizer's file or folder; empty: the files beside the model
  std::string format = "huggingface";  // the name of a Format that can be written
  WriteModelOptions write = {};
  bool overwrite = false;  // replaces the files of a model if `out` is not empty
};

class ModelConversion {
 public:
  // Reads the model, and checks all that can be checked without writing. Returns an error if the model can't be read,
  // if `tokenizer` names no file, if a tokenizer does not fit the model, or if the format has no such models. `out`
  // must not be a file, a training run, or the folder of the model or its tokenizer. Without `overwrite`, `out` must be
  // missing or empty.
  static absl::StatusOr<ModelConversion> Prepare(const ConvertOptions& options);

  // Writes the model and copies the files beside it. All files are written to a temporary folder inside `out` and then
  // renamed one by one; if writing fails, the files in `out` stay unchanged. Then removes files that another model has
  // left in `out`. Returns InvalidArgument if the format can't express the model, or if `out` can't be made.
  absl::Status Write() const;

  // Returns the number of weights, over all tensors.
  int64_t CountWeights() const;
  bool has_tokenizer() const { return !files_.empty(); }

 private:
  ModelConversion(ConvertOptions options, const Format* format, std::vector<TokenizerFile> files, PublishedModel model)
      : options_(std::move(options)), format_(format), files_(std::move(files)), model_(std::move(model)) {}
  absl::Status WriteFiles(const std::string& folder) const;
  absl::Status RemoveStale(const std::set<std::string>& written) const;

  ConvertOptions options_;
  const Format* format_;
  std::vector<TokenizerFile> files_;  // tokenizer and other files beside the model
  PublishedModel model_;
};

}  // namespace weft

#endif  // WEFT_FORMATS_CONVERT_H_
