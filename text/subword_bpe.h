// SubwordBpe splits words into pieces as subword-nmt does (Sennrich et al. 2016). It merges the characters of a word;
// the last character carries an end-of-word marker. In the output, "@@" follows each piece except the last of a word.
//
//   WEFT_ASSIGN_OR_RETURN(const std::vector<TokenPair> merges, LearnSubwordMerges(text, 1000));
//   WEFT_ASSIGN_OR_RETURN(const SubwordBpe bpe, SubwordBpe::Create(merges));
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

// Learns at most `merges` merges from the words of `text`, which are separated by spaces and line breaks. A merged pair
// must occur at least twice. Returns InvalidArgument if the text is not UTF-8.
absl::StatusOr<std::vector<TokenPair>> LearnSubwordMerges(absl::string_view text, int64_t merges);

// These functions write and read the merges file of subword-nmt: "#version: 0.2", then one merge a line: "th e</w>".
std::string WriteSubwordMerges(const std::vector<TokenPair>& merges);
absl::StatusOr<std::vector<TokenPair>> ReadSubwordMerges(absl::string_view file);

class SubwordBpe {
 public:
  // Returns InvalidArgument if a merge occurs twice.
  static absl::StatusOr<SubwordBpe> Create(const std::vector<TokenPair>& merges);

  // Returns the pieces of a word, without markers, or InvalidArgument if the word is not UTF-8.
  absl::StatusOr<std::vector<std::string>> Split(absl::string_view word) const;
  // Returns the pieces of all words in a line, separated by spaces, with "@@" after each piece except a word's last.
  // Returns InvalidArgument if the line is not UTF-8.
  absl::StatusOr<std::string> Apply(absl::string_view line) const;

 private:
  Vocabulary symbols_;
  MergeTable merges_;
};

}  // namespace weft

#endif  // WEFT_TEXT_SUBWORD_BPE_H_
