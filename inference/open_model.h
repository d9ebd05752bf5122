// These functions open a published model or a training run, together with its tokenizer.
//
//   WEFT_ASSIGN_OR_RETURN(const OpenedGpt gpt, OpenGpt("gpt2", /*tokenizer=*/""));
//   ...  // record graphs of Gpt(gpt.model.config), and create runners, which create the parameters
//   WEFT_RETURN_IF_ERROR(parameters.Set("gpt2", gpt.model.weights.tensors()));
#ifndef WEFT_INFERENCE_OPEN_MODEL_H_
#define WEFT_INFERENCE_OPEN_MODEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/formats/generation.h"
#include "weft/formats/weights.h"
#include "weft/text/tokenizer.h"

namespace weft {

struct OpenedBert {
  std::string path;
  PublishedBert model;
  std::unique_ptr<Tokenizer> tokenizer;
};
// Opens a folder in Hugging Face's layout, or a training run. Returns InvalidArgument if the tokenizer does not fit the
// model (CheckVocabulary), or if its special tokens alone fill the context.
absl::StatusOr<OpenedBert> OpenBert(const std::string& path);
// Returns InvalidArgument unless the model has a head for masked tokens and the tokenizer has a mask token.
absl::Status CheckGuessesMasked(const OpenedBert& bert);

struct OpenedGpt {
  std::string path;
  PublishedGpt model;
  std::unique_ptr<Tokenizer> tokenizer;
  GenerationSettings settings;
};
// Opens a GPT in any format that ReadModel reads. `tokenizer`: the path of the tokenizer; empty: TokenizerOf(path).
// Returns InvalidArgument if the tokenizer does not fit the model (CheckVocabulary).
absl::StatusOr<OpenedGpt> OpenGpt(const std::string& path, const std::string& tokenizer);
// Returns the tokens with which a new text begins, at least one. If the tokenizer's format has none, returns `begin`,
// which a model's files may name. Without it, returns the tokenizer's own begin or end token, the tokens of a newline
// or, if there are none, the token 0.
absl::StatusOr<std::vector<int32_t>> BeginningOfText(const Tokenizer& tokenizer,
                                                     std::optional<int32_t> begin = std::nullopt);

struct PromptOptions {
  bool special_tokens = true;    // whether the texts of special tokens become these tokens (EncodeWithSpecial)
  std::optional<int32_t> begin;  // for an empty prompt, as in BeginningOfText
};
// Returns the tokens with which the model's format begins a text, and then the tokens of `prompt`.
absl::StatusOr<std::vector<int32_t>> PromptTokens(const Tokenizer& tokenizer, absl::string_view prompt,
                                                  const PromptOptions& options = {});

struct OpenedTransformer {
  std::string folder;  // of the model's files
  PublishedTransformer model;
  std::shared_ptr<const Tokenizer> source, target;
  int32_t begin = 0, end = 0;  // special tokens of targets
  bool sources_end = false;    // true: sources have the end token, too, as in this project's runs
};
// Opens an encoder-decoder Transformer in any format that ReadModel reads. The tokenizers are source_vocabulary.txt and
// target_vocabulary.txt, as in CTranslate2's folders. Without these files, the folder's tokenizer serves both sides.
// Returns InvalidArgument if a tokenizer does not fit the model, if the target tokenizer has no begin or end token, or
// if these tokens differ from bos_id and eos_id in CTranslate2's config.json.
absl::StatusOr<OpenedTransformer> OpenTransformer(const std::string& path);

}  // namespace weft

#endif  // WEFT_INFERENCE_OPEN_MODEL_H_
