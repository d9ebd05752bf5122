// Opens a published model, or a run of `weft train`, together with its tokenizer.
//
//   WEFT_ASSIGN_OR_RETURN(const OpenedGpt gpt, OpenGpt("gpt2", /*tokenizer=*/""));
//   ...  // record graphs of Gpt(gpt.model.config), and create runners, which create the parameters
//   WEFT_RETURN_IF_ERROR(parameters.Set("gpt2", gpt.model.weights.tensors()));
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
// Opens a folder of Hugging Face's layout, or a run. InvalidArgument if the tokenizer does not fit the model
// (CheckVocabulary).
absl::StatusOr<OpenedBert> OpenBert(const std::string& path);
// Returns InvalidArgument unless the model has the head for masked tokens, and the tokenizer a mask token.
absl::Status CheckGuessesMasked(const OpenedBert& bert);

struct OpenedGpt {
  PublishedGpt model;
  std::unique_ptr<Tokenizer> tokenizer;
};
// Opens what ReadModel takes. The tokenizer is the folder's, or tokenizer.bin beside a file, unless `tokenizer` names
// another. InvalidArgument if the tokenizer does not fit the model (CheckVocabulary).
absl::StatusOr<OpenedGpt> OpenGpt(const std::string& path, const std::string& tokenizer);
// Returns the tokens that a new text begins with: at least one.
absl::StatusOr<std::vector<int32_t>> BeginningOfText(const Tokenizer& tokenizer);

struct OpenedTransformer {
  PublishedTransformer model;
  std::shared_ptr<const Tokenizer> source, target;
  int32_t begin = 0, end = 0;  // the special tokens of targets
  bool sources_end = false;    // sources also end in the end token, as those of `weft train translate` do
};
// Opens what ReadModel takes. The tokenizers are source_vocabulary.txt and target_vocabulary.txt, as CTranslate2 has
// them, or else the folder's tokenizer for both sides. InvalidArgument if they do not fit the model, its bos_id or its
// eos_id.
absl::StatusOr<OpenedTransformer> OpenTransformer(const std::string& path);

}  // namespace weft

#endif  // WEFT_INFERENCE_OPEN_MODEL_H_
