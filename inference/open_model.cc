// A model's family is checked before its weights are read, and the tokenizer is checked against the model's vocabulary.
#include "weft/inference/open_model.h"

#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "weft/core/file.h"
#include "weft/core/json.h"
#include "weft/core/status.h"
#include "weft/formats/adapters.h"
#include "weft/formats/model_formats.h"
#include "weft/formats/run_folder.h"
#include "weft/text/load_tokenizer.h"
#include "weft/text/token_list.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

// Reads the model at `path`. If the model is not a `Model`, returns an error before its weights are read.
template <class Model>
absl::StatusOr<Model> Open(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const ModelFamily* const family, FindFamily(path));
  if (family != &Model::kFamily) {
    return InvalidArgument(path, ": the model is not ", Model::kFamily.name);
  }
  WEFT_ASSIGN_OR_RETURN(PublishedModel model, ReadModel(path));
  return std::get<Model>(std::move(model));
}

absl::StatusOr<std::shared_ptr<const Tokenizer>> ReadTokenList(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const std::string contents, ReadFile(path));
  absl::StatusOr<std::unique_ptr<Tokenizer>> list = TokenList::Create(contents);
  if (!list.ok()) return Annotate(list.status(), path);
  return *std::move(list);
}

// Checks `key`, bos_id or eos_id, in config.json of a CTranslate2 folder. If the key is there, its value must be `id`,
// which target_vocabulary.txt gives to the token.
absl::Status CheckId(const nlohmann::ordered_json& config, const char* key, int32_t id) {
  const auto found = config.find(key);
  if (found == config.end() || *found == id) return absl::OkStatus();
  return InvalidArgument(key, " is ", found->dump(), ", but target_vocabulary.txt has that token at ", id);
}

}  // namespace

absl::StatusOr<OpenedBert> OpenBert(const std::string& path) {
  OpenedBert bert = {.path = path};
  WEFT_ASSIGN_OR_RETURN(const Format* const format, FindFormat(path));
  // Open would not name the model_type of another family; the error of ReadHuggingFace does.
  const bool published = format->name == "huggingface";
  WEFT_ASSIGN_OR_RETURN(bert.model, published ? ReadHuggingFace<PublishedBert>(path) : Open<PublishedBert>(path));
  WEFT_ASSIGN_OR_RETURN(bert.tokenizer, LoadTokenizer(BaseOf(path)));
  const BertConfig& config = bert.model.config;
  WEFT_RETURN_IF_ERROR(CheckVocabulary(path, bert.tokenizer->vocabulary_size(), config.vocabulary));
  const int64_t around = static_cast<int64_t>(bert.tokenizer->Wrap({}).ids.size());
  if (config.context > around) return bert;
  return InvalidArgument(path, ": the model's context is ", config.context, ", but the format's special tokens are ",
                         around);
}

absl::Status CheckGuessesMasked(const OpenedBert& bert) {
  const bool head = bert.model.weights.Has("cls.predictions.");
  if (head && bert.tokenizer->special_tokens().mask) return absl::OkStatus();
  return InvalidArgument(
      bert.path, head ? ": the tokenizer has no mask token" : ": the model has no head that guesses masked tokens");
}

absl::StatusOr<OpenedGpt> OpenGpt(const std::string& path, const std::string& tokenizer) {
  const std::string file = tokenizer.empty() ? TokenizerOf(path) : tokenizer;
  // A large tokenizer takes as long to read as the weights.
  auto loaded = std::async(LoadTokenizer, file);
  OpenedGpt gpt = {.path = path};
  WEFT_ASSIGN_OR_RETURN(gpt.model, Open<PublishedGpt>(path));
  WEFT_ASSIGN_OR_RETURN(gpt.tokenizer, loaded.get());
  const int64_t vocabulary = gpt.model.config.vocabulary;
  WEFT_RETURN_IF_ERROR(CheckVocabulary(path, gpt.tokenizer->vocabulary_size(), vocabulary));
  WEFT_ASSIGN_OR_RETURN(gpt.settings, ReadGenerationSettings(path, *gpt.tokenizer, vocabulary));
  return gpt;
}

