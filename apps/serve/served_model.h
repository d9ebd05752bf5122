// A ServedModel is a model that a server answers with: a GPT, a BERT or an encoder-decoder Transformer.
#ifndef WEFT_APPS_SERVE_SERVED_MODEL_H_
#define WEFT_APPS_SERVE_SERVED_MODEL_H_

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/inference/encode/bert_encoder.h"
#include "weft/inference/encode/classifier.h"
#include "weft/inference/generate/line_translator.h"
#include "weft/inference/generate/text_generation.h"
#include "weft/text/templates/chat_template.h"

namespace weft {

struct ServedModel {
  std::string name, path;
  std::string kind;  // "gpt", "bert" or "transformer"
  // The tasks of the model: some of "completions", "chat", "embeddings", "classify", "translate" and "attention".
  std::vector<std::string> tasks;
  int64_t context = 0;  // maximum number of tokens that it reads

  // A GPT has a generator, whose options are the defaults of a request. `chat` is unset if it has no chat template.
  std::unique_ptr<TextGenerator> generator = nullptr;
  std::optional<ChatTemplate> chat = std::nullopt;

  // A BERT has an encoder. `head` is null if it has no classifier.
  std::unique_ptr<BertEncoder> encoder = nullptr;
  std::unique_ptr<TextHead> head = nullptr;

  // An encoder-decoder has a translator. `search` has the defaults of a request.
  BeamSearchOptions search = {};
  std::unique_ptr<LineTranslator> translator = nullptr;

  bool Does(absl::string_view task) const;

  // Returns the tokens of a conversation in the form of the chat template, up to where the model's answer begins. The
  // texts of special tokens in messages are ordinary text. Returns InvalidArgument if the template refuses the
  // messages, or if there are more tokens than the context.
  absl::StatusOr<std::vector<int32_t>> ChatTokens(const nlohmann::ordered_json& messages) const;
};

// Opens a model in any format that ReadModel reads. The options of a GPT that its files name take the place of
// `options`. Returns InvalidArgument for a Vision Transformer, and if the model can't be opened.
absl::StatusOr<std::unique_ptr<ServedModel>> OpenServedModel(const std::string& name, const std::string& path,
                                                             TextGeneratorOptions options);

}  // namespace weft

#endif  // WEFT_APPS_SERVE_SERVED_MODEL_H_
