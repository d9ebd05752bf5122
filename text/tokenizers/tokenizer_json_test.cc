#include "weft/text/tokenizers/tokenizer_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "weft/base/json.h"
#include "weft/text/learn/learn_tokenizer.h"
#include "weft/text/tokenizers/character_tokenizer.h"

namespace weft {
namespace {

using Json = nlohmann::json;

Json WordPieceJson() {
  return Json::parse(R"({
    "version": "1.0",
    "truncation": {"max_length": 2, "strategy": "LongestFirst", "stride": 0},
    "padding": {"strategy": {"Fixed": 128}, "pad_id": 0},
    "added_tokens": [{"id": 0, "special": true, "content": "[UNK]"}, {"id": 1, "special": true, "content": "<B>"},
                     {"id": 5, "special": true, "content": "<M>", "lstrip": true}],
    "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null,
                   "lowercase": false},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": {"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "<B>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
      "pair": [{"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "<B>", "type_id": 2}},
               {"Sequence": {"id": "A", "type_id": 0}}],
      "special_tokens": {"<B>": {"id": "<B>", "ids": [1, 1], "tokens": ["<B>", "<B>"]}}},
    "decoder": {"type": "WordPiece", "prefix": "@@"},
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "@@",
              "max_input_chars_per_word": 3, "vocab": {"[UNK]": 0, "<B>": 1, "É": 2, "a": 3, "@@b": 4}}
  })");
}

TEST(TokenizerJsonTest, ReadsWordPiece) {
  const auto tokenizer = ReadTokenizerJson(WordPieceJson());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->vocabulary_size(), 6);
  EXPECT_EQ(*(*tokenizer)->Encode("É ab abb abbb A"), (std::vector<int32_t>{2, 3, 4, 3, 4, 4, 0, 0}));
  EXPECT_EQ((*tokenizer)->Wrap({3, 4}).ids, (std::vector<int32_t>{1, 1, 3, 4}));
  const auto pair = (*tokenizer)->WrapPair({3}, {4});
  ASSERT_TRUE(pair.ok());
  EXPECT_EQ(pair->ids, (std::vector<int32_t>{4, 1, 1, 3}));
  EXPECT_EQ(pair->segments, (std::vector<int32_t>{1, 2, 2, 0}));
  EXPECT_EQ(*(*tokenizer)->Encode("a <M>a"), (std::vector<int32_t>{3, 5, 3}));
  EXPECT_EQ(*(*tokenizer)->Decode({1, 3, 4, 2}), "ab É");
}

// Decode replaces bytes that are no characters by U+FFFD.
TEST(TokenizerJsonTest, TokensOfBytesHaveTheseBytes) {
  Json json = Json::parse(R"({
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "ByteLevel", "add_prefix_space": false},
                                                            {"type": "Digits", "individual_digits": true}]},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "vocab": {"â": 0, "Ĥ": 1, "a": 2, "ï": 3}, "merges": []}
  })");
  const auto level = ReadTokenizerJson(json);
  ASSERT_TRUE(level.ok()) << level.status();
  EXPECT_EQ(*(*level)->Decode({0}), "\uFFFD");
  const char* const texts[] = {"\xE2", "\x82", "a", "\xEF"};
  for (int32_t id = 0; id < 4; ++id) EXPECT_EQ((*level)->TokenText(id), texts[id]);
  json.erase("pre_tokenizer");
  json["decoder"]["type"] = "ByteFallback";
  json["model"]["byte_fallback"] = true;
  json["model"]["vocab"] = {{"<0xE2>", 0}, {"<0x82>", 1}, {"a", 2}, {"<0xEF>", 3}};
  const auto fallback = ReadTokenizerJson(json);
  ASSERT_TRUE(fallback.ok()) << fallback.status();
  EXPECT_EQ(*(*fallback)->Decode({0}), "\uFFFD");
  for (int32_t id = 0; id < 4; ++id) EXPECT_EQ((*fallback)->TokenText(id), texts[id]);
}

Json BpeJson() {
  return Json::parse(R"({
    "added_tokens": [{"id": 4, "special": true, "content": "<s>"}, {"id": 5, "special": true, "content": "</s>"}],
    "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true},
    "post_processor": {"type": "RobertaProcessing", "sep": ["</s>", 5], "cls": ["<s>", 4]},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": "",
              "vocab": {"a": 0, "Ġ": 1, "Ġa": 2, "aĠa": 3, "<s>": 4}, "merges": ["Ġ a"]}
  })");
}

