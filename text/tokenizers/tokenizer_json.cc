// tokenizer.json has Hugging Face's byte-level BPE or WordPiece, or Weft's own tokenizer of bytes or characters. Each
// function reads one section of Hugging Face's file. Errors begin with the section's name. CheckOff rejects settings
// that Weft doesn't support and that would change the ids.
#include "weft/text/tokenizers/tokenizer_json.h"

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/text/tokenizers/all_kinds.h"
#include "weft/text/tokenizers/character_tokenizer.h"
#include "weft/text/tokenizers/json_members.h"
#include "weft/text/tokenizers/pre_tokenizers.h"

namespace weft {
namespace {

using Json = nlohmann::json;

absl::Status UnknownType(const Json& object, const char* known) {
  return InvalidArgument("its type is '", TypeOf(object), "', not ", known);
}

absl::Status Unknown(const char* location, const Json& object, const char* known) {
  return Annotate(UnknownType(object, known), location);
}

// Returns InvalidArgument if one of `keys` is present with a value other than null, false, "" or 0. Such a setting
// would change the ids.
absl::Status CheckOff(const Json& object, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const Json& value = Member(object, key);
    if (value.is_null() || value == false || value == "" || value == 0) continue;
    return InvalidArgument(key, ": ", value.dump(), " is not supported");
  }
  return absl::OkStatus();
}

// Reads a token's text and flags. A text alone, as tokenizer_config.json has it, is a special token.
absl::StatusOr<AddedToken> ReadAddedToken(const Json& entry) {
  if (entry.is_string()) return AddedToken{.text = entry.get<std::string>(), .id = -1};
  AddedToken token;
  WEFT_ASSIGN_OR_RETURN(token.text, Get<std::string>(entry, "content", ""));
  WEFT_ASSIGN_OR_RETURN(token.id, Get<int32_t>(entry, "id", -1));
  WEFT_ASSIGN_OR_RETURN(token.special, Get(entry, "special", false));
  WEFT_ASSIGN_OR_RETURN(token.strip_before, Get(entry, "lstrip", false));
  WEFT_ASSIGN_OR_RETURN(token.strip_after, Get(entry, "rstrip", false));
  WEFT_ASSIGN_OR_RETURN(token.single_word, Get(entry, "single_word", false));
  WEFT_ASSIGN_OR_RETURN(token.normalized, Get(entry, "normalized", false));
  if (token.text.empty()) return InvalidArgument("it has no content");
  return token;
}

absl::StatusOr<std::vector<AddedToken>> ReadAddedTokens(const Json& list) {
  std::vector<AddedToken> tokens;
  if (list.is_null()) return tokens;
  if (!list.is_array()) return InvalidArgument("added_tokens: it is not a list");
  for (const Json& entry : list) {
    const std::string location = absl::StrCat("added_tokens[", tokens.size(), "]");
    WEFT_ASSIGN_OR_RETURN(AddedToken token, Annotate(ReadAddedToken(entry), location));
    if (token.id < 0) return InvalidArgument(location, ": it has no id");
    tokens.push_back(std::move(token));
  }
  return tokens;
}

// Returns the model's vocabulary, and the tokens that only `added` has, which Find does not find. If `as_bytes` is set,
// the model's tokens are converted from the byte alphabet to bytes. An added token outside this alphabet is not found
// either, because no ordinary text becomes it.
absl::StatusOr<Vocabulary> ReadVocabulary(const Json& list, const std::vector<AddedToken>& added, bool as_bytes) {
  WEFT_ASSIGN_OR_RETURN(const VocabularyEntries listed, ReadVocabularyEntries(list));
  std::map<std::string, int64_t> only_added;
  for (const AddedToken& token : added) {
    const int64_t id = only_added.emplace(token.text, token.id).first->second;
    if (id != token.id) return InvalidArgument("added token ", Quoted(token.text), " has ids ", id, " and ", token.id);
  }
  VocabularyEntries tokens;
  for (const auto& [token, id] : listed) {
    const auto special = only_added.find(token);
    const bool is_added = special != only_added.end();
    if (is_added && special->second != id) {
      return InvalidArgument("token ", Quoted(token), " has id ", id, ", but in added_tokens ", special->second);
    }
    absl::StatusOr<std::string> text = as_bytes ? ReadToken(token) : token;
    if (!text.ok() && !is_added) return text.status();
    if (!text.ok()) continue;
    if (is_added) only_added.erase(special);
    tokens.emplace_back(*std::move(text), id);
  }
  return Vocabulary::FromIds(std::move(tokens), {only_added.begin(), only_added.end()});
}

absl::StatusOr<std::vector<TokenPair>> ReadMerges(const Json& list) {
  if (!list.is_array()) return InvalidArgument("it is not a list");
  std::vector<TokenPair> merges;
  for (const Json& entry : list) {
    const bool pair = entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_string();
    absl::StatusOr<TokenPair> merge =
        pair                ? ReadMerge(entry[0].get_ref<const std::string&>(), entry[1].get_ref<const std::string&>())
        : entry.is_string() ? ReadMerge(entry.get_ref<const std::string&>())
                            : InvalidArgument(entry.dump(), " is not two tokens");
    if (!merge.ok()) return Annotate(merge.status(), absl::StrCat("entry ", merges.size()));
    merges.push_back(*std::move(merge));
  }
  return merges;
}

absl::StatusOr<WrapFormat> ReadTemplate(const Json& list, const Json& special) {
  WrapFormat format;
  for (const Json& entry : list) {
    const Json &sequence = Member(entry, "Sequence"), &token = Member(entry, "SpecialToken");
    const Json& item = sequence.is_null() ? token : sequence;
    WEFT_ASSIGN_OR_RETURN(const std::string id, Get<std::string>(item, "id", ""));
    WEFT_ASSIGN_OR_RETURN(const int32_t segment, Get<int32_t>(item, "type_id", 0));
    if (!sequence.is_null()) {
      if (id != "A" && id != "B") return InvalidArgument("its sequence ", Quoted(id), " is neither A nor B");
      format.push_back({id == "A" ? WrapItem::kFirst : WrapItem::kSecond, 0, segment});
      continue;
    }
    const Json& ids = Member(Member(special, id), "ids");
    if (!ids.is_array()) return InvalidArgument("special token ", Quoted(id), " has no ids");
    for (const Json& each : ids) {
      if (!Fits<int32_t>(each)) return InvalidArgument(each.dump(), " is not an id");
      format.push_back({WrapItem::kToken, each.get<int32_t>(), segment});
    }
  }
  return format;
}

// Returns the only item of the Sequence `json` that is not of type `harmless`, or `json` if it is no Sequence.
absl::StatusOr<const Json*> OneOf(const Json& json, const char* items, const char* harmless) {
  if (TypeOf(json) != "Sequence") return &json;
  const Json* found = nullptr;
  for (const Json& item : Member(json, items)) {
    if (found != nullptr && TypeOf(item) == harmless) continue;
    if (found != nullptr && TypeOf(*found) != harmless) {
      return InvalidArgument("a Sequence of ", TypeOf(*found), " and ", TypeOf(item), " is not supported");
    }
    found = &item;
  }
  if (found == nullptr) return InvalidArgument("a Sequence of nothing is not supported");
  return found;
}

// Sets the formats that `sequence` has. They stay as they are if it has none.
absl::Status ReadPostProcessor(const Json& sequence, WrapFormat* single, WrapFormat* pair) {
  WEFT_ASSIGN_OR_RETURN(const Json* const item, OneOf(sequence, "processors", "ByteLevel"));
  const Json& json = *item;
  const std::string type = TypeOf(json);
  if (json.is_null() || type == "ByteLevel") return absl::OkStatus();
  if (type == "TemplateProcessing") {
    const Json& special = Member(json, "special_tokens");
    WEFT_ASSIGN_OR_RETURN(*single, ReadTemplate(Member(json, "single"), special));
    WEFT_ASSIGN_OR_RETURN(*pair, ReadTemplate(Member(json, "pair"), special));
    return absl::OkStatus();
  }
  if (type != "BertProcessing" && type != "RobertaProcessing") {
    return UnknownType(json, "TemplateProcessing, BertProcessing, RobertaProcessing or ByteLevel");
  }
  int32_t ids[2];
  for (int i = 0; i < 2; ++i) {
    const Json& token = Member(json, i == 0 ? "cls" : "sep");
    if (!token.is_array() || token.size() != 2 || !Fits<int32_t>(token[1])) {
      return InvalidArgument("cls and sep are not lists of a token and its id");
    }
    ids[i] = token[1].get<int32_t>();
  }
  *single = BertSingle(ids[0], ids[1]);
  *pair = type == "BertProcessing" ? BertPair(ids[0], ids[1]) : RobertaPair(ids[0], ids[1]);
  return absl::OkStatus();
}

// Sets the formats and special tokens of `model`. The model's vocabulary must be set already.
template <class Model>
absl::Status SetFormats(const Json& json, std::vector<AddedToken> added, Model* model) {
  WEFT_RETURN_IF_ERROR(
      Annotate(ReadPostProcessor(Member(json, "post_processor"), &model->single, &model->pair), "post_processor"));
  for (const WrapFormat* format : {&model->single, &model->pair}) {
    for (const WrapItem& item : *format) {
      if (item.id >= 0 && item.id < model->vocabulary.size()) continue;
      return InvalidArgument("post_processor: id ", item.id, " is not in 0 .. ", model->vocabulary.size() - 1);
    }
  }
  model->special = std::move(added);
  return absl::OkStatus();
}

// Returns the decoder's object, or InvalidArgument if its type is not `type`. Fuse joins texts, which Join does anyway.
absl::StatusOr<const Json*> ReadDecoder(const Json& json, const char* type) {
  WEFT_ASSIGN_OR_RETURN(const Json* const decoder,
                        Annotate(OneOf(Member(json, "decoder"), "decoders", "Fuse"), "decoder"));
  if (TypeOf(*decoder) != type) return Unknown("decoder", *decoder, type);
  return decoder;
}

// Reads the pre-tokenizers. If the last is ByteLevel, which the model does itself, it is left to `byte_level`.
absl::StatusOr<std::vector<PreTokenizer>> ReadPreTokenizers(const Json& json, ByteLevelWords* byte_level) {
  std::vector<const Json*> objects = Flatten(Member(json, "pre_tokenizer"), "pretokenizers");
  if (byte_level != nullptr) {
    WEFT_ASSIGN_OR_RETURN(byte_level->prefix_space, Get(*objects.back(), "add_prefix_space", true));
    WEFT_ASSIGN_OR_RETURN(byte_level->gpt2_words, Get(*objects.back(), "use_regex", true));
    objects.pop_back();
  }
  std::vector<PreTokenizer> steps;
  for (const Json* const object : objects) {
    WEFT_ASSIGN_OR_RETURN(PreTokenizer step, ReadPreTokenizer(*object));
    steps.push_back(std::move(step));
  }
  return steps;
}

absl::StatusOr<std::unique_ptr<Tokenizer>> ReadBpe(const Json& json, std::vector<AddedToken> added) {
  const Json& model = Member(json, "model");
  const std::vector<const Json*> splits = Flatten(Member(json, "pre_tokenizer"), "pretokenizers");
  if (!Member(json, "normalizer").is_null()) return Unknown("normalizer", Member(json, "normalizer"), "null");
  if (splits.empty() || TypeOf(*splits.back()) != "ByteLevel") {
    return InvalidArgument("pre_tokenizer: its last step is not of type ByteLevel");
  }
  BpeModel bpe;
  ByteLevelWords byte_level;
  WEFT_ASSIGN_OR_RETURN(bpe.pipeline.pre_tokenizers, Annotate(ReadPreTokenizers(json, &byte_level), "pre_tokenizer"));
  bpe.prefix_space = byte_level.prefix_space;
  bpe.gpt2_words = byte_level.gpt2_words;
  WEFT_RETURN_IF_ERROR(ReadDecoder(json, "ByteLevel").status());
  WEFT_RETURN_IF_ERROR(Annotate(
      CheckOff(model, {"dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"}), "model"));
  WEFT_ASSIGN_OR_RETURN(bpe.whole_words, Annotate(Get(model, "ignore_merges", false), "model"));
  WEFT_ASSIGN_OR_RETURN(bpe.vocabulary, Annotate(ReadVocabulary(Member(model, "vocab"), added, true), "model.vocab"));
  WEFT_ASSIGN_OR_RETURN(const std::string unknown, Annotate(Get<std::string>(model, "unk_token", ""), "model"));
  bpe.unknown = bpe.vocabulary.Find(unknown);
  WEFT_ASSIGN_OR_RETURN(bpe.fuse_unknown, Annotate(Get(model, "fuse_unk", false), "model"));
  WEFT_ASSIGN_OR_RETURN(bpe.merges, Annotate(ReadMerges(Member(model, "merges")), "model.merges"));
  WEFT_RETURN_IF_ERROR(SetFormats(json, std::move(added), &bpe));
  return Annotate(ByteLevelBpe::Create(std::move(bpe)), "model.merges");
}

absl::StatusOr<BertNormalizer> ReadNormalizer(const Json& json) {
  if (json.is_null()) {
    return BertNormalizer{.clean_text = false, .separate_cjk = false, .strip_accents = false, .lowercase = false};
  }
  if (TypeOf(json) != "BertNormalizer") return Unknown("normalizer", json, "BertNormalizer or null");
  BertNormalizer normalizer;
  const auto get = [&json](const char* key, bool otherwise) {
    return Annotate(Get(json, key, otherwise), "normalizer");
  };
  WEFT_ASSIGN_OR_RETURN(normalizer.clean_text, get("clean_text", true));
  WEFT_ASSIGN_OR_RETURN(normalizer.separate_cjk, get("handle_chinese_chars", true));
  WEFT_ASSIGN_OR_RETURN(normalizer.lowercase, get("lowercase", true));
  WEFT_ASSIGN_OR_RETURN(normalizer.strip_accents, get("strip_accents", normalizer.lowercase));
  return normalizer;
}

absl::StatusOr<std::unique_ptr<Tokenizer>> ReadWordPiece(const Json& json, std::vector<AddedToken> added) {
  const Json &model = Member(json, "model"), &pre_tokenizer = Member(json, "pre_tokenizer");
  if (TypeOf(pre_tokenizer) != "BertPreTokenizer") return Unknown("pre_tokenizer", pre_tokenizer, "BertPreTokenizer");
  WordPieceModel pieces;
  WEFT_ASSIGN_OR_RETURN(pieces.normalizer, ReadNormalizer(Member(json, "normalizer")));
  WEFT_ASSIGN_OR_RETURN(pieces.unknown, Annotate(Get(model, "unk_token", pieces.unknown), "model"));
  WEFT_ASSIGN_OR_RETURN(pieces.prefix, Annotate(Get(model, "continuing_subword_prefix", pieces.prefix), "model"));
  WEFT_ASSIGN_OR_RETURN(pieces.max_word_length,
                        Annotate(Get(model, "max_input_chars_per_word", pieces.max_word_length), "model"));
  WEFT_ASSIGN_OR_RETURN(pieces.vocabulary,
                        Annotate(ReadVocabulary(Member(model, "vocab"), added, false), "model.vocab"));
  if (Member(json, "decoder").is_null()) {
    pieces.decoder_prefix.reset();
  } else {
    WEFT_ASSIGN_OR_RETURN(const Json* const decoder, ReadDecoder(json, "WordPiece"));
    WEFT_ASSIGN_OR_RETURN(pieces.decoder_prefix, Annotate(Get<std::string>(*decoder, "prefix", "##"), "decoder"));
    WEFT_ASSIGN_OR_RETURN(pieces.cleanup, Annotate(Get(*decoder, "cleanup", true), "decoder"));
  }
  WEFT_RETURN_IF_ERROR(SetFormats(json, std::move(added), &pieces));
  return Annotate(WordPiece::Create(std::move(pieces)), "model");
}

// The kinds of model, by model.type.
constexpr struct {
  const char* type;
  absl::StatusOr<std::unique_ptr<Tokenizer>> (*read)(const Json& json, std::vector<AddedToken> added);
} kModels[] = {{"BPE", ReadBpe}, {"WordPiece", ReadWordPiece}};

constexpr std::pair<const char*, TokenRole> kRoles[] = {
    {"bos_token", &SpecialTokens::begin},    {"eos_token", &SpecialTokens::end},
    {"pad_token", &SpecialTokens::padding},  {"unk_token", &SpecialTokens::unknown},
    {"mask_token", &SpecialTokens::mask},    {"cls_token", &SpecialTokens::classification},
    {"sep_token", &SpecialTokens::separator}};

Loaded Create(absl::string_view contents) {
  WEFT_ASSIGN_OR_RETURN(const Json json, ParseLargeJsonObject(contents));
  if (!json.contains("type")) {
    if (json.contains("model")) return ReadTokenizerJson(json);
    return InvalidArgument("it has neither the \"type\" nor the \"model\" of a tokenizer");
  }
  if (json["type"] == "byte") return std::make_unique<ByteTokenizer>();
  if (json["type"] != "character") return InvalidArgument("not a tokenizer of type \"byte\" or \"character\"");
  WEFT_ASSIGN_OR_RETURN(CharacterTokenizer tokenizer, CharacterTokenizer::FromJson(json));
  return std::make_unique<CharacterTokenizer>(std::move(tokenizer));
}

}  // namespace

