// What commands take as --model: a published model or a run of `weft train`, with its tokenizer.
//
//   WEFT_ASSIGN_OR_RETURN(const OpenedGpt gpt, OpenGpt(flags.model, flags.tokenizer));
//   ...  // graphs of Gpt(gpt.model.config), whose runners create the parameters
//   WEFT_RETURN_IF_ERROR(parameters.Set(flags.model, gpt.model.weights.tensors()));
#ifndef WEFT_INFERENCE_OPEN_MODEL_H_
#define WEFT_INFERENCE_OPEN_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "weft/formats/weights.h"
#include "weft/text/tokenizer.h"

namespace weft {

struct OpenedBert {
  std::string path;
  PublishedBert model;
  std::unique_ptr<Tokenizer> tokenizer;
};
// A folder of Hugging Face's layout or a run. InvalidArgument if the tokenizer does not fit the model
// (CheckVocabulary).
absl::StatusOr<OpenedBert> OpenBert(const std::string& path);
// InvalidArgument unless the model has the head for masked tokens, and the tokenizer the mask.
absl::Status CheckGuessesMasked(const OpenedBert& bert);

struct OpenedGpt {
  PublishedGpt model;
  std::unique_ptr<Tokenizer> tokenizer;
};
// `path` is what OpenPublished takes. The tokenizer is the one of the folder, or tokenizer.bin beside a file, unless
// `tokenizer` names another. InvalidArgument if the tokenizer does not fit the model (CheckVocabulary).
absl::StatusOr<OpenedGpt> OpenGpt(const std::string& path, const std::string& tokenizer);
// The ids that a text of the model begins with if nothing is before it: one at least.
absl::StatusOr<std::vector<int32_t>> BeginningOfText(const Tokenizer& tokenizer);

struct OpenedTransformer {
  PublishedTransformer model;
  std::shared_ptr<const Tokenizer> source, target;
  int32_t begin = 0, end = 0;  // of targets
  bool sources_end = false;    // sources have the end token, too, as those of weft train translate
};
// The tokenizers are source_vocabulary.txt and target_vocabulary.txt, as CTranslate2 has them, or else the folder's one
// for both. InvalidArgument if they do not fit the model or its bos_id and eos_id.
absl::StatusOr<OpenedTransformer> OpenTransformer(const std::string& path);

}  // namespace weft

#endif  // WEFT_INFERENCE_OPEN_MODEL_H_
