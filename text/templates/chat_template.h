// A ChatTemplate writes a conversation as the text that a chat model was trained on. Models ship it beside their
// tokenizer.
//
//   WEFT_ASSIGN_OR_RETURN(const std::optional<ChatTemplate> chat, ReadChatTemplate("llama", *tokenizer));
//   const nlohmann::ordered_json messages = {{{"role", "user"}, {"content", "Hi"}}};
//   chat->Render(messages, /*answers=*/true)     // "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
//
// The text has the template's own special tokens, including one that begins a text, so it is encoded as it is, without
// Tokenizer::Wrap.
#ifndef WEFT_TEXT_TEMPLATES_CHAT_TEMPLATE_H_
#define WEFT_TEXT_TEMPLATES_CHAT_TEMPLATE_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/text/templates/jinja_template.h"
#include "weft/text/tokenizers/tokenizer.h"

namespace weft {

struct ChatTemplate {
  std::string path;  // of the file that has the template
  JinjaTemplate jinja;
  nlohmann::ordered_json tokens;  // variables with the texts of special tokens, such as bos_token

  // Returns the text of `messages`, a list of objects with "role" and "content". `answers`: whether the text ends
  // where the model's answer begins.
  absl::StatusOr<std::string> Render(const nlohmann::ordered_json& messages, bool answers) const;
};

// Reads the template of the tokenizer at `path`, a file or a folder, as LoadTokenizer takes it. As in transformers,
// chat_template.jinja and the files of additional_chat_templates/ go before tokenizer_config.json; of several
// templates, the one called "default" is taken. chat_template.json is read if there is none of these. Returns nothing
// if the folder has no template, and InvalidArgument, with the file, if it can't be used.
absl::StatusOr<std::optional<ChatTemplate>> ReadChatTemplate(const std::string& path, const Tokenizer& tokenizer);

// Returns `text` with marks around each text of a special token. A template copies the marks. EncodeMarked then encodes
// a marked text as ordinary text; an unmarked text of a special token becomes that token.
std::string MarkSpecialTokens(absl::string_view text, const Tokenizer& tokenizer);
absl::StatusOr<std::vector<int32_t>> EncodeMarked(absl::string_view text, const Tokenizer& tokenizer);

}  // namespace weft

#endif  // WEFT_TEXT_TEMPLATES_CHAT_TEMPLATE_H_
