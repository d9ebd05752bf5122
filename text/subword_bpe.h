// Byte-pair encoding of words as subword-nmt does it (Sennrich et al. 2016): a word's characters, the last with an
// end-of-word marker, are merged; all but the last of its pieces are written with "@@" behind.
//
//   WEFT_ASSIGN_OR_RETURN(const SubwordBpe bpe, SubwordBpe::Create(LearnSubwordMerges(text, 1000)));
//   bpe.Apply("iron cement")                             // "ir@@ on c@@ ement"
#ifndef WEFT_TEXT_SUBWORD_BPE_H_
#define WEFT_TEXT_SUBWORD_BPE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/text/bpe_merges.h"
#include "weft/text/byte_level_bpe.h"
#include "weft/text/vocabulary.h"

namespace weft {

// Merges of the words in `text`, which spaces and line breaks separate: at most `merges`, of pairs that are there
// twice. InvalidArgument if the text isn't UTF-8.
absl::StatusOr<std::vector<TokenPair>> LearnSubwordMerges(absl::string_view text, int64_t merges);

// The file in which they are kept: "#version: 0.2", then a line "th e</w>" for each.
std::string WriteSubwordMerges(const std::vector<TokenPair>& merges);
absl::StatusOr<std::vector<TokenPair>> ReadSubwordMerges(absl::string_view file);

class SubwordBpe {
 public:
  // InvalidArgument if a merge is there twice.
  static absl::StatusOr<SubwordBpe> Create(const std::vector<TokenPair>& merges);

  // The pieces of a word, without marker. InvalidArgument if it isn't UTF-8.
  absl::StatusOr<std::vector<std::string>> Split(absl::string_view word) const;
  // The pieces of the words in a line, with a space between two, and "@@" where a word goes on.
  absl::StatusOr<std::string> Apply(absl::string_view line) const;

 private:
  Vocabulary symbols_;
  MergeTable merges_;
};

}  // namespace weft

#endif  // WEFT_TEXT_SUBWORD_BPE_H_
