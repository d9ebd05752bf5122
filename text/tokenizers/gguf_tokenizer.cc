// The meanings of the keys and of their values are those of llama.cpp (src/llama-vocab.cpp).
#include "weft/text/tokenizers/gguf_tokenizer.h"

#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/core/gguf.h"
#include "weft/text/tokenizers/all_kinds.h"
#include "weft/text/tokenizers/gguf_vocabulary.h"
#include "weft/text/tokenizers/load_tokenizer.h"
#include "weft/text/tokenizers/tokenizer_json.h"

namespace weft {
namespace {

using Json = nlohmann::json;
using Metadata = nlohmann::ordered_json;

const Metadata& Get(const Metadata& metadata, absl::string_view key) {
  static const Metadata kNone;
  const auto found = metadata.find(absl::StrCat(kGgufPrefix, key));
  return found == metadata.end() ? kNone : *found;
}

absl::Status Refuse(absl::string_view key, const Metadata& value, absl::string_view wanted) {
  return InvalidArgument(kGgufPrefix, key, " is ", JsonLine(value).substr(0, 100), ", which is not supported; wanted ",
                         wanted);
}

// Returns a list of `size` values that are all of one type, or of any number of values if `size` is 0.
template <class T>
absl::StatusOr<std::vector<T>> GetList(const Metadata& metadata, absl::string_view key, size_t size) {
  const Metadata& list = Get(metadata, key);
  constexpr bool kText = std::is_same_v<T, std::string>, kWhole = std::is_integral_v<T>;
  const auto is_value = [](const Metadata& each) {
    return kText ? each.is_string() : kWhole ? each.is_number_integer() : each.is_number();
  };
  const bool fits = list.is_array() && !list.empty() && (size == 0 || list.size() == size);
  if (fits && absl::c_all_of(list, is_value)) return list.get<std::vector<T>>();
  return Refuse(key, list.is_array() ? Metadata(list.size()) : list,
                absl::StrCat("a list of ", size == 0 ? "" : absl::StrCat(size, " "), kText ? "texts" : "numbers"));
}

absl::StatusOr<bool> GetFlag(const Metadata& metadata, absl::string_view key, bool otherwise) {
  const Metadata& value = Get(metadata, key);
  if (value.is_null()) return otherwise;
  if (!value.is_boolean()) return Refuse(key, value, "true or false");
  return value.get<bool>();
}

// Returns the text of the token whose number is the value of `key`, if there is such a token.
std::optional<std::string> TokenOf(const Metadata& metadata, const GgufTokens& tokens, absl::string_view key) {
  const std::optional<int64_t> id = WholeNumber(Get(metadata, key));
  if (!id || *id < 0 || *id >= static_cast<int64_t>(tokens.size())) return std::nullopt;
  return tokens.texts[static_cast<size_t>(*id)];
}

absl::StatusOr<Json> VocabularyOf(const std::vector<std::string>& texts) {
  Json vocabulary = Json::object();
  for (size_t id = 0; id < texts.size(); ++id) {
    if (!vocabulary.emplace(texts[id], id).second) {
      return InvalidArgument(kGgufPrefix, "tokens: ", Quoted(texts[id]), " occurs twice");
    }
  }
  return vocabulary;
}

// Each of these functions sets the sections of tokenizer.json for one kind of tokenizer.
absl::Status ReadByteLevel(const Metadata& metadata, const GgufTokens& tokens, Json* json) {
  const Metadata& name = Get(metadata, "pre");
  std::string known;
  const GgufPreTokenizer* found = nullptr;
  for (const GgufPreTokenizer& each : kGgufPreTokenizers) {
    if (absl::c_any_of(each.names, [&](absl::string_view text) { return name == std::string(text) && !text.empty(); }))
      found = &each;
    absl::StrAppend(&known, known.empty() ? "" : ", ", each.names[0]);
  }
  if (found == nullptr) return Refuse("pre", name, absl::StrCat("one of those that cut texts as ", known, " do"));
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> merges, GetList<std::string>(metadata, "merges", 0));
  WEFT_ASSIGN_OR_RETURN(Json vocabulary, VocabularyOf(tokens.texts));
  (*json)["normalizer"] = Json::parse(found->normalizer);
  (*json)["pre_tokenizer"] = Json::parse(found->json);
  (*json)["decoder"] = ByteLevelJson(/*prefix_space=*/true);
  (*json)["model"] = {
      {"type", "BPE"}, {"ignore_merges", found->whole_words}, {"vocab", std::move(vocabulary)}, {"merges", merges}};
  return absl::OkStatus();
}

// Returns the merges of SentencePiece's BPE: each way to cut a token into two tokens, those of high scores first.
std::vector<std::string> MergesOf(const GgufTokens& tokens, const std::vector<double>& scores) {
  absl::flat_hash_map<absl::string_view, size_t> ids;
  for (size_t id = 0; id < tokens.size(); ++id) ids.emplace(tokens.texts[id], id);
  std::vector<std::tuple<double, size_t, size_t>> merges;  // minus score, token, bytes of its left part
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (tokens.types[id] != kNormalToken && tokens.types[id] != kUserDefinedToken) continue;
    const absl::string_view text = tokens.texts[id];
    for (size_t cut = 1; cut < text.size(); ++cut) {
      if (ids.contains(text.substr(0, cut)) && ids.contains(text.substr(cut)))
        merges.emplace_back(-scores[id], id, cut);
    }
  }
  absl::c_sort(merges);
  std::vector<std::string> texts;
  for (const auto& [score, id, cut] : merges) {
    texts.push_back(absl::StrCat(tokens.texts[id].substr(0, cut), " ", tokens.texts[id].substr(cut)));
  }
  return texts;
}