TEST(TokenizerJsonTest, ReadsByteLevelBpe) {
  Json json = BpeJson();
  auto tokenizer = ReadTokenizerJson(json);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(*(*tokenizer)->Encode("a a"), (std::vector<int32_t>{0, 2}));
  EXPECT_EQ((*tokenizer)->special_tokens().end, 5);
  EXPECT_EQ((*tokenizer)->Wrap({0}).ids, (std::vector<int32_t>{4, 0, 5}));
  EXPECT_EQ((*tokenizer)->WrapPair({0}, {2})->ids, (std::vector<int32_t>{4, 0, 5, 5, 2, 5}));
  EXPECT_EQ(*(*tokenizer)->Encode("a </s> a"), (std::vector<int32_t>{0, 1, 5, 2}));
  json["added_tokens"][1]["lstrip"] = true;
  EXPECT_EQ(*(*ReadTokenizerJson(json))->Encode("a </s> a"), (std::vector<int32_t>{0, 5, 2}));
  json["added_tokens"][1]["rstrip"] = true;
  EXPECT_EQ(*(*ReadTokenizerJson(json))->Encode("a </s> a"), (std::vector<int32_t>{0, 5, 0}));
  json["post_processor"]["type"] = "BertProcessing";
  EXPECT_EQ((*ReadTokenizerJson(json))->WrapPair({0}, {2})->segments, (std::vector<int32_t>{0, 0, 0, 1, 1}));
  json["post_processor"] = {{"type", "ByteLevel"}};
  json["model"]["merges"] = Json::parse(R"([["Ġ", "a"]])");  // the form that newer versions write
  json["pre_tokenizer"]["add_prefix_space"] = true;
  tokenizer = ReadTokenizerJson(json);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(*(*tokenizer)->Encode("a"), std::vector<int32_t>{2});
  EXPECT_EQ((*tokenizer)->Wrap({0}).ids, std::vector<int32_t>{0});
}

// tokenizers 0.23.3 gives these ids. "zap" is only an added token, and "a" and "É" are also the model's tokens.
TEST(TokenizerJsonTest, OrdinaryTextBecomesNoTokenThatIsOnlyAdded) {
  Json json = WordPieceJson();
  json["normalizer"]["lowercase"] = true;
  json["model"]["vocab"] = {{"[UNK]", 0}, {"<B>", 1}, {"e", 2}, {"a", 3}, {"@@b", 4}};
  json["added_tokens"].push_back({{"id", 6}, {"content", "zap"}, {"single_word", true}});
  json["added_tokens"].push_back({{"id", 7}, {"content", "hid"}, {"special", true}});
  json["added_tokens"].push_back({{"id", 3}, {"content", "a"}, {"special", true}, {"single_word", true}});
  const auto pieces = ReadTokenizerJson(json);
  ASSERT_TRUE(pieces.ok()) << pieces.status();
  EXPECT_EQ(*(*pieces)->Encode("zap ZAP zapb hid HID hidb a ab"), (std::vector<int32_t>{6, 0, 0, 7, 0, 7, 0, 3, 3, 4}));
  EXPECT_EQ(*(*pieces)->Encode("zap hid a", /*special=*/false), (std::vector<int32_t>{6, 0, 3}));

  json = BpeJson();
  json["model"]["ignore_merges"] = true;
  json["model"]["vocab"].update(Json{{"Ã©", 5}, {"Ã", 6}, {"©", 7}, {",", 8}});
  json["added_tokens"] = Json::parse(R"([{"id": 9, "content": "</s>"}, {"id": 2, "content": "Ġa"},
      {"id": 7, "content": "©"}, {"id": 10, "content": " a"}, {"id": 11, "content": "é", "special": true, "lstrip": true},
      {"id": 12, "content": "aa", "single_word": true}, {"id": 13, "content": "aaa", "special": true}])");
  const auto bytes = ReadTokenizerJson(json);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*(*bytes)->Encode("a a aé Ġa ©"), (std::vector<int32_t>{0, 10, 10, 11, 1, 2, 1, 7}));
  EXPECT_EQ(*(*bytes)->Encode("é aa,aaa", /*special=*/false), (std::vector<int32_t>{5, 10, 0, 8, 0, 0, 0}));
}

