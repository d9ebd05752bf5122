// A Chat is a conversation with a GPT. The conversation is one text, to which a person and the model add in turn.
//
//   WEFT_ASSIGN_OR_RETURN(OpenedGpt gpt, OpenGpt("gpt2", /*tokenizer=*/""));
//   WEFT_ASSIGN_OR_RETURN(const auto chat, Chat::Create(std::move(gpt), {.turn = "\nQuestion: {}\nAnswer:"}));
//   WEFT_RETURN_IF_ERROR(chat->Answer("What is rain?", [](const GeneratedToken& generated) {
//     std::cout << generated.text;
//     return true;
//   }));
#ifndef WEFT_INFERENCE_GENERATE_CHAT_H_
#define WEFT_INFERENCE_GENERATE_CHAT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "weft/inference/generate/text_generation.h"

namespace weft {

struct ChatOptions {
  // If the context has too little room for the next answer, the model forgets the oldest turns, until the rest fills at
  // most half of the context. The model then reads the rest again, so most turns stay fast.
  TextGeneratorOptions generator = {};
  std::string beginning = "";  // the text before the first turn, such as an instruction, which is forgotten last
  // The text that each turn adds to the conversation. {} stands for the person's line, and the model continues after
  // the turn. An answer ends as soon as the model writes the text before {}, because that text begins the next turn.
  std::string turn = "\n{}\n";
};

class Chat {
 public:
  // Returns InvalidArgument unless the turn has one {}, with a text before it, and if the beginning fills more than
  // half of the context.
  static absl::StatusOr<std::unique_ptr<Chat>> Create(OpenedGpt gpt, const ChatOptions& options);

  // Adds `line` and the model's answer to the conversation. `sink` gets the tokens and pieces of the answer. If it ends
  // the answer, the text that was generated before stays in the conversation.
  absl::Status Answer(absl::string_view line, TokenSink sink);

  const TextGenerator& generator() const { return *generator_; }
  std::string text() const { return TextFrom(0); }  // the conversation so far
  void Clear();                                     // begins a new conversation

 private:
  explicit Chat(const ChatOptions& options) : options_(options) {}
  // Returns the beginning and the turns from `first` on.
  std::string TextFrom(size_t first) const;
  // Adds a turn and forgets others. Returns the tokens to continue.
  absl::StatusOr<std::vector<int32_t>> AddTurn(absl::string_view line);

  ChatOptions options_;
  std::unique_ptr<TextGenerator> generator_;
  std::vector<std::string> turns_;  // each with its answer
  size_t forgotten_ = 0;            // number of turns that the model no longer sees
};

}  // namespace weft

#endif  // WEFT_INFERENCE_GENERATE_CHAT_H_
