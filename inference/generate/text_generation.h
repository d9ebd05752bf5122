// A TextGenerator continues texts with a GPT and its tokenizer.
//
//   WEFT_ASSIGN_OR_RETURN(OpenedGpt gpt, OpenGpt("runs/gpt-1", /*tokenizer=*/""));
//   WEFT_ASSIGN_OR_RETURN(const auto generator, TextGenerator::Create(std::move(gpt), {.stop = {"\n"}}));
//   WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> prompt, generator->Encode("In the beginning"));
//   const auto print = [](const GeneratedToken& generated) {
//     std::cout << generated.text;
//     return true;
//   };
//   WEFT_RETURN_IF_ERROR(generator->Continue({prompt}, print));
//
// For tokens instead of texts, use a Generator (inference/generate/generate.h). A Chat is a conversation: one text, to
// which a person and the model add in turn.
//
//   WEFT_ASSIGN_OR_RETURN(const auto chat, Chat::Create(std::move(gpt), {.turn = "\nQuestion: {}\nAnswer:"}));
//   WEFT_RETURN_IF_ERROR(chat->Answer("What is rain?", print));
#ifndef WEFT_INFERENCE_GENERATE_TEXT_GENERATION_H_
#define WEFT_INFERENCE_GENERATE_TEXT_GENERATION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/core/parameters.h"
#include "weft/inference/generate/generate.h"
#include "weft/inference/runtime/open_model.h"
#include "weft/text/templates/chat_template.h"

namespace weft {

struct TextGeneratorOptions {
  // The end tokens are added to `generate.stop`. Create sets `generate.slide` and `generate.vocabulary`.
  GenerateOptions generate = {};
  // Tokens that end a text, each by its text or number. Unset: those of the model (GenerationSettings::end).
  std::optional<std::vector<std::string>> end_tokens;
  std::optional<bool> special_tokens;  // Tokenizer::ReadSpecial, for prompts
  // Whether a text that fills the context slides (inference/generate/generate.h). Unset: true for a run and a file of
  // llama2.c, and false for a published model, which has seen no text from its middle.
  std::optional<bool> slide;
  std::string tokenizer = "";  // the tokenizer of `draft_model`, as for OpenGpt
  // A smaller GPT that guesses the next tokens (ModelDraft), as for OpenGpt; empty: none. It must have the same tokens,
  // and reads `tokenizer`. If `generate.draft` is 0, it guesses 4.
  std::string draft_model = "";
  std::vector<std::string> stop;  // a continuation ends before the first of these texts
  // With a `beam` above 0, searches the likeliest continuation, as GeneratorOptions say. Then `generate.sampling`,
  // `logprobs` and drafts have no use.
  BeamSearchOptions search = {.beam = 0};
  RuntimeOptions runtime = {.batch = 8};
};

// A text to continue with options of its own, for TextGenerator::Add.
struct ContinuationRequest {
  std::vector<int32_t> prompt;    // tokens from Encode
  GenerateOptions generate = {};  // TextGenerator::options().generate with changes; no drafts
  std::vector<std::string> stop;  // the continuation ends before the first of these texts
  // `sink` gets each token, as that of Continue. At the end, `ended` gets the reason and the rest of the text.
  std::function<bool(const GeneratedToken&)> sink;
  std::function<void(TextEnd, std::string)> ended;
};

class TextGenerator {
 public:
  // Does not apply the defaults in `gpt.settings`, except the end tokens.
  static absl::StatusOr<std::unique_ptr<TextGenerator>> Create(OpenedGpt gpt, const TextGeneratorOptions& options);

  // Returns the tokens with which the model's format begins a text, and then the tokens of `prompt`. Returns
  // InvalidArgument if they fill GenerateOptions::max_length, or exceed the context and `truncate` is not set.
  absl::StatusOr<std::vector<int32_t>> Encode(absl::string_view prompt) const;

  const OpenedGpt& gpt() const { return gpt_; }
  int64_t context() const { return gpt_.model.config.context; }  // maximum number of tokens that the model sees
  // Returns the number of texts that ended before their time because they filled the context.
  int64_t full() const { return generator_->counts().full; }

