// The tables of model families and formats tell which code reads and writes a model in a file or folder.
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

// What the formats need to know of one kind of model. The functions take and return the family's own alternative of
// PublishedModel.
struct ModelFamily {
  const char* name;                                 // with its article: "a GPT"
  absl::Span<const absl::string_view> model_types;  // as the key model_type of a config.json has them

  // Read and write a folder in Hugging Face's layout.
  absl::StatusOr<PublishedModel> (*read)(const std::string& folder);
  absl::Status (*write)(const std::string& folder, const PublishedModel& model);

  // Returns the model that a training run's config.json describes. The model has no weights yet, but if heads are
  // optional, one tensor of each head that the run trained. Null if no training makes such a model.
  absl::StatusOr<PublishedModel> (*from_run)(const std::string& folder, const nlohmann::ordered_json& run);
  // Returns the weights that a checkpoint of the model holds.
  std::vector<ParameterSpec> (*parameters)(const PublishedModel& model);
  // Returns the rows of the token table, which the tokenizer must fit (CheckVocabulary). Null if the model has no such
  // table, or one for each side.
  int64_t (*vocabulary)(const PublishedModel& model);
};

struct WriteModelOptions {
  int llama2c_version = 0;  // of a file of llama2.c: 0 or 1
};

// A layout of files that holds models.
struct Format {
  absl::string_view name;
  // The key of config.json by which the format is known, and whose format it is, for errors; "" if it has none.
  absl::string_view mark;
  // Reports whether a model lies in this format. `config`: the folder's config.json, or null for a file.
  bool (*recognizes)(const nlohmann::ordered_json& config);
  // Returns the model's family without reading weights. Errors do not name the file.
  absl::StatusOr<const ModelFamily*> (*family)(const nlohmann::ordered_json& config);
  absl::StatusOr<PublishedModel> (*read)(const std::string& path);

  // Reports whether models of a family can be written. Null, like `write`, if the format is only read.
  bool (*writes)(const ModelFamily& family);
  absl::Status (*write)(const std::string& folder, const PublishedModel& model, const WriteModelOptions& options);
  absl::Span<const absl::string_view> files;  // the names of the files that `write` makes
};

absl::Span<const ModelFamily* const> ModelFamilies();
absl::Span<const Format* const> Formats();
// The family of a model that was read.
const ModelFamily& FamilyOf(const PublishedModel& model);

// Returns the format of the model at `path`, a file or folder. NotFound if nothing is there; InvalidArgument if no
// format recognizes it.
absl::StatusOr<const Format*> FindFormat(const std::string& path);
// Returns the family of the model at `path` without reading its weights.
absl::StatusOr<const ModelFamily*> FindFamily(const std::string& path);

// Returns InvalidArgument "WHOSE: the tokenizer has 9 tokens, but the model's table 7" unless a vocabulary of `tokens`
// fits a table of embeddings with `rows`: at most `rows`, and more than half of them. The rest is padding, because
// tables are often rounded up.
absl::Status CheckVocabulary(const std::string& whose, int64_t tokens, int64_t rows);

}  // namespace weft

#endif  // WEFT_FORMATS_MODEL_FORMATS_H_
