// Two tables list the model families and the formats, with the functions that read and write a model in a file or
// folder.
//
//   WEFT_ASSIGN_OR_RETURN(const Format* format, FindFormat("gpt2"));        // kHuggingFaceFormat, by its config.json
//   WEFT_ASSIGN_OR_RETURN(const ModelFamily* family, FindFamily("gpt2"));   // PublishedGpt::kFamily
//   WEFT_ASSIGN_OR_RETURN(PublishedModel model, ReadModel("gpt2"));         // weights.h
//
// To add a format, write one file that defines its row, and name the row in model_formats.cc. To add a family, write
// the model (models/), add its Published struct to PublishedModel in weights.h, and write one file that defines the
// struct's kFamily: vit.cc is the shortest example.
#ifndef WEFT_FORMATS_MODEL_FORMATS_H_
#define WEFT_FORMATS_MODEL_FORMATS_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/formats/weights.h"

namespace weft {

// A ModelFamily describes one kind of model by the functions and properties that formats need. The functions take and
// return the family's own alternative of PublishedModel.
struct ModelFamily {
  const char* name;                                 // with an article: "a GPT"
  absl::Span<const absl::string_view> model_types;  // values of the key model_type in config.json

  // Read and write a folder in Hugging Face's layout. `config`: the contents of config.json.
  absl::StatusOr<PublishedModel> (*read)(const std::string& folder, const nlohmann::ordered_json& config);
  absl::Status (*write)(const std::string& folder, const PublishedModel& model);

  // Returns the model that `run`, a training run's config.json, describes, without its weights. Instead, each optional
  // head that the run trained has one tensor of zeros. Null if no training makes such a model.
  absl::StatusOr<PublishedModel> (*from_run)(const std::string& folder, const nlohmann::ordered_json& run);
  // The inverse of from_run: returns the keys of a run's config.json that describe `model`. Null if from_run is null.
  absl::StatusOr<nlohmann::ordered_json> (*to_run)(const PublishedModel& model);
  // Returns the weights that a checkpoint of the model holds.
  std::vector<ParameterSpec> (*parameters)(const PublishedModel& model);
  // Returns the number of rows of the token table, which the tokenizer must fit (CheckVocabulary). The function pointer
  // is null if the model has no token table, or separate ones for sources and targets.
  int64_t (*vocabulary)(const PublishedModel& model);
};

struct WriteModelOptions {
  DType weights = kF32;     // in the format weft: the dtype of the weights that may have fewer bytes than f32
  int llama2c_version = 0;  // version of a llama2.c file: 0 or 1
  // In the format huggingface, a Transformer that no class of Hugging Face has is an error (true), or is written with
  // this project's own model_type "transformer" (false).
  bool published_classes_only = false;
};

// A layout of files that holds models.
struct Format {
  absl::string_view name;
  // For errors: the key of config.json by which the format is recognised, and the key's owner: "ffn_dim (CTranslate2)".
  // Empty if errors do not mention the format.
  absl::string_view mark;
  // Reports whether a model has this format. Here and below, `config` has the contents of the folder's config.json. It
  // is null for a file.
  bool (*recognizes)(const nlohmann::ordered_json& config);
  // Returns the model's family without reading weights. Errors do not name the file.
  absl::StatusOr<const ModelFamily*> (*family)(const nlohmann::ordered_json& config);
  absl::StatusOr<PublishedModel> (*read)(const std::string& path, const nlohmann::ordered_json& config);

  // Reports whether models of a family can be written. If the format is only read, `writes` and `write` are null.
  bool (*writes)(const ModelFamily& family);
  absl::Status (*write)(const std::string& folder, const PublishedModel& model, const WriteModelOptions& options);
  absl::Span<const absl::string_view> files;  // the names of the files that `write` makes
  bool is_own = false;                        // true: only Weft reads the format, so weft export does not offer it
};

absl::Span<const ModelFamily* const> ModelFamilies();
absl::Span<const Format* const> Formats();
// Returns the family of a model that was read.
const ModelFamily& FamilyOf(const PublishedModel& model);

// Returns the format of the model at `path`, a file or folder. Returns NotFound if `path` or the folder's config.json
// is missing, and InvalidArgument if no format recognises the model.
absl::StatusOr<const Format*> FindFormat(const std::string& path);
// Returns the family of the model at `path` without reading its weights.
absl::StatusOr<const ModelFamily*> FindFamily(const std::string& path);

// Checks that a tokenizer with `tokens` tokens fits an embedding table with `rows` rows: rows / 2 < tokens <= rows. A
// table may have more rows than there are tokens, because tables are often rounded up. Otherwise returns
// InvalidArgument "WHOSE: the tokenizer has 9 tokens, but the model's table 7".
absl::Status CheckVocabulary(const std::string& whose, int64_t tokens, int64_t rows);

}  // namespace weft

#endif  // WEFT_FORMATS_MODEL_FORMATS_H_