  // Returns the text of one token behind another, also of a special one: decoding would drop the space at the beginning
  // of a text. It is empty if the tokenizer has no such token.
  std::string TokenText(int32_t token) const;

  // Continues each prompt. Gives each token to `sink`, with the text that later tokens cannot change any more, and at
  // the end the rest of each text.
  absl::Status Continue(absl::Span<const std::vector<int32_t>> prompts, TokenSink sink);

  // Adds a text to those that generator()->Step continues, and returns its number. It ends with kStop also at a stop
  // text. Errors are those of Generator::Add.
  absl::StatusOr<size_t> Add(ContinuationRequest request);
  Generator* generator() { return generator_.get(); }
  const TextGeneratorOptions& options() const { return options_; }

 private:
  TextGenerator(const TextGeneratorOptions& options, OpenedGpt gpt) : options_(options), gpt_(std::move(gpt)) {}
  absl::Status OpenDraft();

  TextGeneratorOptions options_;
  const OpenedGpt gpt_;
  Parameters parameters_{{.draw = false}}, draft_parameters_{{.draw = false}};
  std::unique_ptr<Generator> generator_;
  std::unique_ptr<ModelDraft> draft_;
};

struct ChatOptions {
  // If the context has too little room for the next answer, the model forgets the oldest turns, until the rest fills at
  // most half of the context. The model then reads the rest again, so most turns stay fast.
  TextGeneratorOptions generator = {};
  // A model with a chat template (text/templates/chat_template.h) reads the conversation in its form, unless `turn` or
  // `beginning` is given. With `generator.special_tokens` false, the texts of special tokens that a person types are
  // ordinary text, and those that the template writes are special tokens.
  std::string system = "";  // the message of the system, which is never forgotten; empty: none. It needs a template
  // Without a template: the text before the first turn, such as an instruction, which is forgotten last.
  std::string beginning = "";
  // Without a template: the text that each turn adds to the conversation; unset: "\n{}\n". {} stands for the person's
  // line, and the model continues after the turn. An answer ends as soon as the model writes the text before {},
  // because that text begins the next turn.
  std::optional<std::string> turn;
};

class Chat {
 public:
  // Returns InvalidArgument unless the turn has one {}, with a text before it; if the beginning or the message of the
  // system fills more than half of the context; and if the model's template can't be read, or `system` has none.
  static absl::StatusOr<std::unique_ptr<Chat>> Create(OpenedGpt gpt, const ChatOptions& options);

  // Adds `line` and the model's answer to the conversation. `sink` gets the tokens and pieces of the answer. If it ends
  // the answer, the text that was generated before stays in the conversation. Returns InvalidArgument, and changes
  // nothing, if the tokenizer or the template refuses the line.
  absl::Status Answer(absl::string_view line, TokenSink sink);

  const TextGenerator& generator() const { return *generator_; }
  absl::StatusOr<std::string> text() const { return TextFrom(0, /*answers=*/false); }  // the conversation so far
  void Clear();                                                                        // begins a new conversation

 private:
  struct Turn {
    std::string line, answer;
  };
  explicit Chat(const ChatOptions& options) : options_(options) {}
  // Returns the beginning and the turns from `first` on. `answers`: whether the model continues the text.
  absl::StatusOr<std::string> TextFrom(size_t first, bool answers) const;
  absl::StatusOr<std::vector<int32_t>> TokensFrom(size_t first) const;
  // Adds a turn and forgets others. Returns the tokens to continue.
  absl::StatusOr<std::vector<int32_t>> AddTurn(absl::string_view line);
  bool marks_special() const { return template_.has_value() && options_.generator.special_tokens == false; }

  ChatOptions options_;
  std::unique_ptr<TextGenerator> generator_;
  std::optional<ChatTemplate> template_;
  std::vector<Turn> turns_;
  size_t forgotten_ = 0;  // number of turns that the model no longer sees
};

}  // namespace weft

#endif  // WEFT_INFERENCE_GENERATE_TEXT_GENERATION_H_