TEST(TokenizerJsonTest, NamesWhatItCannotUse) {
  const struct {
    bool bpe;
    const char *at, *value, *message;
  } rows[] = {
      {true, "/model/type", R"("Words")", "model: its type is 'Words', not BPE, Unigram, WordLevel or WordPiece"},
      {true, "/model/vocab", "null", "model.vocab: not an object of tokens and their ids"},
      {true, "/model/vocab/a", "0.5", "model.vocab: the id of 'a' is 0.5, not a whole number below 2^63"},
      {true, "/model/vocab/a", "12", "model.vocab: token 'a' has id 12, but there are 6 tokens"},
      {true, "/model/vocab/<s>", "3", "model.vocab: token '<s>' has id 3, but in added_tokens 4"},
      {true, "/model/vocab/日", "6", "model.vocab: token '日': U+65E5 '日' stands for no byte"},
      {true, "/model/merges", "null", "model.merges: it is not a list"},
      {true, "/model/merges/0", R"("Ġa")", "model.merges: entry 0: 'Ġa' is not two tokens with a space between them"},
      {true, "/model/merges/0", "7", "model.merges: entry 0: 7 is not two tokens"},
      {true, "/model/merges/0", R"("a b")", "model.merges: merge 0, 'a' 'b': 'b' is not in the vocabulary"},
      {true, "/model/type", R"("Unigram")", "model.vocab: it is not a list"},
      {true, "/model/dropout", "0.1", "model: dropout: 0.1 is not supported"},
      {true, "/model/byte_fallback", "3", "model: byte_fallback: 3 is not of the right type"},
      {true, "/model/ignore_merges", "1", "model: ignore_merges: 1 is not of the right type"},
      {true, "/normalizer", R"({"type":"X"})",
       "normalizer: its type is 'X', not one of BertNormalizer, ByteLevel, Lowercase, NFC, NFD, NFKC, NFKD, Nmt, "
       "Precompiled, Prepend, Replace, Strip, StripAccents"},
      {true, "/normalizer", R"({"type":"Precompiled","precompiled_charsmap":"*"})",
       "normalizer: Precompiled: precompiled_charsmap: it is not base64"},
      {true, "/normalizer", R"({"type":"Replace","content":""})",
       "normalizer: Replace: pattern: null is not supported"},
      {true, "/pre_tokenizer/add_prefix_space", "1", "pre_tokenizer: add_prefix_space: 1 is not of the right type"},
      {true, "/pre_tokenizer", R"({"type":"Metaspace","add_prefix_space":false,"prepend_scheme":"first"})",
       "pre_tokenizer: Metaspace: prepend_scheme: first beside add_prefix_space: false is not supported"},
      {true, "/decoder", R"({"type":"Replace","pattern":{"Regex":"a"},"content":""})",
       R"(decoder: Replace: pattern: {"Regex":"a"} is not supported)"},
      {true, "/decoder", R"({"type":"Strip","content":""})", "decoder: Strip: content: an empty one is not supported"},
      {true, "/post_processor/sep", "[5]", "post_processor: cls and sep are not lists of a token and its id"},
      {true, "/post_processor/sep/1", "6", "post_processor: id 6 is not in 0 .. 5"},
      {true, "/added_tokens", "{}", "added_tokens: it is not a list"},
      {true, "/added_tokens/1/id", "null", "added_tokens[1]: it has no id"},
      {true, "/added_tokens/1/content", "null", "added_tokens[1]: it has no content"},
      {true, "/added_tokens/1/single_word", "1", "added_tokens[1]: single_word: 1 is not of the right type"},
      {false, "/model/unk_token", R"("<unk>")", "model: the vocabulary does not have '<unk>'"},
      {false, "/model/max_input_chars_per_word", R"("3")",
       R"(model: max_input_chars_per_word: "3" is not of the right type)"},
      {false, "/model/max_input_chars_per_word", "1001", "model: max_input_chars_per_word is 1001, more than 1000"},
      {false, "/post_processor/type", R"("Sequence")", "post_processor: a Sequence of nothing is not supported"},
      {false, "/post_processor/single/1/Sequence/id", R"("C")", "post_processor: its sequence 'C' is neither A nor B"},
      {false, "/post_processor/special_tokens", "{}", "post_processor: special token '<B>' has no ids"},
      {false, "/post_processor/special_tokens/<B>/ids/0", "77", "post_processor: id 77 is not in 0 .. 5"},
      {false, "/post_processor/special_tokens/<B>/ids/0", "4294967297", "post_processor: 4294967297 is not an id"},
  };
  for (const auto& row : rows) {
    Json json = row.bpe ? BpeJson() : WordPieceJson();
    json[Json::json_pointer(row.at)] = Json::parse(row.value);
    EXPECT_EQ(ReadTokenizerJson(json).status().message(), row.message);
  }
  EXPECT_FALSE(ReadTokenizerJson(Json::object()).ok());
  EXPECT_FALSE(ReadTokenizerJson({{"model", 7}}).ok());
}

