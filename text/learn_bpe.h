// These functions learn byte-pair encodings from texts (Sennrich et al. 2016). They merge the most frequent pair of
// neighbouring tokens into a new token, again and again.
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
  int64_t symbols = std::numeric_limits<int64_t>::max();  // distinct symbols, including the initial ones
  int64_t min_count = 2;                                  // how often a pair must occur to be merged
};

// Returns the merges in the order in which they are learnt. Of equally frequent pairs, the last in byte order is merged
// first, as in subword-nmt.
std::vector<TokenPair> LearnMerges(const std::vector<CountedWord>& words, const LearnLimits& limits);

struct LearnByteLevelOptions {
  int64_t vocabulary = 0;  // maximum number of tokens: 256 bytes, merges and special tokens
  std::vector<std::string> special = {"<|endoftext|>"};
};

// Learns a byte-level BPE of GPT-2's kind. Ids 0 to 255 are bytes; merged tokens follow, then special tokens. If no
// pair occurs twice any more, the vocabulary stays below its maximum. Returns InvalidArgument if `text` or a special
// token is not UTF-8, or if a special token equals another token. Also returns InvalidArgument if the bytes and special
// tokens exceed `options.vocabulary`.
absl::StatusOr<BpeModel> LearnByteLevelBpe(absl::string_view text, const LearnByteLevelOptions& options);

}  // namespace weft

#endif  // WEFT_TEXT_LEARN_BPE_H_
