// A ModelConversion converts a model to another format: its configuration, its weights, and the files beside it.
//
//   WEFT_ASSIGN_OR_RETURN(ModelConversion conversion,
//                         ModelConversion::Prepare({.model = "runs/gpt-1", .out = "gpt2"}));
//   WEFT_RETURN_IF_ERROR(conversion.Write());
#ifndef WEFT_FORMATS_CONVERT_H_
#define WEFT_FORMATS_CONVERT_H_

#include <cstdint>
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
  // Reads the model, and checks all that can be checked without writing. Returns an error if the model or its tokenizer
  // can't be read, or if the format has no such models. `out` must not be a training run, nor the folder of the model
  // or its tokenizer. Without `overwrite`, it must have no files.
  static absl::StatusOr<ModelConversion> Prepare(const ConvertOptions& options);

  // Writes the model and the files beside it, and removes files that another model has left in the folder. All files
  // are written under other names first and then renamed, so a failure leaves the folder unchanged. Returns
  // InvalidArgument if the format can't express the model, or if the folder can't be made.
  absl::Status Write() const;

  // Returns the number of weights, over all tensors.
  int64_t CountWeights() const;
  bool has_tokenizer() const { return !files_.empty(); }

 private:
  ModelConversion(ConvertOptions options, const Format* format, std::vector<TokenizerFile> files, PublishedModel model)
      : options_(std::move(options)), format_(format), files_(std::move(files)), model_(std::move(model)) {}
  absl::Status WriteFiles(const std::string& folder) const;
  absl::Status RemoveStale() const;

  ConvertOptions options_;
  const Format* format_;
  std::vector<TokenizerFile> files_;  // tokenizer and other files beside the model
  PublishedModel model_;
};

}  // namespace weft

#endif  // WEFT_FORMATS_CONVERT_H_