TEST(TokenizerJsonTest, WritesWhatItReads) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "the cat, " + std::to_string(i) + " naïve\n dogs; ";
  absl::StatusOr<BpeModel> model =
      LearnByteLevelBpe(text, {.vocabulary = 280, .special_tokens = std::vector<std::string>{"<pad>", "<s>", "日"}});
  ASSERT_TRUE(model.ok()) << model.status();
  const auto read = [](const BpeModel& model) {
    const auto json = ParseLargeJsonObject(WriteTokenizerJson(model));
    EXPECT_TRUE(json.ok()) << json.status();
    auto tokenizer = ReadTokenizerJson(*json);
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
    return *std::move(tokenizer);
  };
  const auto tokenizer = Bpe::Create(*model);
  auto again = read(*model);
  EXPECT_EQ(*again->Encode(text), *(*tokenizer)->Encode(text));
  EXPECT_EQ(again->special_tokens().padding, 0);
  EXPECT_EQ(*again->DecodeWithSpecial({2}), "日");
  EXPECT_EQ(again->Wrap({5}).ids, std::vector<int32_t>{5});
  model->single = BertSingle(1, 2);
  model->pair = BertPair(1, 2);
  again = read(*model);
  EXPECT_EQ(again->Wrap({5}).ids, (std::vector<int32_t>{1, 5, 2}));
  EXPECT_EQ(again->WrapPair({5}, {6})->segments, (std::vector<int32_t>{0, 0, 0, 1, 1}));
  EXPECT_EQ(again->WrapPair({5}, {6})->ids, (std::vector<int32_t>{1, 5, 2, 6, 2}));
  EXPECT_EQ(WriteTokenizerJson(dynamic_cast<const Bpe&>(*again).model()), WriteTokenizerJson(*model));
}

TEST(TokenizerJsonTest, AWordThatAWordLevelLacksNeedsAnUnknownToken) {
  Json json = {{"model", {{"type", "WordLevel"}, {"vocab", {{"a", 0}, {"b c", 1}}}}}};
  EXPECT_EQ(*(*ReadTokenizerJson(json))->Encode("b c"), std::vector<int32_t>{1});
  EXPECT_EQ((*ReadTokenizerJson(json))->Encode("c").status().message(),
            "at byte 0: the vocabulary has neither 'c' nor '<unk>'");
  json["model"]["unk_token"] = "a";
  EXPECT_EQ(*(*ReadTokenizerJson(json))->Encode(std::string(2000, 'c')), std::vector<int32_t>{0});
}

// tests/tokenizers/draw.py compares such a file with `tokenizers`.
TEST(PublishedCharactersTest, HaveTheSameIds) {
  const auto own = CharacterTokenizer::FromText("\n\r ab.é\u180E\u0301日🙂");
  ASSERT_TRUE(own.ok());
  const auto published = PublishedCharacters(own->ToJson());
  ASSERT_TRUE(published.has_value());
  EXPECT_EQ(
      Json::parse(*published)["pre_tokenizer"],
      Json::parse(R"({"type": "Split", "pattern": {"Regex": ".|\\n"}, "behavior": "Isolated", "invert": false})"));
  const auto tokenizer = ReadTokenizerJson(Json::parse(*published));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->vocabulary_size(), own->vocabulary_size());
  for (const char* text : {"", " ", "ab a", "\r\n\n\r\n  a", "\u180E\u180Ea\u0301 é🙂🙂日."}) {
    EXPECT_EQ(*(*tokenizer)->Encode(text), *own->Encode(text)) << text;
    EXPECT_EQ(*(*tokenizer)->Decode(*own->Encode(text)), text);
  }
  EXPECT_EQ((*tokenizer)->Encode("ab\tb").status().message(),
            "at byte 2: the vocabulary has neither '\\t' nor '<unk>'");
  EXPECT_EQ(PublishedCharacters(ByteTokenizer::ToJson()), std::nullopt);
  EXPECT_EQ(PublishedCharacters(*published), std::nullopt);
  EXPECT_EQ(PublishedCharacters("[]"), std::nullopt);
}

TEST(PublishedCharactersTest, HaveSpecialTokensFirst) {
  const auto own = CharacterTokenizer::FromText("我爱学习 ab");
  ASSERT_TRUE(own.ok());
  const auto published = PublishedCharacters(own->ToJson(), {"<pad>", "<s>", "</s>", "<unk>"});
  ASSERT_TRUE(published.has_value());
  const auto tokenizer = ReadTokenizerJson(Json::parse(*published));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const SpecialTokens& special = (*tokenizer)->special_tokens();
  EXPECT_EQ(special.padding, 0);
  EXPECT_EQ(special.begin, 1);
  EXPECT_EQ(special.end, 2);
  EXPECT_EQ(special.unknown, 3);
  EXPECT_EQ((*tokenizer)->vocabulary_size(), own->vocabulary_size() + 4);
  EXPECT_EQ((*tokenizer)->Encode("我爱学习")->size(), 4u);
  EXPECT_EQ((*tokenizer)->Encode("a猫b")->at(1), 3);
  EXPECT_EQ(*(*tokenizer)->Decode(*(*tokenizer)->Encode("我爱 a b")), "我爱 a b");
}

}  // namespace
}  // namespace weft