absl::Status ReadSentencePiece(const Metadata& metadata, const GgufTokens& tokens, Json* json) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<double> scores, GetList<double>(metadata, "scores", tokens.size()));
  WEFT_ASSIGN_OR_RETURN(const bool prefix, GetFlag(metadata, "add_space_prefix", true));
  WEFT_ASSIGN_OR_RETURN(Json vocabulary, VocabularyOf(tokens.texts));
  const std::optional<std::string> unknown = TokenOf(metadata, tokens, "unknown_token_id");
  Json normalizers = Json::array(), decoders = Json::array();
  if (prefix) normalizers.push_back({{"type", "Prepend"}, {"prepend", kSpace}});
  normalizers.push_back({{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kSpace}});
  decoders.push_back({{"type", "Replace"}, {"pattern", {{"String", kSpace}}}, {"content", " "}});
  decoders.push_back({{"type", "ByteFallback"}});
  decoders.push_back({{"type", "Fuse"}});
  if (prefix) decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  (*json)["normalizer"] = {{"type", "Sequence"}, {"normalizers", std::move(normalizers)}};
  (*json)["decoder"] = {{"type", "Sequence"}, {"decoders", std::move(decoders)}};
  (*json)["model"] = {{"type", "BPE"},
                      {"unk_token", unknown ? Json(*unknown) : Json()},
                      {"fuse_unk", true},
                      {"byte_fallback", true},
                      {"vocab", std::move(vocabulary)},
                      {"merges", MergesOf(tokens, scores)}};
  return absl::OkStatus();
}

// GGUF marks the pieces that begin a word, whereas WordPiece marks those that do not.
absl::Status ReadWordPiece(const Metadata& metadata, const GgufTokens& tokens, Json* json) {
  std::vector<std::string> pieces;
  for (size_t id = 0; id < tokens.size(); ++id) {
    absl::string_view text = tokens.texts[id];
    const bool whole = absl::ConsumePrefix(&text, kSpace) || tokens.types[id] != kNormalToken ||
                       (absl::StartsWith(text, "[") && absl::EndsWith(text, "]") && text.size() > 2);
    pieces.push_back(absl::StrCat(whole ? "" : "##", text));
  }
  WEFT_ASSIGN_OR_RETURN(Json vocabulary, VocabularyOf(pieces));
  WEFT_ASSIGN_OR_RETURN(const bool lowercase, GetFlag(metadata, kLowercase, true));
  WEFT_ASSIGN_OR_RETURN(const bool accents, GetFlag(metadata, kStripAccents, lowercase));
  (*json)["normalizer"] = BertNormalizerJson({.strip_accents = accents, .lowercase = lowercase});
  (*json)["pre_tokenizer"] = {{"type", "BertPreTokenizer"}};
  (*json)["decoder"] = {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}};
  (*json)["model"] = {{"type", "WordPiece"},
                      {"unk_token", TokenOf(metadata, tokens, "unknown_token_id").value_or("[UNK]")},
                      {"continuing_subword_prefix", "##"},
                      {"max_input_chars_per_word", 100},
                      {"vocab", std::move(vocabulary)}};
  return absl::OkStatus();
}

// The values of the key model, the keys of the tokens around a text, their numbers without these keys, and whether the
// tokens are there by default. They are always around a text of a BERT.
constexpr struct {
  const char* name;
  absl::Status (*read)(const Metadata& metadata, const GgufTokens& tokens, Json* json);
  const char *begin, *end;
  size_t begin_id, end_id;
  bool adds_begin, adds_end;
} kModels[] = {{"gpt2", ReadByteLevel, "bos_token_id", "eos_token_id", 11, 11, false, false},
               {"llama", ReadSentencePiece, "bos_token_id", "eos_token_id", 1, 2, true, false},
               {"bert", ReadWordPiece, "bos_token_id", "seperator_token_id", 101, 102, true, true}};

