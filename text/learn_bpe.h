// Learns byte-pair encodings from texts (Sennrich et al. 2016): the most frequent pair of neighbours becomes a token,
// again and again.
//
//   WEFT_ASSIGN_OR_RETURN(BpeModel model, LearnByteLevelBpe(text, {.vocabulary = 8000}));
//   WEFT_ASSIGN_OR_RETURN(const auto tokenizer, ByteLevelBpe::Create(std::move(model)));
#ifndef WEFT_TEXT_LEARN_BPE_H_
#define WEFT_TEXT_LEARN_BPE_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/text/byte_level_bpe.h"

namespace weft {

struct CountedWord {
  std::vector<std::string> symbols;
  int64_t count = 0;
};

struct LearnLimits {
  int64_t merges = std::numeric_limits<int64_t>::max();
  int64_t symbols = std::numeric_limits<int64_t>::max();  // different ones, with those that words begin with
  int64_t least_count = 2;                                // of a pair that is merged
};

// Merges in the order in which they are learnt. Of pairs that are equally frequent, the greatest in byte order goes
// first, as in subword-nmt. The time is that of the merges made, not of the text for each.
std::vector<TokenPair> LearnMerges(const std::vector<CountedWord>& words, const LearnLimits& limits);

struct LearnByteLevelOptions {
  int64_t vocabulary = 0;  // tokens: 256 bytes, merges, special ones
  std::vector<std::string> special = {"<|endoftext|>"};
};

// A byte-level BPE of GPT-2's kind. Ids are those of bytes, then of merges, then of special tokens. There are fewer
// than asked for if no pair is there twice any more. InvalidArgument if the text isn't UTF-8 or the vocabulary too
// small.
absl::StatusOr<BpeModel> LearnByteLevelBpe(absl::string_view text, const LearnByteLevelOptions& options);

}  // namespace weft

#endif  // WEFT_TEXT_LEARN_BPE_H_
