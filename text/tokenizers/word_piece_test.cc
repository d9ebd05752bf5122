#include "weft/text/tokenizers/word_piece.h"

#include <gtest/gtest.h>

#include "weft/text/tokenizers/pipeline_steps.h"
#include "weft/text/tokenizers/tokenizer_json.h"

namespace weft {
namespace {

using Words = std::vector<std::string>;

Words BertWordsOf(const std::string& text, const BertNormalizer& normalizer = {}) {
  const std::string normalized = BertNormalize(text, normalizer);
  const std::vector<absl::string_view> words = BertWords(normalized);
  return {words.begin(), words.end()};
}

TEST(BertWordsTest, MakesTextUniform) {
  const struct {
    std::string text;
    Words words;
  } rows[] = {
      {"", {}},
      {" \t\n\u00A0\u3000", {}},
      {"Hello, World!", {"hello", ",", "world", "!"}},
      {"Élan É", {"elan", "e"}},
      {"e\u0301\u0323", {"e"}},  // combining accents
      {"İstanbul ıI", {"istanbul", "ıi"}},
      {"ÇİĞ", {"cig"}},
      {"a\u200Db\u00ADc", {"abc"}},  // formatting
      {std::string("a\0b\x01"
                   "c\x7F",
                   6),
       {"abc"}},  // controls
      {"a\uFFFDb\uE000c", {"abc"}},
      {"a\tb\rc\nd\u2003e\v\f\u0085f", {"a", "b", "c", "d", "ef"}},
      {"a日本b", {"a", "日", "本", "b"}},
      {"かな한", {"かな\u1112\u1161\u11AB"}},  // kana and Hangul are no ideographs; NFD decomposes syllables
      {"$5^2~x_y|z`", {"$", "5", "^", "2", "~", "x", "_", "y", "|", "z", "`"}},
      {"«a»—b…", {"«", "a", "»", "—", "b", "…"}},
      {"€5 £x", {"€5", "£x"}},  // symbols outside ASCII don't end a word
      {"ΑΣ", {"ασ"}},           // no final sigma
      {"ﬁ ẞ", {"ﬁ", "ß"}},
      // A scan of all code points with tokenizers 0.23.3: these have no category there, or another one.
      {"a\u061Db a\u2E43b a\U00010EADb", {"a\u061Db", "a\u2E43b", "a\U00010EADb"}},  // new punctuation
      {"a\u166Db a\U000111C9b", {"a", "\u166D", "b", "a", "\U000111C9", "b"}},       // old punctuation
      {"a\u0898b a\u0ECEb a\U0001E4EFb", {"a\u0898b", "a\u0ECEb", "a\U0001E4EFb"}},  // new marks
      {"a\u1734b a\u0891b a\U00013430b", {"ab", "a\u0891b", "a\U00013430b"}},        // old mark, new controls
      {"a\U0002B820b a\U0002B920b", {"a\U0002B820b", "a", "\U0002B920", "b"}},       // ideographs
  };
  for (const auto& row : rows) EXPECT_EQ(BertWordsOf(row.text), row.words) << row.text;
}

TEST(BertWordsTest, EachStageCanBeLeftOut) {
  EXPECT_EQ(BertWordsOf("Élan", {.strip_accents = false}), Words{"élan"});
  EXPECT_EQ(BertWordsOf("İ", {.strip_accents = false}), Words{"i\u0307"});
  EXPECT_EQ(BertWordsOf("Élan", {.lowercase = false}), Words{"Elan"});
  EXPECT_EQ(BertWordsOf("Élan", {.strip_accents = false, .lowercase = false}), Words{"Élan"});
  EXPECT_EQ(BertWordsOf("a日b", {.separate_cjk = false}), Words{"a日b"});
  EXPECT_EQ(BertWordsOf("a\u200Db c", {.clean_text = false}), (Words{"a\u200Db", "c"}));
}

std::unique_ptr<WordPiece> Small() {
  auto vocabulary =
      ReadVocabularyText("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nem\n##bed\n##ding\n##s\nbed\n,\nword\n日\n##é\n");
  EXPECT_TRUE(vocabulary.ok()) << vocabulary.status();
  auto tokenizer = WordPiece::Create(BertModel(*std::move(vocabulary)));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

// All words of the maximum length, with a piece of each length that never ends a word: the slowest case there is.
TEST(WordPieceTest, HostileVocabulariesAreBounded) {
  Vocabulary vocabulary = *Vocabulary::Create({"[UNK]", "a", "##a"});
  for (int64_t length = 2; length < kMaxWordLength; ++length) {
    ASSERT_TRUE(vocabulary.Add("##" + std::string(static_cast<size_t>(length), 'a') + "b").ok());
  }
  WordPieceModel model = {.vocabulary = vocabulary, .max_word_length = kMaxWordLength};
  const auto tokenizer = WordPiece::Create(model);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->Encode(std::string(kMaxWordLength, 'a'))->size(), kMaxWordLength);
  model.max_word_length = kMaxWordLength + 1;
  EXPECT_EQ(WordPiece::Create(model).status().message(), "max_input_chars_per_word is 1001, more than 1000");
}

TEST(WordPieceTest, TakesTheLongestPieces) {
  const auto tokenizer = Small();
  const struct {
    std::string text;
    std::vector<int32_t> ids;
  } rows[] = {
      {"", {}},
      {"Embeddings", {5, 6, 7, 8}},
      {"embed, bed,words", {5, 6, 10, 9, 10, 11, 8}},
      {"bedding bedem", {9, 7, 1}},  // one unknown part makes the whole word unknown
      {"x 日日", {1, 12, 12}},
      {std::string(100, 'x'), {1}},
      {"bed" + std::string(49, 's') + std::string(48, 's'), std::vector<int32_t>(98, 8)},
      {"bed" + std::string(98, 's'), {1}},  // 101 characters
      {"[MASK]", {1, 1, 1}},                // special tokens are not parsed
  };
  for (auto row : rows) {
    if (row.ids.size() == 98) row.ids[0] = 9;
    EXPECT_EQ(*tokenizer->Encode(row.text, /*special=*/false), row.ids) << row.text;
  }
  EXPECT_EQ(tokenizer->Encode("bed \xFF").status().message(), "not UTF-8 at byte 4 (0xFF)");
}

TEST(WordPieceTest, KnowsBertsFormat) {
  const auto tokenizer = Small();
  const SpecialTokens& special = tokenizer->special_tokens();
  EXPECT_EQ(special.padding, 0);
  EXPECT_EQ(special.unknown, 1);
  EXPECT_EQ(special.classification, 2);
  EXPECT_EQ(special.separator, 3);
  EXPECT_EQ(special.mask, 4);
  EXPECT_EQ(special.begin, std::nullopt);
  EXPECT_EQ(special.end, std::nullopt);
  EXPECT_EQ(*tokenizer->Encode("bed [MASK]s, [mask]"), (std::vector<int32_t>{9, 4, 1, 10, 1, 1, 1}));
  tokenizer->ReadSpecial(false);
  EXPECT_EQ(*tokenizer->Encode("[MASK]"), (std::vector<int32_t>{1, 1, 1}));
  EXPECT_EQ(tokenizer->TokenText(4), "[MASK]");
  EXPECT_EQ(tokenizer->TokenText(99), "");
  EXPECT_EQ(tokenizer->Wrap({5, 6}).ids, (std::vector<int32_t>{2, 5, 6, 3}));
  EXPECT_EQ(tokenizer->Wrap({}).segments, (std::vector<int32_t>{0, 0}));
  const auto pair = tokenizer->WrapPair({5, 6}, {9});
  ASSERT_TRUE(pair.ok());
  EXPECT_EQ(pair->ids, (std::vector<int32_t>{2, 5, 6, 3, 9, 3}));
  EXPECT_EQ(pair->segments, (std::vector<int32_t>{0, 0, 0, 0, 1, 1}));
}

// The ids are those of tokenizers 0.23.3 with the normalizer Lowercase before BertNormalizer.
TEST(WordPieceTest, LowercasesAllButAddedTokensThatAreNotNormalized) {
  WordPieceModel model = BertModel(*ReadVocabularyText("[UNK]\n[MASK]\nfoo\nFoo\nbar\nBar\nmask\nZed\nYed\ne\nÉ_\né"));
  model.normalizer.lowercase = model.normalizer.strip_accents = false;
  model.special.push_back({.text = "Zed", .id = 7, .normalized = true, .special = false});
  model.special.push_back({.text = "Yed", .id = 8, .special = false});
  model.special.push_back({.text = "É_", .id = 10, .normalized = true, .special = false});
  const auto tokenizer = *WordPiece::Create(model);
  EXPECT_EQ(*tokenizer->Encode("[MASK] Foo Zed zed Yed yed É_ é_"),
            (std::vector<int32_t>{1, 3, 7, 0, 8, 0, 10, 11, 0}));
  tokenizer->Lowercase();
  EXPECT_EQ(*tokenizer->Encode("[MASK] Foo Zed zed Yed yed É_ é_"), (std::vector<int32_t>{1, 2, 7, 7, 8, 0, 10, 10}));
  EXPECT_EQ(*tokenizer->Encode("É [Mask]"), (std::vector<int32_t>{11, 0, 6, 0}));
  EXPECT_EQ(tokenizer->special_tokens().mask, 1);
}

TEST(WordPieceTest, Decodes) {
  const auto tokenizer = Small();
  // tokenizers 0.23.3 gives these texts.
  EXPECT_EQ(*tokenizer->Decode({2, 5, 6, 7, 8, 10, 9, 1, 3, 0, 0}), "embeddings, bed");
  EXPECT_EQ(*tokenizer->DecodeWithSpecial({2, 9, 1, 3}), "[CLS] bed [UNK] [SEP]");
  EXPECT_EQ(*tokenizer->Decode({8}), "##s");
  EXPECT_EQ(tokenizer->Decode({5, 14}).status().message(), "id 14, at position 1, is not in 0 .. 13");
}

// The ids and texts are those of transformers 5.24's BertTokenizer.
TEST(WordPieceTest, TheLastOfEqualLinesAndNoBlankLineIsAToken) {
  const struct {
    std::string text, note, decoded;
    std::vector<int32_t> ids;
  } rows[] = {
      {"[UNK]\na \n##b\na\nc\n##b\nd\n",
       "line 4 repeats the token 'a', whose id is now 3 and not 1",
       "a cb d",
       {3, 3, 5, 4, 0, 6}},
      {"[UNK]\na\n\n##b\nc\n\n", "line 3 is blank, so id 2 has no token", "ab c", {1, 1, 3, 4, 0, 0}},
      {"[UNK]\na\n##b\nc\n\n", "", "ab c", {1, 1, 2, 3, 0, 0}},
  };
  for (const auto& row : rows) {
    std::string note;
    auto vocabulary = ReadVocabularyText(row.text, &note);
    ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
    EXPECT_EQ(note, row.note);
    const auto tokenizer = *WordPiece::Create(BertModel(*std::move(vocabulary)));
    EXPECT_EQ(*tokenizer->Encode("a ab c x d"), row.ids);
    std::vector<int32_t> all;
    while (static_cast<int64_t>(all.size()) < tokenizer->vocabulary_size())
      all.push_back(static_cast<int32_t>(all.size()));
    EXPECT_EQ(*tokenizer->Decode(all), row.decoded);
  }
}

TEST(WordPieceTest, RefusesVocabulariesThatCannotBeUsed) {
  const struct {
    std::string text, message;
  } rows[] = {
      {"", "it has no tokens"},
      {"\n \n", "it has no tokens"},
      {"a\nb\xFF\n", "line 2: not UTF-8 at byte 1 (0xFF)"},
  };
  for (const auto& row : rows) EXPECT_EQ(ReadVocabularyText(row.text).status().message(), row.message);
  EXPECT_EQ(ReadVocabularyText("a\r\nb")->token(1), "b");
  EXPECT_EQ(ReadVocabularyText("a\nb\n\n\n")->size(), 2);
  EXPECT_EQ(WordPiece::Create(BertModel(*ReadVocabularyText("a\nb"))).status().message(),
            "the vocabulary does not have '[UNK]'");
}

}  // namespace
}  // namespace weft
