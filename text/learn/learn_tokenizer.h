// LearnTokenizer learns a tokenizer from texts, of a kind that Hugging Face's `tokenizers` or `sentencepiece` can read.
//
//   LearnTokenizerOptions options = {.kind = "wordpiece", .vocabulary = 8000};
//   WEFT_ASSIGN_OR_RETURN(const LearntTokenizer learnt, LearnTokenizer({"a.txt", "b.txt.gz"}, options));
//   WEFT_RETURN_IF_ERROR(WriteTokenizerFolder("tokenizer", learnt.file));       // load_tokenizer.h
//
// Each kind is a row of the table in learn_tokenizer.cc. tokenizers/bpe.h has an example of LearnByteLevelBpe.
#ifndef WEFT_TEXT_LEARN_LEARN_TOKENIZER_H_
#define WEFT_TEXT_LEARN_LEARN_TOKENIZER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/text/tokenizers/bpe.h"
#include "weft/text/tokenizers/load_tokenizer.h"

namespace weft {

// An optional setting that has no value has the default of the kind. A kind that lacks a setting refuses its values.
struct LearnTokenizerOptions {
  std::string kind = "byte-level-bpe";
  int64_t vocabulary = 30000;  // maximum number of tokens, including the special ones
  // Special tokens, which get the first ids. By default <|endoftext|> in byte-level-bpe, and [PAD], [UNK], [CLS], [SEP]
  // and [MASK] in wordpiece. SentencePiece's models have <unk>, <s> and </s> before these tokens.
  std::optional<std::vector<std::string>> special_tokens;
  int threads = 1;  // the result is the same with any number

  // Of byte-level-bpe and wordpiece:
  std::optional<int64_t> min_frequency;  // how often a pair of tokens must occur to become a token; 2
  // Of wordpiece:
  std::optional<bool> lowercase;          // true
  std::optional<bool> strip_accents;      // the value of `lowercase`, as in BERT
  std::optional<int64_t> limit_alphabet;  // how many characters, the most frequent ones, become tokens; 1000
  // Of unigram and sentencepiece-bpe. Defaults are those of spm_train.
  std::optional<double> character_coverage;    // fraction of the text whose characters become tokens; 0.9995
  std::optional<std::string> normalization;    // nmt_nfkc, nfkc, nmt_nfkc_cf, nfkc_cf or identity
  std::optional<bool> byte_fallback;           // other characters become tokens of their bytes; false
  std::optional<int64_t> max_sentence_length;  // longer lines, in bytes, are left out; 4192
};

struct LearntTokenizer {
  NamedContents file;
  int64_t vocabulary = 0;     // number of tokens
  int64_t bytes = 0;          // of the texts
  int64_t skipped_lines = 0;  // longer than max_sentence_length
};

// Returns the values of LearnTokenizerOptions::kind.
std::vector<std::string> LearntTokenizerKinds();

// Learns from the files `paths`, which gzip may have compressed; an empty path is standard input. Returns
// InvalidArgument if the texts are empty or not UTF-8, if `options` has a setting that its kind lacks, or if the
// alphabet of the texts does not fit into the vocabulary.
absl::StatusOr<LearntTokenizer> LearnTokenizer(const std::vector<std::string>& paths,
                                               const LearnTokenizerOptions& options);

// Learns byte-level BPE from a text in memory, which may be empty. LearnTokenizer learns the same model from a file of
// this text, except that white space there ends with its line. Special tokens have the first ids, then the 256 bytes in
// the order of their characters (text/tokenizers/vocabulary.h), then the merged tokens. Of equally frequent pairs, the
// one with the lowest ids is merged first. If no pair is frequent enough any more, the vocabulary stays below its
// maximum.
absl::StatusOr<BpeModel> LearnByteLevelBpe(absl::string_view text, const LearnTokenizerOptions& options);

// Learns byte-level BPE with an end token from the beginnings of the files, equally long ones where the files are long
// enough. Returns the files of the tokenizer.
absl::StatusOr<std::vector<NamedContents>> LearnFromBeginnings(const std::vector<std::string>& paths,
                                                               int64_t vocabulary);

}  // namespace weft

#endif  // WEFT_TEXT_LEARN_LEARN_TOKENIZER_H_
