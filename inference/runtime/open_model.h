// These functions open a published model or a training run, together with its tokenizer.
//
//   WEFT_ASSIGN_OR_RETURN(const OpenedGpt gpt, OpenGpt("gpt2", /*tokenizer=*/""));
//   ...  // record graphs of Gpt(gpt.model.config), and create runners, which create the parameters
//   WEFT_RETURN_IF_ERROR(parameters.Set("gpt2", gpt.model.weights.tensors()));
#ifndef WEFT_INFERENCE_RUNTIME_OPEN_MODEL_H_
#define WEFT_INFERENCE_RUNTIME_OPEN_MODEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/formats/generation.h"
#include "weft/formats/weights.h"
#include "weft/inference/runtime/beam_search.h"
#include "weft/text/tokenizers/tokenizer.h"

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
  std::string path, tokenizer_path;
  PublishedGpt model;
  std::unique_ptr<Tokenizer> tokenizer;
  GenerationSettings settings;
};
// Opens a GPT in any format that ReadModel reads. `tokenizer`: the path of the tokenizer; empty: TokenizerOf(path).
// Returns InvalidArgument if the tokenizer does not fit the model (CheckVocabulary).
absl::StatusOr<OpenedGpt> OpenGpt(const std::string& path, const std::string& tokenizer);
// Returns the special tokens that the tokenizer's format puts before and after a text. If the format leaves the text
// out, all of them come before it.
std::pair<std::vector<int32_t>, std::vector<int32_t>> TokensAround(const Tokenizer& tokenizer);
// Returns the tokens with which a new text begins, at least one. If the tokenizer's format has none, returns `begin`,
// which a model's files may name. Without it, returns the tokenizer's own begin or end token, the tokens of a newline
// or, if there are none, the token 0.
absl::StatusOr<std::vector<int32_t>> BeginningOfText(const Tokenizer& tokenizer,
                                                     std::optional<int32_t> begin = std::nullopt);

// Returns the tokens of `prompt` in the model's format. Unless the model is published, an end token that the format
// puts after a text is left out, because the text goes on; transformers leaves it in. For an empty prompt, returns
// BeginningOfText.
absl::StatusOr<std::vector<int32_t>> PromptTokens(const OpenedGpt& gpt, absl::string_view prompt);
// Returns the tokens that `texts` name, each by its text or number. An error begins with "end-token: ".
absl::StatusOr<std::vector<int32_t>> EndTokens(const Tokenizer& tokenizer, absl::Span<const std::string> texts);

// Returns when a beam search of transformers with these settings is done.
BeamStop StopOf(const GenerationSettings& settings);

struct OpenedTransformer {
  std::string path, folder;  // the model, and the folder of its files
  PublishedTransformer model;
  std::shared_ptr<Tokenizer> source, target;
  bool lists = false;                  // true: the tokenizers are lists of tokens, without rules to split a text
  std::vector<int32_t> before, after;  // the special tokens around each source
  // The special tokens of targets, and the search that the model's files ask for. Without such files, beam search with
  // 4 hypotheses.
  BeamSearchOptions search;
  std::vector<std::string> notes;  // on settings of the model's files that are not used
};
// Opens an encoder-decoder Transformer in any format that ReadModel reads. In a folder of CTranslate2 the tokenizers
// are lists of tokens: source_vocabulary and target_vocabulary, or shared_vocabulary, as .json or .txt. If the folder's
// tokenizer has the same tokens, or if there are no lists, this tokenizer serves both sides.
//
// The special tokens are those of CTranslate2's config.json, or those of GenerationSettings and of the tokenizer's
// input format. A training run has neither: its sources and targets end in the tokenizer's end token, and targets begin
// with its begin token. Returns InvalidArgument if a tokenizer does not fit the model, or if it lacks a token.
absl::StatusOr<OpenedTransformer> OpenTransformer(const std::string& path);

}  // namespace weft

#endif  // WEFT_INFERENCE_RUNTIME_OPEN_MODEL_H_
