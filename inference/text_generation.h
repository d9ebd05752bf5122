// Continues texts with a GPT and its tokenizer.
//
//   WEFT_ASSIGN_OR_RETURN(const auto generator, TextGenerator::Open("runs/gpt-1", {.stop = "\n"}));
//   WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> prompt, generator->Encode("In the beginning"));
//   WEFT_RETURN_IF_ERROR(generator->Continue({prompt}, [](size_t, const std::string& text) { std::cout << text; }));
//
// inference/generate.h does the same with tokens in place of texts.
#ifndef WEFT_INFERENCE_TEXT_GENERATION_H_
#define WEFT_INFERENCE_TEXT_GENERATION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/core/parameters.h"
#include "weft/inference/generate.h"
#include "weft/inference/open_model.h"

namespace weft {

struct TextGeneratorOptions {
  // Texts also end at the model's own begin and end tokens.
  GenerateOptions generate = {};
  std::string tokenizer = "";  // another tokenizer than the model's own: a file or folder
  std::string stop = "";       // a text before which the continuation ends; empty: none
  int64_t batch = 8;           // maximum number of texts in one run
  int64_t threads = 0;         // 0: one for each core
};

class TextGenerator {
 public:
  // `path` is what OpenGpt takes.
  static absl::StatusOr<std::unique_ptr<TextGenerator>> Open(const std::string& path,
                                                             const TextGeneratorOptions& options);

  // Returns the tokens of a prompt, with those that the model's format puts before a text. InvalidArgument if they are
  // more than the context and `truncate` is not set.
  absl::StatusOr<std::vector<int32_t>> Encode(absl::string_view prompt) const;

  // Receives the index of a prompt, and a piece of the text that follows the prompt.
  using Sink = absl::FunctionRef<void(size_t, const std::string&)>;
  // Continues each prompt and gives the text to `sink` as it comes.
  absl::Status Continue(absl::Span<const std::vector<int32_t>> prompts, Sink sink);

 private:
  TextGenerator(const TextGeneratorOptions& options, OpenedGpt gpt);

  TextGeneratorOptions options_;
  const OpenedGpt gpt_;
  Parameters parameters_{{.draw = false}};
  std::unique_ptr<Generator> generator_;
};

}  // namespace weft

#endif  // WEFT_INFERENCE_TEXT_GENERATION_H_