absl::StatusOr<std::vector<int32_t>> BeginningOfText(const Tokenizer& tokenizer, std::optional<int32_t> begin) {
  std::vector<int32_t> ids = tokenizer.Wrap({}).ids;
  const SpecialTokens& special = tokenizer.special_tokens();
  if (!ids.empty() && ids.back() == special.end && special.end != special.begin) ids.pop_back();
  for (const std::optional<int32_t>& id : {begin, special.begin, special.end}) {
    if (ids.empty() && id.has_value()) ids.push_back(*id);
  }
  if (!ids.empty()) return ids;
  const absl::StatusOr<std::vector<int32_t>> newline = tokenizer.Encode("\n");
  if (newline.ok() && !newline->empty()) return newline;
  return std::vector<int32_t>{0};
}

absl::StatusOr<std::vector<int32_t>> PromptTokens(const Tokenizer& tokenizer, absl::string_view prompt,
                                                  const PromptOptions& options) {
  const bool special = options.special_tokens && !tokenizer.special_token_list().empty();
  WEFT_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                        special ? tokenizer.EncodeWithSpecial(prompt) : tokenizer.Encode(prompt));
  if (ids.empty()) return BeginningOfText(tokenizer, options.begin);
  constexpr int32_t kText = -1;
  const std::vector<int32_t> around = tokenizer.Wrap({kText}).ids;
  ids = tokenizer.Wrap(ids).ids;
  // The text goes on, so the end token that the format adds is dropped. One that the prompt itself ends with stays.
  if (around.back() != kText && ids.back() == tokenizer.special_tokens().end) ids.pop_back();
  return ids;
}

absl::StatusOr<OpenedTransformer> OpenTransformer(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(PublishedTransformer model, Open<PublishedTransformer>(path));
  OpenedTransformer transformer = {.folder = BaseOf(path), .model = std::move(model)};
  std::shared_ptr<const Tokenizer>&source = transformer.source, &target = transformer.target;
  const std::string &folder = transformer.folder, lists = folder + "/source_vocabulary.txt";
  std::error_code error;
  if (fs::exists(lists, error)) {
    WEFT_ASSIGN_OR_RETURN(source, ReadTokenList(lists));
    WEFT_ASSIGN_OR_RETURN(target, ReadTokenList(folder + "/target_vocabulary.txt"));
  } else {
    WEFT_ASSIGN_OR_RETURN(source, LoadTokenizer(folder));
    target = source;
    transformer.sources_end = true;
  }
  const TransformerConfig& config = transformer.model.config;
  WEFT_RETURN_IF_ERROR(CheckVocabulary(path + ", sources", source->vocabulary_size(), config.source_vocabulary));
  WEFT_RETURN_IF_ERROR(CheckVocabulary(path + ", targets", target->vocabulary_size(), config.target_vocabulary));
  const SpecialTokens& special = target->special_tokens();
  if (!special.begin.has_value() || !special.end.has_value()) {
    return InvalidArgument(path,
                           ": the target tokenizer has no begin or no end token, which translations are made between");
  }
  transformer.begin = *special.begin;
  transformer.end = *special.end;
  if (transformer.sources_end) return transformer;
  const std::string path_of_config = folder + "/config.json";
  WEFT_ASSIGN_OR_RETURN(const nlohmann::ordered_json json, ReadJsonFile(path_of_config));
  WEFT_RETURN_IF_ERROR(Annotate(CheckId(json, "bos_id", transformer.begin), path_of_config));
  WEFT_RETURN_IF_ERROR(Annotate(CheckId(json, "eos_id", transformer.end), path_of_config));
  return transformer;
}

}  // namespace weft
