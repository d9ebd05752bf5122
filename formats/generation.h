// A GenerationSettings holds the settings of text generation that the files of a published model give: the tokens that
// end a text, other special tokens, and defaults of sampling and beam search.
//
//   WEFT_ASSIGN_OR_RETURN(const GenerationSettings settings, ReadGenerationSettings("llama", tokenizer, vocabulary));
//   options.stop = settings.end;
//   for (const std::string& note : settings.Unused({"temperature", "top_k"})) std::cerr << note << "\n";
//
// Each value comes from the first of these that has it: generation_config.json, config.json, the tokenizer. If
// generation_config.json exists, it alone gives the end tokens, as in the package transformers: without any, a text has
// no end. config.json then gives only other special tokens. A training run and a file of llama2.c have neither file, so
// their end tokens come from the tokenizer.
#ifndef WEFT_FORMATS_GENERATION_H_
#define WEFT_FORMATS_GENERATION_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/formats/run_folder.h"
#include "weft/text/tokenizers/tokenizer.h"

namespace weft {

// An unset value and an empty list are in no file. The names are those of the files' keys, where no comment says more.
struct GenerationSettings {
  std::vector<int32_t> end;  // eos_token_id; any of these tokens ends a text
  std::vector<int32_t> forced_end;
  std::optional<int32_t> begin, padding, decoder_start, forced_begin;
  // Tokens that are never generated: suppress_tokens, and the bad_words_ids of one token each. End tokens are not among
  // those of bad_words_ids.
  std::vector<int32_t> excluded;

  std::optional<bool> do_sample;
  std::optional<double> temperature, top_p, min_p, typical_p, repetition_penalty, length_penalty;
  std::optional<int64_t> top_k, num_beams, max_new_tokens, max_length, min_length, no_repeat_ngram_size;
  std::optional<std::string> early_stopping;  // "true", "false" or "never"

  bool published = false;  // whether the model has any of these files: it is neither a run nor a file of llama2.c

  // A key whose value changes generation. Keys that are known to be harmless are not listed, and neither are values
  // that disable what the key controls, such as a penalty of 1.
  struct Given {
    std::string file, key, value;
  };
  std::vector<Given> given;
  // Returns "FILE: KEY is VALUE, which is not used" for each given key that is not in `used`. Special tokens are
  // not in the result, except forced ones and end tokens outside the vocabulary.
  std::vector<std::string> Unused(absl::Span<const absl::string_view> used) const;
};

// `model`: a file or folder, as for ReadModel; an adapter has the settings of its base model. `tokenizer` gives the end
// token if no file does. `vocabulary`: number of rows of the model's table of target tokens. Returns InvalidArgument,
// with file and key, if a value has the wrong type, or if a token that starts or must follow a target is outside the
// vocabulary. End tokens outside the vocabulary are left out, because the model never writes them.
absl::StatusOr<GenerationSettings> ReadGenerationSettings(const std::string& model, const Tokenizer& tokenizer,
                                                          int64_t vocabulary);

// Returns the id of the token whose text is `text`, a special one if there are several.
std::optional<int32_t> FindToken(const Tokenizer& tokenizer, absl::string_view text);

// Returns the contents of a generation_config.json that gives the same settings as the files of `model`, or an empty
// object if these files give none.
absl::StatusOr<nlohmann::ordered_json> GenerationConfigOf(const std::string& model);
// Adds to `config`, the contents of a generation_config.json, the end tokens that ReadGenerationSettings gives, unless
// it has the key eos_token_id.
absl::Status AddEndTokens(const std::string& model, const Tokenizer& tokenizer, int64_t vocabulary,
                          nlohmann::ordered_json* config);

}  // namespace weft

#endif  // WEFT_FORMATS_GENERATION_H_
