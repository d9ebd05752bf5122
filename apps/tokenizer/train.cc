// `weft tokenizer train` learns a tokenizer from texts and writes it to a folder.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "weft/apps/commands.h"
#include "weft/apps/flags.h"
#include "weft/base/cores.h"
#include "weft/base/status.h"
#include "weft/text/learn/learn_tokenizer.h"
#include "weft/text/tokenizers/load_tokenizer.h"

namespace weft {
namespace {

struct TrainFlags {
  LearnTokenizerOptions options;
  std::string out, special_tokens, normalization;
  std::vector<std::string> texts;
  int64_t threads = 0;
  bool overwrite = false;
  GivenFlags given;
};

Hyperparameters Table(TrainFlags* flags) {
  LearnTokenizerOptions& options = flags->options;
  return {
      {"out",
       "the folder to write: tokenizer.json of Hugging Face's tokenizers, or SentencePiece's tokenizer.model",
       &flags->out,
       {.type = "FOLDER", .required = true}},
      {"kind",
       "kind of tokenizer: GPT-2's, BERT's, or those of SentencePiece",
       &options.kind,
       {.choices = LearntTokenizerKinds()}},
      {"vocabulary", "maximum number of tokens, with special tokens", &options.vocabulary, {.low = 1, .high = 1e7}},
      {"special-tokens",
       "special tokens, separated by commas, which get the first ids; without this flag <|endoftext|>, BERT's five, or "
       "SentencePiece's three, which are always there",
       &flags->special_tokens,
       {.may_be_empty = true}},
      {"min-frequency",
       "byte-level-bpe, wordpiece: how often two tokens must be neighbours to become one; without this flag 2",
       &options.min_frequency,
       {.low = 1}},
      {"lowercase", "wordpiece: lowercase the text; without this flag true", &options.lowercase},
      {"strip-accents", "wordpiece: remove accents; without this flag as --lowercase", &options.strip_accents},
      {"limit-alphabet",
       "wordpiece: maximum number of characters, the most frequent ones, that become tokens; without this flag 1000",
       &options.limit_alphabet,
       {.low = 1, .high = 1114112}},
      {"character-coverage",
       "unigram, sentencepiece-bpe: fraction of the text whose characters become tokens; without this flag 0.9995",
       &options.character_coverage,
       {.low = 0.98, .high = 1}},
      {"normalization",
       "unigram, sentencepiece-bpe: normalization of the text, with _cf lowercased; without this flag nmt_nfkc",
       &flags->normalization,
       {.choices = {"nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"}}},
      {"byte-fallback",
       "unigram, sentencepiece-bpe: other characters become tokens of their bytes; without this flag false",
       &options.byte_fallback},
      {"max-sentence-length",
       "unigram, sentencepiece-bpe: longer lines, in bytes, are left out; without this flag 4192",
       &options.max_sentence_length,
       {.low = 1, .high = 1e9}},
      {"threads",
       "number of threads, which does not change the tokenizer; 0: one on each core",
       &flags->threads,
       {.low = 0, .high = 1024}},
      {"overwrite", "replace the tokenizer in the folder", &flags->overwrite},
  };
}

absl::Status TrainTokenizer(TrainFlags flags) {
  LearnTokenizerOptions& options = flags.options;
  if (flags.given.contains("special-tokens")) {
    options.special_tokens.emplace();
    if (!flags.special_tokens.empty()) options.special_tokens = absl::StrSplit(flags.special_tokens, ',');
  }
  if (!flags.normalization.empty()) options.normalization = flags.normalization;
  options.threads = flags.threads > 0 ? static_cast<int>(flags.threads) : Cores();
  std::vector<std::string> texts = flags.texts.empty() ? std::vector<std::string>{"-"} : flags.texts;
  for (std::string& text : texts) {
    if (text == "-") text.clear();  // standard input
  }
  WEFT_RETURN_IF_ERROR(UsageError(CheckTokenizerFolder(flags.out, flags.overwrite)));
  WEFT_ASSIGN_OR_RETURN(const LearntTokenizer learnt, UsageError(LearnTokenizer(texts, options)));
  WEFT_RETURN_IF_ERROR(WriteTokenizerFolder(flags.out, learnt.file));
  nlohmann::ordered_json json = {
      {"file", flags.out + "/" + learnt.file.name}, {"vocabulary", learnt.vocabulary}, {"bytes", learnt.bytes}};
  if (learnt.skipped_lines > 0) json["skipped_lines"] = learnt.skipped_lines;
  std::printf("%s\n", json.dump().c_str());
  return absl::OkStatus();
}

}  // namespace

Command TokenizerTrainCommand(CLI::App* weft, const std::string& name) {
  return MakeCommand(weft, name,
                     {"Learns a tokenizer from files of text, or from standard input.",
                      "learns a tokenizer from text",
                      {{"Learns GPT-2's kind of tokenizer, with at most 8,000 tokens.",
                        "weft tokenizer train --vocabulary=8000 --out=tokenizer book.txt"},
                       {"Learns BERT's kind, which Hugging Face's tokenizers can open.",
                        "weft tokenizer train --kind=wordpiece --out=wordpiece book.txt"}}},
                     std::make_shared<TrainFlags>(), Table, TrainTokenizer, &TrainFlags::texts);
}

}  // namespace weft