absl::StatusOr<GgufTokens> ReadTokens(const Metadata& metadata) {
  GgufTokens tokens;
  WEFT_ASSIGN_OR_RETURN(tokens.texts, GetList<std::string>(metadata, "tokens", 0));
  tokens.types.assign(tokens.size(), kNormalToken);
  if (!Get(metadata, "token_type").is_null()) {
    WEFT_ASSIGN_OR_RETURN(tokens.types, GetList<int32_t>(metadata, "token_type", tokens.size()));
  }
  return tokens;
}

}  // namespace

absl::StatusOr<TokenizerJson> TokenizerOfGguf(const Metadata& metadata) {
  WEFT_ASSIGN_OR_RETURN(const GgufTokens tokens, ReadTokens(metadata));
  TokenizerJson result = {{{"version", "1.0"}}, {{"tokenizer_class", "PreTrainedTokenizerFast"}}};
  Json& json = result.tokenizer;
  const Metadata& name = Get(metadata, "model");
  const auto model = absl::c_find_if(kModels, [&](const auto& each) { return name == each.name; });
  if (model == std::end(kModels)) return Refuse("model", name, "gpt2, llama or bert");
  std::vector<AddedToken> listed;
  for (size_t id = 0; id < tokens.size(); ++id) {
    const int32_t type = tokens.types[id];
    const bool ends = absl::c_linear_search(kGgufEndTexts, tokens.texts[id]), user = type == kUserDefinedToken;
    if (!ends && !user && type != kControlToken && type != kUnknownToken) continue;
    listed.push_back({.text = tokens.texts[id], .id = static_cast<int32_t>(id), .special = ends || !user});
  }
  json["added_tokens"] = AddedTokensJson(listed);
  WEFT_RETURN_IF_ERROR(model->read(metadata, tokens, &json));
  const bool begins = model->adds_begin || json["model"].value("ignore_merges", false);
  std::optional<int32_t> ends[2];
  for (const auto& [i, flag, key, usual, otherwise] :
       {std::tuple(0, "add_bos_token", model->begin, model->begin_id, begins),
        std::tuple(1, "add_eos_token", model->end, model->end_id, model->adds_end)}) {
    WEFT_ASSIGN_OR_RETURN(const bool added, GetFlag(metadata, flag, otherwise));
    const bool given = TokenOf(metadata, tokens, key).has_value(), adds = added || model->adds_end;
    const size_t id = given ? Get(metadata, key).get<size_t>() : usual;
    if (adds && id < tokens.size()) ends[i] = static_cast<int32_t>(id);
  }
  if (ends[0] || ends[1]) {
    const WrapFormat single = Surrounded(ends[0], {WrapItem::kFirst}, ends[1]);
    // The second text of a BERT's pair follows the end token of the first.
    const WrapFormat second = Surrounded(model->adds_end ? std::nullopt : ends[0], {WrapItem::kSecond, 0, 1}, ends[1]);
    json["post_processor"] = TemplateJson(
        single, Joined(single, second), [&](int32_t id) -> auto& { return tokens.texts[static_cast<size_t>(id)]; });
  }
  for (const auto& [key, role] : kGgufRoles) {
    const std::optional<std::string> text = TokenOf(metadata, tokens, key);
    for (const auto& [name, of] : kTokenRoles) {
      if (text && of == role) result.config[name] = *text;
    }
  }
  if (metadata.contains(kGgufTemplate)) result.config["chat_template"] = Json(metadata[kGgufTemplate]);
  return result;
}

namespace {

absl::StatusOr<TokenizerJson> ReadFileOf(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Open(path));
  return Annotate(TokenizerOfGguf(file.metadata()), path);
}

Loaded Load(const std::string& path, const std::string& /*companion*/, const Json& /*config*/) {
  WEFT_ASSIGN_OR_RETURN(const TokenizerJson json, ReadFileOf(path));
  WEFT_ASSIGN_OR_RETURN(auto tokenizer, Annotate(ReadTokenizerJson(json.tokenizer), path));
  WEFT_ASSIGN_OR_RETURN(const TokenizerSettings settings, Annotate(ReadTokenizerSettings(json.config, {}), path));
  tokenizer->Configure(settings);
  return tokenizer;
}

absl::StatusOr<std::vector<NamedContents>> Files(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const TokenizerJson json, ReadFileOf(path));
  const auto text = [](const Json& each) { return each.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; };
  return std::vector<NamedContents>{{"tokenizer.json", text(json.tokenizer)},
                                    {"tokenizer_config.json", text(json.config)}};
}

}  // namespace

constexpr TokenizerKind kGgufTokenizer = {
    .file = "*.gguf", .extension = kGgufEnding, .of_transformers = false, .load = Load, .files = Files};

}  // namespace weft
