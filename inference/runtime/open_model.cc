// A model's family is checked before its weights are read, and the tokenizer is checked against the model's vocabulary.
#include "weft/inference/runtime/open_model.h"

#include <algorithm>
#include <future>
#include <nlohmann/json.hpp>
#include <tuple>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "weft/base/file.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/formats/model_formats.h"
#include "weft/formats/run_folder.h"
#include "weft/formats/token_texts.h"
#include "weft/text/tokenizers/load_tokenizer.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;
constexpr int32_t kText = -1;  // stands for a text in the tokens of an input format: no token has this id

// Reads the tokens of one side, "source" or "target", from CTranslate2's lists. Returns null if there is no list.
absl::StatusOr<std::shared_ptr<Tokenizer>> FindTokenList(const std::string& folder, const std::string& side,
                                                         const std::string& unknown) {
  for (const std::string& name : TokenListNames(side)) {
    const std::string path = absl::StrCat(folder, "/", name);
    if (!Exists(path)) continue;
    WEFT_ASSIGN_OR_RETURN(const std::string contents, ReadFile(path));
    return Annotate(ReadTokenList(contents, unknown), path);
  }
  return nullptr;
}

// Reports whether the tokenizer of `folder` has exactly the tokens of `list`, whose last ones may be unused.
bool HasTokensOf(const std::string& folder, const Tokenizer& list) {
  const absl::StatusOr<std::vector<std::string>> texts = TokenTexts(folder);
  if (!texts.ok() || static_cast<int64_t>(texts->size()) > list.vocabulary_size()) return false;
  for (size_t id = 0; id < texts->size(); ++id) {
    if (list.TokenText(static_cast<int32_t>(id)) != (*texts)[id]) return false;
  }
  return true;
}

absl::StatusOr<int32_t> NeededToken(const Tokenizer& tokenizer, absl::string_view key, absl::string_view text) {
  if (const std::optional<int32_t> id = FindToken(tokenizer, text)) return *id;
  return InvalidArgument(key, " is '", text, "', but the vocabulary has no such token");
}

// Checks `key`, bos_id or eos_id, in config.json of a CTranslate2 folder. If the key is there, its value must be `id`,
// which target_vocabulary.txt gives to the token.
absl::Status CheckId(const Json& config, const char* key, int32_t id) {
  const auto found = config.find(key);
  if (found == config.end() || *found == id) return absl::OkStatus();
  return InvalidArgument(key, " is ", found->dump(), ", but target_vocabulary.txt has that token at ", id);
}

// Opens the tokenizers of both sides.
absl::Status OpenTokenizers(OpenedTransformer* opened) {
  const std::string& folder = opened->folder;
  const std::string unknown = opened->model.tokens.value_or(TokenNames()).unknown;
  WEFT_ASSIGN_OR_RETURN(opened->source, FindTokenList(folder, "source", unknown));
  WEFT_ASSIGN_OR_RETURN(opened->target, FindTokenList(folder, "target", unknown));
  opened->lists = opened->source != nullptr;
  if (opened->lists && opened->target == nullptr) return ReadFile(folder + "/target_vocabulary.txt").status();
  if (opened->lists && !(HasTokensOf(folder, *opened->source) && HasTokensOf(folder, *opened->target))) {
    return absl::OkStatus();
  }
  opened->lists = false;
  WEFT_ASSIGN_OR_RETURN(opened->source, LoadTokenizer(folder));
  opened->target = opened->source;
  return absl::OkStatus();
}

// Sets the special tokens that `names` tell.
absl::Status SetTokens(const TokenNames& names, OpenedTransformer* opened) {
  BeamSearchOptions& search = opened->search;
  WEFT_ASSIGN_OR_RETURN(search.begin, NeededToken(*opened->target, "decoder_start_token", names.start));
  WEFT_ASSIGN_OR_RETURN(search.end.emplace_back(), NeededToken(*opened->target, "eos_token", names.end));
  if (names.source_begin) {
    WEFT_ASSIGN_OR_RETURN(opened->before.emplace_back(), NeededToken(*opened->source, "bos_token", names.begin));
  }
  if (names.source_end) {
    WEFT_ASSIGN_OR_RETURN(opened->after.emplace_back(), NeededToken(*opened->source, "eos_token", names.end));
  }
  return absl::OkStatus();
}

