// tokenizer.json has a tokenizer of Hugging Face's library, or Weft's own tokenizer of bytes or characters. Each
// function reads one section of Hugging Face's file. Errors begin with the section's name. CheckOff rejects settings
// that Weft doesn't support and that would change the ids.
#include "weft/text/tokenizers/tokenizer_json.h"

#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/text/tokenizers/all_kinds.h"
#include "weft/text/tokenizers/character_tokenizer.h"
#include "weft/text/tokenizers/json_members.h"
#include "weft/text/tokenizers/pipeline.h"
#include "weft/text/tokenizers/unigram.h"

namespace weft {
namespace {

using Json = nlohmann::json;

absl::Status UnknownType(const Json& object, const char* known) {
  return InvalidArgument("its type is '", TypeOf(object), "', not ", known);
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

// Returns the model's vocabulary `listed`, and the tokens that only `added` has, which Find does not find. If
// `as_bytes` is set, the model's tokens are converted from the byte alphabet to bytes. An added token outside this
// alphabet is not found either, because no ordinary text becomes it.
absl::StatusOr<Vocabulary> ReadVocabulary(const VocabularyEntries& listed, const std::vector<AddedToken>& added,
                                          bool as_bytes) {
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

absl::StatusOr<Vocabulary> ReadVocabulary(const Json& model, const std::vector<AddedToken>& added, bool as_bytes) {
  const absl::StatusOr<VocabularyEntries> listed = ReadVocabularyEntries(Member(model, "vocab"));
  return Annotate(listed.ok() ? ReadVocabulary(*listed, added, as_bytes) : listed.status(), "model.vocab");
}

absl::StatusOr<std::vector<TokenPair>> ReadMerges(const Json& list, bool as_bytes) {
  if (!list.is_array()) return InvalidArgument("it is not a list");
  std::vector<TokenPair> merges;
  for (const Json& entry : list) {
    const bool pair = entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_string();
    absl::StatusOr<TokenPair> merge =
        pair ? ReadMerge(entry[0].get_ref<const std::string&>(), entry[1].get_ref<const std::string&>(), as_bytes)
        : entry.is_string() ? ReadMerge(entry.get_ref<const std::string&>(), as_bytes)
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

template <class Step>
absl::StatusOr<std::vector<Step>> ReadSteps(absl::Span<const Json* const> objects,
                                            absl::StatusOr<Step> (*read)(const Json& object)) {
  std::vector<Step> steps;
  for (const Json* const object : objects) {
    WEFT_ASSIGN_OR_RETURN(steps.emplace_back(), read(*object));
  }
  return steps;
}

// The objects of the sections that describe a pipeline, without Sequences.
struct Steps {
  explicit Steps(const Json& json)
      : normalizers(Flatten(Member(json, "normalizer"), "normalizers")),
        pre_tokenizers(Flatten(Member(json, "pre_tokenizer"), "pretokenizers")),
        decoders(Flatten(Member(json, "decoder"), "decoders")),
        decodes(!Member(json, "decoder").is_null()) {}

  std::vector<const Json*> normalizers, pre_tokenizers, decoders;
  bool decodes;
};

absl::StatusOr<Pipeline> ReadPipeline(const Steps& steps) {
  Pipeline pipeline;
  WEFT_ASSIGN_OR_RETURN(pipeline.normalizers, Annotate(ReadSteps(steps.normalizers, ReadNormalizer), "normalizer"));
  WEFT_ASSIGN_OR_RETURN(pipeline.pre_tokenizers,
                        Annotate(ReadSteps(steps.pre_tokenizers, ReadPreTokenizer), "pre_tokenizer"));
  if (!steps.decodes) return pipeline;
  WEFT_ASSIGN_OR_RETURN(pipeline.decoders, Annotate(ReadSteps(steps.decoders, ReadDecoder), "decoder"));
  return pipeline;
}

// If bytes are the first step of the model and of the decoder, the model itself does these steps, which is faster.
absl::StatusOr<std::unique_ptr<Tokenizer>> ReadBpe(const Json& json, std::vector<AddedToken> added) {
  const Json& model = Member(json, "model");
  Steps steps(json);
  const bool as_bytes = !steps.pre_tokenizers.empty() && TypeOf(*steps.pre_tokenizers.back()) == "ByteLevel" &&
                        !steps.decoders.empty() && TypeOf(*steps.decoders[0]) == "ByteLevel" &&
                        CheckOff(model, {"byte_fallback", "continuing_subword_prefix", "end_of_word_suffix"}).ok();
  BpeModel bpe = {.characters = !as_bytes};
  if (as_bytes) {
    const Json& words = *steps.pre_tokenizers.back();
    WEFT_ASSIGN_OR_RETURN(bpe.prefix_space, Annotate(Get(words, "add_prefix_space", true), "pre_tokenizer"));
    WEFT_ASSIGN_OR_RETURN(bpe.gpt2_words, Annotate(Get(words, "use_regex", true), "pre_tokenizer"));
    steps.pre_tokenizers.pop_back();
    steps.decoders.erase(steps.decoders.begin());
  } else {
    WEFT_ASSIGN_OR_RETURN(bpe.byte_fallback, Annotate(Get(model, "byte_fallback", false), "model"));
    WEFT_ASSIGN_OR_RETURN(bpe.prefix, Annotate(Get(model, "continuing_subword_prefix", bpe.prefix), "model"));
    WEFT_ASSIGN_OR_RETURN(bpe.suffix, Annotate(Get(model, "end_of_word_suffix", bpe.suffix), "model"));
  }
  WEFT_ASSIGN_OR_RETURN(bpe.pipeline, ReadPipeline(steps));
  const bool joins = as_bytes && !bpe.pipeline.decoders->empty();
  if (joins) bpe.pipeline.decoders->insert(bpe.pipeline.decoders->begin(), JoinAll());
  WEFT_RETURN_IF_ERROR(Annotate(CheckOff(model, {"dropout"}), "model"));
  WEFT_ASSIGN_OR_RETURN(bpe.vocabulary, ReadVocabulary(model, added, as_bytes));
  WEFT_ASSIGN_OR_RETURN(const std::string unknown, Annotate(Get<std::string>(model, "unk_token", ""), "model"));
  bpe.unknown = bpe.vocabulary.Find(unknown);
  WEFT_ASSIGN_OR_RETURN(bpe.fuse_unknown, Annotate(Get(model, "fuse_unk", false), "model"));
  WEFT_ASSIGN_OR_RETURN(bpe.whole_words, Annotate(Get(model, "ignore_merges", false), "model"));
  WEFT_ASSIGN_OR_RETURN(bpe.merges, Annotate(ReadMerges(Member(model, "merges"), as_bytes), "model.merges"));
  WEFT_RETURN_IF_ERROR(SetFormats(json, std::move(added), &bpe));
  return Annotate(Bpe::Create(std::move(bpe)), "model.merges");
}

absl::StatusOr<std::unique_ptr<Tokenizer>> ReadUnigram(const Json& json, std::vector<AddedToken> added) {
  const Json &model = Member(json, "model"), &list = Member(model, "vocab");
  UnigramModel unigram;
  VocabularyEntries tokens;
  if (!list.is_array()) return InvalidArgument("model.vocab: it is not a list");
  for (const Json& entry : list) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number()) {
      return InvalidArgument("model.vocab: entry ", tokens.size(), ": ", entry.dump(), " is not a token and a score");
    }
    tokens.emplace_back(entry[0].get<std::string>(), static_cast<int64_t>(tokens.size()));
    unigram.scores.push_back(entry[1].get<double>());
  }
  WEFT_ASSIGN_OR_RETURN(unigram.vocabulary, Annotate(ReadVocabulary(tokens, added, /*as_bytes=*/false), "model.vocab"));
  WEFT_ASSIGN_OR_RETURN(unigram.byte_fallback, Annotate(Get(model, "byte_fallback", false), "model"));
  if (!Member(model, "unk_id").is_null()) {
    WEFT_ASSIGN_OR_RETURN(unigram.unknown, Annotate(Get<int32_t>(model, "unk_id", -1), "model"));
  }
  WEFT_ASSIGN_OR_RETURN(unigram.pipeline, ReadPipeline(Steps(json)));
  WEFT_RETURN_IF_ERROR(SetFormats(json, std::move(added), &unigram));
  return Annotate(Unigram::Create(std::move(unigram)), "model");
}

absl::StatusOr<std::unique_ptr<Tokenizer>> ReadWordPiece(const Json& json, std::vector<AddedToken> added) {
  const Json& model = Member(json, "model");
  WordPieceModel pieces = {.whole_words = TypeOf(model) == "WordLevel"};
  if (pieces.whole_words) pieces.unknown = "<unk>";
  WEFT_ASSIGN_OR_RETURN(pieces.pipeline, ReadPipeline(Steps(json)));
  WEFT_ASSIGN_OR_RETURN(pieces.unknown, Annotate(Get(model, "unk_token", pieces.unknown), "model"));
  WEFT_ASSIGN_OR_RETURN(pieces.prefix, Annotate(Get(model, "continuing_subword_prefix", pieces.prefix), "model"));
  WEFT_ASSIGN_OR_RETURN(pieces.max_word_length,
                        Annotate(Get(model, "max_input_chars_per_word", pieces.max_word_length), "model"));
  WEFT_ASSIGN_OR_RETURN(pieces.vocabulary, ReadVocabulary(model, added, /*as_bytes=*/false));
  WEFT_RETURN_IF_ERROR(SetFormats(json, std::move(added), &pieces));
  return Annotate(WordPiece::Create(std::move(pieces)), "model");
}

// The kinds of model, by model.type.
constexpr struct {
  const char* name;
  absl::StatusOr<std::unique_ptr<Tokenizer>> (*read)(const Json& json, std::vector<AddedToken> added);
} kModels[] = {{"BPE", ReadBpe}, {"Unigram", ReadUnigram}, {"WordLevel", ReadWordPiece}, {"WordPiece", ReadWordPiece}};

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

absl::StatusOr<std::unique_ptr<Tokenizer>> ReadTokenizerJson(const Json& json) {
  const Json& model = Member(json, "model");
  // Older files don't name the type. Only BPE has merges, and only Unigram a list of tokens.
  const std::string type = !Member(model, "type").is_null()    ? TypeOf(model)
                           : model.contains("merges")          ? "BPE"
                           : Member(model, "vocab").is_array() ? "Unigram"
                                                               : "WordPiece";
  const auto* const kind = model.is_object() ? FindRow(kModels, type) : nullptr;
  if (kind == nullptr) return Annotate(UnknownType(model, "BPE, Unigram, WordLevel or WordPiece"), "model");
  WEFT_ASSIGN_OR_RETURN(std::vector<AddedToken> added, ReadAddedTokens(Member(json, "added_tokens")));
  WEFT_ASSIGN_OR_RETURN(auto tokenizer, kind->read(json, std::move(added)));
  WEFT_ASSIGN_OR_RETURN(const std::string padding,
                        Annotate(Get<std::string>(Member(json, "padding"), "pad_token", ""), "padding"));
  if (!padding.empty()) tokenizer->Configure({.roles = {{&SpecialTokens::padding, padding}}});
  return tokenizer;
}

constexpr TokenizerKind kTokenizerJson = {
    .file = "tokenizer.json",
    .extension = ".json",
    .has_format = true,
    .load = FromOneFile<Create>,
};

}  // namespace weft
