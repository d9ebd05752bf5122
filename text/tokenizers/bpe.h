// Bpe is byte-pair encoding: it merges neighbouring tokens of a word, lowest rank first. GPT-2 begins with the bytes of
// a word. Llama 2 and Gemma begin with its characters; a character that is not in the vocabulary becomes the tokens of
// its bytes, or the unknown token.
//
//   WEFT_ASSIGN_OR_RETURN(BpeModel model, LearnByteLevelBpe(text, {.vocabulary = 8000}));   // learn/learn_tokenizer.h
//   WEFT_ASSIGN_OR_RETURN(const auto tokenizer, Bpe::Create(std::move(model)));
//   tokenizer->Encode("Hello world")                     // "Hello" " world"
//
// LoadTokenizer (load_tokenizer.h) reads published models. A MergeTable merges the tokens of one word:
//
//   MergeTable merges;
//   merges.Add(l, o, {.rank = 0, .id = lo});
//   merges.Add(lo, w, {.rank = 1, .id = low});
//   std::vector<int32_t> ids = {l, o, w};
//   merges.Apply(&ids);                                  // {low}
#ifndef WEFT_TEXT_TOKENIZERS_BPE_H_
#define WEFT_TEXT_TOKENIZERS_BPE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/core/random.h"
#include "weft/text/tokenizers/pipeline.h"
#include "weft/text/tokenizers/tokenizer.h"
#include "weft/text/tokenizers/vocabulary.h"

namespace weft {

struct Merge {
  int32_t rank;  // the lowest rank is applied first; of equal ranks, the leftmost pair
  int32_t id;    // the token that replaces the two
};

class MergeTable {
 public:
  // Adds the merge of a pair. Returns false, and changes nothing, if the pair has a merge already.
  bool Add(int32_t left, int32_t right, Merge merge) { return merges_.emplace(Key(left, right), merge).second; }
  const Merge* Find(int32_t left, int32_t right) const {
    const auto found = merges_.find(Key(left, right));
    return found == merges_.end() ? nullptr : &found->second;
  }
  // Merges neighbouring `ids` of a word, lowest rank first, until no pair has a merge. Takes O(n log n) for n ids.
  void Apply(std::vector<int32_t>* ids) const;
  // Like Apply, but before each merge, a pair counts only if `keep` returns true for it. Takes O(n²).
  template <class Keep>
  void ApplyIf(std::vector<int32_t>* ids, Keep keep) const {
    while (true) {
      const Merge* best = nullptr;
      size_t position = 0;
      for (size_t i = 0; i + 1 < ids->size(); ++i) {
        const Merge* merge = Find((*ids)[i], (*ids)[i + 1]);
        if (merge == nullptr || !keep() || (best != nullptr && merge->rank >= best->rank)) continue;
        best = merge;
        position = i;
      }
      if (best == nullptr) return;
      (*ids)[position] = best->id;
      ids->erase(ids->begin() + static_cast<std::ptrdiff_t>(position) + 1);
    }
  }

 private:
  static uint64_t Key(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  void ApplyToLong(std::vector<int32_t>* ids) const;

  absl::flat_hash_map<uint64_t, Merge> merges_;
};

using TokenPair = std::pair<std::string, std::string>;

struct BpeModel {
  Vocabulary vocabulary;            // unless `characters`: tokens as bytes, " the", not "Ġthe"
  std::vector<TokenPair> merges;    // lowest rank first; both tokens and the merged one are in the vocabulary
  std::vector<float> scores;        // by id, in place of `merges`: each way to cut a token of ordinary text into two
                                    // others is a merge, the highest score first
  std::vector<AddedToken> special;  // and other added tokens
  bool whole_words = false;         // a word that is in the vocabulary is one token, whatever the merges give
  std::optional<int32_t> unknown;   // the token of bytes or characters that are not in the vocabulary; without it they
                                    // are errors
  bool fuse_unknown = false;        // unknown ones that follow each other in a word are one token
  Pipeline pipeline;                // unless `characters`, besides the split into words; decoders get joined texts
  WrapFormat single = {{WrapItem::kFirst}}, pair;

  bool characters = false;  // words begin as characters, not as bytes
  // Only without `characters`:
  bool prefix_space = false;  // puts ' ' before a text that doesn't begin with ' '
  bool gpt2_words = true;     // splits texts, or what pipeline.pre_tokenizers give, into GPT-2's words
  // Only with `characters`:
  bool byte_fallback = false;  // the tokens of a character's bytes, such as "<0x0A>", go before the unknown token
  std::string prefix, suffix;  // before each character of a word but the first, "##", and after the last, "</w>"; a
                               // merge drops the prefix of its right token
  bool keeps_unknown = false;  // Decode has the text of the unknown token
};

class Bpe final : public PipelineTokenizer {
 public:
  // Returns InvalidArgument if a merge occurs twice, or if the vocabulary lacks its left, right or merged token:
  // "merge 12, 'a' 'b': 'ab' is not in the vocabulary".
  static absl::StatusOr<std::unique_ptr<Bpe>> Create(BpeModel model);

  const Vocabulary& vocabulary() const override { return model_.vocabulary; }
  const BpeModel& model() const { return model_; }
  bool SetPrefixSpace(bool space) override;
  std::unique_ptr<Tokenizer> WithDropout(double probability, const RandomStream& random) const override;

 protected:
  absl::Status AppendWord(absl::string_view word, std::vector<int32_t>* ids) const override;

 private:
  explicit Bpe(BpeModel model);

  BpeModel model_;
  MergeTable merges_;
  std::array<int32_t, 256> byte_ids_;  // of the token of each byte, with `characters` "<0x0A>"; -1: none
  double dropout_ = 0;                 // probability with which a merge is left out
  RandomStream random_;
  mutable uint64_t drawn_ = 0;  // the index of the next number of `random_`
};

// The ids of the tokens "<0x00>" to "<0xFF>", which stand for bytes. An id is -1 if the vocabulary has no such token.
std::array<int32_t, 256> ByteTokens(const Vocabulary& vocabulary);
// Appends the tokens of the bytes of `text`. Returns false, and appends nothing, if a byte has no token.
bool AppendBytes(const std::array<int32_t, 256>& tokens, absl::string_view text, std::vector<int32_t>* ids);

}  // namespace weft

#endif  // WEFT_TEXT_TOKENIZERS_BPE_H_