// Reads the special tokens and the search of a model whose files have the settings of transformers. Other models have
// the special tokens of their tokenizers.
absl::Status ReadSearch(const std::string& path, OpenedTransformer* opened) {
  const TransformerConfig& config = opened->model.config;
  WEFT_ASSIGN_OR_RETURN(const GenerationSettings settings,
                        ReadGenerationSettings(path, *opened->target, config.target_vocabulary));
  const SpecialTokens& special = opened->target->special_tokens();
  BeamSearchOptions& search = opened->search;
  const std::optional<int32_t> begin = settings.decoder_start ? settings.decoder_start : settings.begin;
  if (!begin.has_value()) {
    if (!special.begin.has_value() || !special.end.has_value()) {
      return InvalidArgument(
          path, ": the target tokenizer has no begin or no end token, which translations are made between");
    }
    search.begin = *special.begin;
    search.end = {*special.end};
    if (!opened->lists) opened->after = search.end;
    return absl::OkStatus();
  }
  std::tie(opened->before, opened->after) = TokensAround(*opened->source);
  search = {.beam = settings.num_beams.value_or(1),
            .length_penalty = settings.length_penalty.value_or(1),
            .min_length = std::max<int64_t>(settings.min_length.value_or(0) - 1, 0),  // min_length counts `begin`
            .begin = *begin,
            .end = settings.end,
            .forced_begin = settings.forced_begin,
            .excluded = settings.excluded,
            .stop = StopOf(settings)};
  if (!settings.forced_end.empty()) search.forced_end = settings.forced_end.front();
  // max_length counts `begin`, too.
  const int64_t longest = settings.max_new_tokens.value_or(settings.max_length.value_or(1) - 1);
  search.max_length = std::clamp<int64_t>(longest, 0, config.context);
  std::vector<absl::string_view> used = {"num_beams",  "length_penalty", "min_length",      "early_stopping",
                                         "max_length", "max_new_tokens", "suppress_tokens", "forced_bos_token_id"};
  if (!search.excluded.empty()) used.emplace_back("bad_words_ids");
  if (settings.forced_end.size() == 1) used.emplace_back("forced_eos_token_id");
  opened->notes = settings.Unused(used);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<OpenedBert> OpenBert(const std::string& path) {
  OpenedBert bert = {.path = path};
  WEFT_ASSIGN_OR_RETURN(bert.model, ReadModelOf<PublishedBert>(path));
  WEFT_ASSIGN_OR_RETURN(bert.tokenizer, LoadTokenizer(BaseOf(path)));
  const BertConfig& config = bert.model.config;
  WEFT_RETURN_IF_ERROR(CheckVocabulary(path, bert.tokenizer->vocabulary_size(), config.vocabulary));
  const int64_t around = static_cast<int64_t>(bert.tokenizer->Wrap({}).ids.size());
  if (config.context > around) return bert;
  return InvalidArgument(path, ": the model's context is ", config.context, ", but the format's special tokens are ",
                         around);
}

absl::Status CheckGuessesMasked(const OpenedBert& bert) {
  const bool head = bert.model.masked();
  if (head && bert.tokenizer->special_tokens().mask) return absl::OkStatus();
  return InvalidArgument(
      bert.path, head ? ": the tokenizer has no mask token" : ": the model has no head that guesses masked tokens");
}

absl::StatusOr<OpenedGpt> OpenGpt(const std::string& path, const std::string& tokenizer) {
  const std::string file = tokenizer.empty() ? TokenizerOf(path) : tokenizer;
  // A large tokenizer takes as long to read as the weights.
  auto loaded = std::async(LoadTokenizer, file);
  OpenedGpt gpt = {.path = path, .tokenizer_path = file};
  WEFT_ASSIGN_OR_RETURN(gpt.model, ReadModelOf<PublishedGpt>(path));
  WEFT_ASSIGN_OR_RETURN(gpt.tokenizer, loaded.get());
  const int64_t vocabulary = gpt.model.config.vocabulary;
  WEFT_RETURN_IF_ERROR(CheckVocabulary(path, gpt.tokenizer->vocabulary_size(), vocabulary));
  WEFT_ASSIGN_OR_RETURN(gpt.settings, ReadGenerationSettings(path, *gpt.tokenizer, vocabulary));
  return gpt;
}

BeamStop StopOf(const GenerationSettings& settings) {
  const std::string early = settings.early_stopping.value_or("false");
  return early == "true" ? BeamStop::kFull : early == "never" ? BeamStop::kNever : BeamStop::kNoBetter;
}

std::pair<std::vector<int32_t>, std::vector<int32_t>> TokensAround(const Tokenizer& tokenizer) {
  const std::vector<int32_t> format = tokenizer.Wrap({kText}).ids;
  const auto text = absl::c_find(format, kText);
  return {{format.begin(), text}, {text == format.end() ? text : text + 1, format.end()}};
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

absl::StatusOr<std::vector<int32_t>> EndTokens(const Tokenizer& tokenizer, absl::Span<const std::string> texts) {
  std::vector<int32_t> ends;
  for (const std::string& text : texts) {
    int32_t number = -1;
    const std::optional<int32_t> found = absl::SimpleAtoi(text, &number) ? number : FindToken(tokenizer, text);
    if (found.value_or(-1) < 0 || *found >= tokenizer.vocabulary_size()) {
      return InvalidArgument("end-token: '", text, "' is neither the text of a token nor a number from 0 to ",
                             tokenizer.vocabulary_size() - 1);
    }
    ends.push_back(*found);
  }
  return ends;
}

absl::StatusOr<std::vector<int32_t>> PromptTokens(const OpenedGpt& gpt, absl::string_view prompt) {
  const Tokenizer& tokenizer = *gpt.tokenizer;
  WEFT_ASSIGN_OR_RETURN(std::vector<int32_t> ids, tokenizer.Encode(prompt));
  if (ids.empty()) return BeginningOfText(tokenizer, gpt.settings.begin);
  ids = tokenizer.Wrap(ids).ids;
  // An end token with which the prompt itself ends stays.
  const bool adds_end = tokenizer.Wrap({kText}).ids.back() != kText && ids.back() == tokenizer.special_tokens().end;
  if (adds_end && !gpt.settings.published) ids.pop_back();
  return ids;
}

absl::StatusOr<OpenedTransformer> OpenTransformer(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(PublishedTransformer model, ReadModelOf<PublishedTransformer>(path));
  OpenedTransformer opened = {
      .path = path, .folder = BaseOf(path), .model = std::move(model), .search = {.beam = 4, .end = {}}};
  WEFT_RETURN_IF_ERROR(OpenTokenizers(&opened));
  const TransformerConfig& config = opened.model.config;
  const int64_t source_tokens = opened.source->vocabulary_size(), target_tokens = opened.target->vocabulary_size();
  WEFT_RETURN_IF_ERROR(CheckVocabulary(path + ", sources", source_tokens, config.source_vocabulary));
  WEFT_RETURN_IF_ERROR(CheckVocabulary(path + ", targets", target_tokens, config.target_vocabulary));
  const std::string path_of_config = opened.folder + "/config.json";
  if (opened.model.tokens.has_value()) {
    WEFT_RETURN_IF_ERROR(Annotate(SetTokens(*opened.model.tokens, &opened), path_of_config));
  } else {
    WEFT_RETURN_IF_ERROR(ReadSearch(path, &opened));
  }
  if (!opened.lists) return opened;
  WEFT_ASSIGN_OR_RETURN(const Json json, ReadJsonFile(path_of_config));
  const BeamSearchOptions& search = opened.search;
  WEFT_RETURN_IF_ERROR(Annotate(CheckId(json, "bos_id", search.begin), path_of_config));
  WEFT_RETURN_IF_ERROR(Annotate(CheckId(json, "eos_id", search.end.front()), path_of_config));
  return opened;
}

}  // namespace weft