absl::StatusOr<TokenizerSettings> ReadTokenizerSettings(const Json& json, const Json& special_tokens_map) {
  TokenizerSettings settings;
  WEFT_ASSIGN_OR_RETURN(settings.clean_up, Get(json, "clean_up_tokenization_spaces", false));
  WEFT_ASSIGN_OR_RETURN(settings.split_special, Get(json, "split_special_tokens", false));
  // The classes of no model in particular leave the pre-tokenizer as tokenizer.json says.
  const Json &type = Member(json, "tokenizer_class"), &space = Member(json, "add_prefix_space");
  if (!space.is_null() && type != "PreTrainedTokenizerFast" && type != "TokenizersBackend") {
    WEFT_ASSIGN_OR_RETURN(settings.prefix_space, Get(json, "add_prefix_space", false));
  }
  const Json& all = Member(json, "added_tokens_decoder");
  for (const auto& [id, entry] : all.items()) {
    WEFT_ASSIGN_OR_RETURN(AddedToken token,
                          Annotate(ReadAddedToken(entry), absl::StrCat("added_tokens_decoder, ", id)));
    settings.tokens.push_back(std::move(token));
  }
  const auto read = [&](const Json& entry, const char* key) -> absl::StatusOr<std::string> {
    WEFT_ASSIGN_OR_RETURN(AddedToken token, Annotate(ReadAddedToken(entry), key));
    token.special = true;
    settings.special.push_back(std::move(token));
    return settings.special.back().text;
  };
  const auto find = [&](const char* key) -> const Json* {
    for (const Json* const object : {&special_tokens_map, &json}) {
      if (object->is_object() && object->contains(key) && (object == &json || all.is_null())) return &(*object)[key];
    }
    return nullptr;
  };
  for (const auto& [key, role] : kRoles) {
    const Json* const value = find(key);
    if (value == nullptr) continue;
    std::optional<std::string> text;
    if (!value->is_null()) {
      WEFT_ASSIGN_OR_RETURN(text, read(*value, key));
    }
    settings.roles.emplace_back(role, std::move(text));
  }
  for (const char* key : {"additional_special_tokens", "extra_special_tokens"}) {
    const Json* const list = find(key);
    if (list == nullptr) continue;
    for (const Json& entry : *list) WEFT_RETURN_IF_ERROR(read(entry, key).status());
  }
  return settings;
}

