// Two tables list the model families and the formats, with the functions that read and write a model in a file or
// folder.
//
//   WEFT_ASSIGN_OR_RETURN(const ModelFamily* family, FindFamily("gpt2"));   // PublishedGpt::kFamily
//   WEFT_ASSIGN_OR_RETURN(PublishedModel model, ReadModel("gpt2"));         // weights.h
//
// docs/extending.md says how to add a format or a family.
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

// A size of a model and its name: {"C", "width", 768}.
struct SizeName {
  std::string name, meaning;
  int64_t value = 0;
};
// The sizes by which `weft summary` describes a model.
struct ModelSizes {
  std::vector<SizeName> sizes;
  int64_t context = 0;      // maximum number of tokens of a sequence; of a ViT, the number of patches
  int64_t cache_bytes = 0;  // of keys and values, for each token that is generated; 0: the model generates none
};

// A ModelFamily describes one kind of model by all that other code needs to know of it. The functions take and return
// the family's own alternative of PublishedModel.
struct ModelFamily {
  const char* name;                                 // with an article: "a GPT"
  absl::Span<const absl::string_view> model_types;  // values of the key model_type in config.json

  // Read and write a folder in Hugging Face's layout. `config`: the contents of config.json.
  absl::StatusOr<PublishedModel> (*read)(const std::string& folder, const nlohmann::ordered_json& config);
  absl::Status (*write)(const PublishedModel& model, const std::string& folder, const WriteModelOptions& options);

  // Returns the model that `run`, a training run's config.json, describes, without its weights. Instead, each optional
  // head that the run trained has one tensor of zeros. Null if no training makes such a model.
  absl::StatusOr<PublishedModel> (*from_run)(const std::string& folder, const nlohmann::ordered_json& run);
  // The inverse of from_run: returns the keys of a run's config.json that describe `model`. Null if from_run is null.
  absl::StatusOr<nlohmann::ordered_json> (*to_run)(const PublishedModel& model);
  // Records the forward pass of one sequence of `tokens` tokens. If `heads` is true, also records the optional heads
  // for which the model has weights.
  void (*record)(const PublishedModel& model, int64_t tokens, bool heads, Tape* tape);
  ModelSizes (*sizes)(const PublishedModel& model);
  // Returns the number of rows of the token table, which the tokenizer must fit (CheckVocabulary). The function pointer
  // is null if the model has no token table, or separate ones for sources and targets.
  int64_t (*vocabulary)(const PublishedModel& model);
  bool continues_texts = false;  // true: generation_config.json must name the tokens that end a text

  // Low-rank adapters (adapters.h). `tied` returns the names of the layers that have one weight in common with another
  // layer. `untie` gives the second of these layers a weight of its own; null: the model can't have such a weight.
  std::vector<std::string> (*tied)(const PublishedModel& model);
  absl::Status (*untie)(PublishedModel* model) = nullptr;
  // Returns the lists of rules from Hugging Face's names to those of `model`; null: names are equal, up to a prefix.
  std::vector<std::vector<Weights::Rule>> (*own_names)(const PublishedModel& model) = nullptr;
  // Gives the tensors of an adapter of a `model_type` Hugging Face's names and layouts. Null: they have these.
  absl::Status (*publish_adapter)(absl::string_view model_type, Weights* adapter) = nullptr;
  // Makes the names of classes fit a classifier that an adapter has replaced. May be null.
  void (*fit_labels)(PublishedModel* model) = nullptr;
};

// A layout of files that holds models.
struct Format {
  absl::string_view name;
  // For errors: the key of config.json by which the format is recognised, and the key's owner: "ffn_dim (CTranslate2)".
  // Empty if errors do not mention the format.
  absl::string_view mark = "";
  // Reports whether a model has this format. Here and below, `config` has the contents of the folder's config.json. It
  // is null for a file. A format that is only written has none of the functions that read.
  bool (*recognizes)(const nlohmann::ordered_json& config);
  absl::Span<const ModelFamily* const> families;  // the families whose models the format holds; empty: all families
  // Returns the model's family without reading weights. Errors do not name the file. Null if there is only one family.
  absl::StatusOr<const ModelFamily*> (*family)(const nlohmann::ordered_json& config);
  absl::StatusOr<PublishedModel> (*read)(const std::string& path, const nlohmann::ordered_json& config);

  // Writes a model. Null if the format is only read.
  absl::Status (*write)(const PublishedModel& model, const std::string& folder, const WriteModelOptions& options);
  absl::Span<const absl::string_view> files;  // the names of the files that `write` makes
  bool is_own = false;                        // true: only Weft reads the format, so weft export does not offer it
  bool keeps_dtypes = false;  // true: `write` takes weights of bf16 and of block formats; false: all must be f32
  bool is_whole = false;      // true: the files hold the tokenizer and the settings of generation, too
};

absl::Span<const ModelFamily* const> ModelFamilies();
absl::Span<const Format* const> Formats();
// Returns the family of a model that was read.
const ModelFamily& FamilyOf(const PublishedModel& model);

// Returns the format called `name`, if models of `family` can be written in it. Otherwise returns InvalidArgument,
// which names the formats that are possible.
absl::StatusOr<const Format*> FormatToWrite(absl::string_view name, const ModelFamily& family);

// Returns the family of the model at `path`, a file or folder, without reading its weights. Returns NotFound if `path`
// or the folder's config.json is missing, and InvalidArgument if no format recognises the model.
absl::StatusOr<const ModelFamily*> FindFamily(const std::string& path);

// Checks that a tokenizer with `tokens` tokens fits an embedding table with `rows` rows: rows / 2 < tokens <= rows. A
// table may have more rows than there are tokens, because tables are often rounded up. Otherwise returns
// InvalidArgument "WHOSE: the tokenizer has 9 tokens, but the model's table 7".
absl::Status CheckVocabulary(const std::string& whose, int64_t tokens, int64_t rows);

}  // namespace weft

#endif  // WEFT_FORMATS_MODEL_FORMATS_H_
