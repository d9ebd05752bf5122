// ByteLevelBpe is the byte-pair encoding of GPT-2: it splits a text into words and merges the bytes of each word.
//
//   WEFT_ASSIGN_OR_RETURN(BpeModel model, LearnByteLevelBpe(text, {.vocabulary = 8000}));   // learn/learn_tokenizer.h
//   WEFT_ASSIGN_OR_RETURN(const auto tokenizer, ByteLevelBpe::Create(std::move(model)));
//   tokenizer->Encode("Hello world")                     // "Hello" " world"
//
// LoadTokenizer (load_tokenizer.h) reads published models.
#ifndef WEFT_TEXT_TOKENIZERS_BYTE_LEVEL_BPE_H_
#define WEFT_TEXT_TOKENIZERS_BYTE_LEVEL_BPE_H_

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/text/tokenizers/bpe_files.h"
#include "weft/text/tokenizers/bpe_merges.h"
#include "weft/text/tokenizers/tokenizer.h"
#include "weft/text/tokenizers/vocabulary.h"

namespace weft {

struct BpeModel {
  Vocabulary vocabulary;            // tokens as bytes: " the", not "Ġthe"
  std::vector<TokenPair> merges;    // lowest rank first; both tokens and their concatenation are in the vocabulary
  std::vector<AddedToken> special;  // and other added tokens
  bool prefix_space = false;        // puts ' ' before a text that doesn't begin with ' '
  bool whole_words = false;         // a word that is in the vocabulary is one token, whatever the merges give
  std::optional<int32_t> unknown;   // the token of bytes that are not in the vocabulary; without it they are errors
  bool fuse_unknown = false;        // unknown bytes that follow each other in a word are one token
  WrapFormat single = {{WrapItem::kFirst}}, pair;
};

class ByteLevelBpe final : public Tokenizer {
 public:
  // Returns InvalidArgument if a merge occurs twice, or if the vocabulary lacks its left, right or merged token: "merge
  // 12, 'a' 'b': 'ab' is not in the vocabulary".
  static absl::StatusOr<std::unique_ptr<ByteLevelBpe>> Create(BpeModel model);

  int64_t vocabulary_size() const override { return model_.vocabulary.size(); }
  const BpeModel& model() const { return model_; }
  bool SetPrefixSpace(bool space) override {
    model_.prefix_space = space;
    return true;
  }

 protected:
  absl::StatusOr<std::vector<int32_t>> EncodeOrdinary(absl::string_view text) const override;
  std::string Join(absl::Span<const int32_t> ids) const override;

 private:
  explicit ByteLevelBpe(BpeModel model);
  absl::Status AppendWord(absl::string_view word, std::vector<int32_t>* ids) const;

  BpeModel model_;
  MergeTable merges_;
  std::array<int32_t, 256> byte_ids_;  // -1 if the vocabulary has no token for the byte
};

}  // namespace weft

#endif  // WEFT_TEXT_TOKENIZERS_BYTE_LEVEL_BPE_H_