absl::StatusOr<WordPieceModel> ReadBertModel(Vocabulary vocabulary, const Json& json) {
  WEFT_ASSIGN_OR_RETURN(const TokenizerSettings settings, ReadTokenizerSettings(json, {}));
  WordPieceModel model = BertModel(std::move(vocabulary), settings.roles);
  BertNormalizer& normalizer = model.normalizer;
  WEFT_ASSIGN_OR_RETURN(normalizer.lowercase, Get(json, "do_lower_case", true));
  WEFT_ASSIGN_OR_RETURN(normalizer.strip_accents, Get(json, "strip_accents", normalizer.lowercase));
  WEFT_ASSIGN_OR_RETURN(normalizer.separate_cjk, Get(json, "tokenize_chinese_chars", true));
  return model;
}

absl::StatusOr<std::unique_ptr<Tokenizer>> ReadTokenizerJson(const Json& json) {
  const Json& model = Member(json, "model");
  // Older files don't name the type. Of the two types, only BPE has merges.
  const std::string type =
      Member(model, "type").is_null() ? model.contains("merges") ? "BPE" : "WordPiece" : TypeOf(model);
  for (const auto& kind : kModels) {
    if (!model.is_object() || type != kind.type) continue;
    WEFT_ASSIGN_OR_RETURN(std::vector<AddedToken> added, ReadAddedTokens(Member(json, "added_tokens")));
    WEFT_ASSIGN_OR_RETURN(auto tokenizer, kind.read(json, std::move(added)));
    WEFT_ASSIGN_OR_RETURN(const std::string padding,
                          Annotate(Get<std::string>(Member(json, "padding"), "pad_token", ""), "padding"));
    if (!padding.empty()) tokenizer->Configure({.roles = {{&SpecialTokens::padding, padding}}});
    return tokenizer;
  }
  return Unknown("model", model, "BPE or WordPiece");
}

constexpr TokenizerKind kTokenizerJson = {
    .file = "tokenizer.json",
    .extension = ".json",
    .load = FromOneFile<Create>,
};

}  // namespace weft
