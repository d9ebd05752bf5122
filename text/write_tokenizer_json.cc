// WriteTokenizerJson writes byte-level BPE, with all the keys that Hugging Face's tokenizers write.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "weft/text/byte_alphabet.h"
#include "weft/text/tokenizer_json.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

// Appends a new key to an object in constant time: operator[] would search all keys first.
void Append(Json* object, std::string key, Json value) {
  object->get_ref<Json::object_t&>().emplace_back(std::move(key), std::move(value));
}

Json Template(const WrapFormat& format, const Vocabulary& vocabulary, Json* special) {
  Json list = Json::array();
  for (const WrapItem& item : format) {
    if (item.kind != WrapItem::kToken) {
      list.push_back({{"Sequence", {{"id", item.kind == WrapItem::kFirst ? "A" : "B"}, {"type_id", item.segment}}}});
      continue;
    }
    const std::string& text = vocabulary.token(item.id);
    list.push_back({{"SpecialToken", {{"id", text}, {"type_id", item.segment}}}});
    (*special)[text] = {{"id", text}, {"ids", Json::array({item.id})}, {"tokens", Json::array({text})}};
  }
  return list;
}

Json ByteLevel(bool prefix_space) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", prefix_space}, {"trim_offsets", true}, {"use_regex", true}};
}

}  // namespace

std::string WriteTokenizerJson(const BpeModel& model) {
  Json added = Json::array(), vocabulary = Json::object(), merges = Json::array(), special = Json::object();
  for (const SpecialToken& token : model.special) {
    added.push_back({{"id", token.id},
                     {"content", token.text},
                     {"single_word", false},
                     {"lstrip", token.strip_before},
                     {"rstrip", token.strip_after},
                     {"normalized", false},
                     {"special", true}});
  }
  for (int32_t id = 0; id < model.vocabulary.size(); ++id) {
    const std::string& token = model.vocabulary.token(id);
    const bool is_special = std::any_of(model.special.begin(), model.special.end(),
                                        [id](const SpecialToken& special) { return special.id == id; });
    Append(&vocabulary, is_special ? token : ToByteAlphabet(token), id);
  }
  for (const auto& [left, right] : model.merges) {
    merges.push_back(ToByteAlphabet(left) + " " + ToByteAlphabet(right));
  }
  // TemplateProcessing needs a template for pairs too. If the model has none, the second text follows the first.
  const WrapFormat no_pair = {{WrapItem::kFirst}, {WrapItem::kSecond, 0, 1}};
  const bool wraps = model.single.size() > 1 || !model.pair.empty();
  Json post_processor = ByteLevel(model.prefix_space);
  if (wraps) {
    post_processor = {{"type", "TemplateProcessing"},
                      {"single", Template(model.single, model.vocabulary, &special)},
                      {"pair", Template(model.pair.empty() ? no_pair : model.pair, model.vocabulary, &special)}};
    post_processor["special_tokens"] = special;
  }
  const Json json = {{"version", "1.0"},
                     {"truncation", nullptr},
                     {"padding", nullptr},
                     {"added_tokens", added},
                     {"normalizer", nullptr},
                     {"pre_tokenizer", ByteLevel(model.prefix_space)},
                     {"post_processor", post_processor},
                     {"decoder", ByteLevel(model.prefix_space)},
                     {"model",
                      {{"type", "BPE"},
                       {"dropout", nullptr},
                       {"unk_token", nullptr},
                       {"continuing_subword_prefix", nullptr},
                       {"end_of_word_suffix", nullptr},
                       {"fuse_unk", false},
                       {"byte_fallback", false},
                       {"ignore_merges", model.whole_words},
                       {"vocab", vocabulary},
                       {"merges", merges}}}};
  return json.dump(2) + "\n";
}

}  // namespace weft
