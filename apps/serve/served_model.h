// A ServedModel is a model that a server answers with: a GPT, a BERT or an encoder-decoder Transformer.
#ifndef WEFT_APPS_SERVE_SERVED_MODEL_H_
#define WEFT_APPS_SERVE_SERVED_MODEL_H_

#include <cstdint>
#include <functional>
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
  std::string kind;                // "gpt", "bert" or "transformer"
  std::vector<std::string> tasks;  // what it can do: "completions", "chat", "embeddings", "classify" and so on
  int64_t context = 0;             // maximum number of tokens that it reads

  // Of a GPT. The options of `generator` are the defaults of a request. Without `chat`, the model has no chat template.
  std::unique_ptr<TextGenerator> generator = nullptr;
  std::optional<ChatTemplate> chat = std::nullopt;

  // Of a BERT. Without `head`, it has no classifier.
  std::unique_ptr<BertEncoder> encoder = nullptr;
  std::unique_ptr<TextHead> head = nullptr;

  // Of an encoder-decoder.
  BeamSearchOptions search = {};  // the defaults of a request
  std::unique_ptr<LineTranslator> translator = nullptr;

  bool Does(absl::string_view task) const;

  // Returns the tokens of a conversation in the form of the chat template, up to where the model's answer begins. The
  // texts of special tokens in messages are ordinary text. Returns InvalidArgument if the template refuses the
  // messages, or if there are more tokens than the context.
  absl::StatusOr<std::vector<int32_t>> ChatTokens(const nlohmann::ordered_json& messages) const;
};

// Opens a GPT, and sets the options that its files name.
using OpenServedGpt = std::function<absl::StatusOr<OpenedGpt>(const std::string& path, TextGeneratorOptions* options)>;

// Opens a model in any format that ReadModel reads. Returns InvalidArgument for a Vision Transformer.
absl::StatusOr<std::unique_ptr<ServedModel>> OpenServedModel(const std::string& name, const std::string& path,
                                                             TextGeneratorOptions options, const OpenServedGpt& open);

}  // namespace weft

#endif  // WEFT_APPS_SERVE_SERVED_MODEL_H_
