// `weft generate` continues texts with a GPT.
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "weft/apps/commands.h"
#include "weft/apps/flags.h"
#include "weft/apps/lines.h"
#include "weft/core/json.h"
#include "weft/core/status.h"
#include "weft/inference/text_generation.h"
#include "weft/text/lines.h"

namespace weft {
namespace {

struct GenerateFlags {
  std::string model, prompt;
  TextGeneratorOptions options = {
      .generate = {.sampling = {.temperature = 0.8, .seed = 1}, .length = 500},
  };
  bool json = false;
  std::vector<std::string> files;
  GivenFlags given;
};

Hyperparameters Table(GenerateFlags* flags) {
  TextGeneratorOptions& options = flags->options;
  SamplingOptions& sampling = options.generate.sampling;
  return {
      {"model",
       "a run of weft train gpt, a Hugging Face folder of GPT-2 or Llama, or a file of llama2.c",
       &flags->model,
       {.group = "Model", .type = "MODEL", .required = true}},
      {"tokenizer",
       "tokenizer to use instead of the model's, as for weft tokenize",
       &options.tokenizer,
       {.group = "Model", .type = "FILE_OR_FOLDER"}},
      {"prompt",
       "the text to continue, instead of files; if it is empty, a new text begins",
       &flags->prompt,
       {.may_be_empty = true, .group = "Text"}},
      {"length", "maximum number of tokens to add to each text", &options.generate.length, {.low = 0, .group = "Text"}},
      {"temperature",
       "divides the logits: below 1 the text is more predictable, above 1 more varied; 0 picks the most likely token",
       &sampling.temperature,
       {.low = 0, .group = "Sampling"}},
      {"top-k",
       "sample among the k most likely tokens; 0: all tokens",
       &sampling.top_k,
       {.low = 0, .group = "Sampling"}},
      {"top-p",
       "sample among the fewest tokens whose probabilities sum to at least this; 1: all tokens",
       &sampling.top_p,
       {.low = 0, .high = 1, .group = "Sampling"}},
      {"min-p",
       "drop tokens whose probability is less than this fraction of the most likely token's; 0: none",
       &sampling.min_p,
       {.low = 0, .high = 1, .group = "Sampling"}},
      {"typical-p",
       "sample among the tokens whose log-probability is closest to its mean, as few as have at least this total "
       "probability; 1: all tokens",
       &sampling.typical_p,
       {.low = 0, .high = 1, .group = "Sampling"}},
      {"repetition-penalty",
       "makes tokens of the text less likely to come again: divides positive logits, multiplies negative ones; 1: no "
       "penalty",
       &sampling.repetition_penalty,
       {.group = "Sampling"}},
      {"stop", "a text; a continuation ends before it", &options.stop, {.group = "Text"}},
      {"truncate",
       "keep the end of prompts that are longer than the model's context, instead of failing",
       &options.generate.truncate,
       {.group = "Text"}},
      {"json",
       "print each text as a JSON string on one line, because texts may have line breaks",
       &flags->json,
       {.group = "Output"}},
      {"seed", "seed of the random numbers; equal seeds give equal texts", &sampling.seed, {.group = "Sampling"}},
      {"batch",
       "maximum number of prompts continued at once; it changes no text",
       &options.batch,
       {.low = 1, .high = 4096, .group = "Run"}},
      WeightsRow(&options.weights),
      {"threads",
       "number of threads; 0: one for each core. Results do not depend on it",
       &options.threads,
       {.low = 0, .high = 1024, .group = "Run"}},
  };
}

void Write(absl::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

// Continues `prompts`, the tokens of `texts`. When all are complete, prints each text with its continuation.
absl::Status PrintAll(TextGenerator* generator, bool json, std::vector<std::string> texts,
                      absl::Span<const TokenIds> prompts) {
  WEFT_RETURN_IF_ERROR(
      Failure(generator->Continue(prompts, [&](size_t i, const std::string& text) { texts[i] += text; })));
  for (const std::string& text : texts) {
    Write(absl::StrCat(json ? JsonLine(text) : text, "\n"));
  }
  return absl::OkStatus();
}

// Prints the prompt, then each piece of its continuation when it is generated. With `json`, prints both at the end.
absl::Status PrintOne(TextGenerator* generator, bool json, const std::string& prompt) {
  WEFT_ASSIGN_OR_RETURN(const TokenIds ids, generator->Encode(prompt));
  if (json) return PrintAll(generator, json, {prompt}, {ids});
  Write(prompt);
  const absl::Status status = generator->Continue({ids}, [](size_t, const std::string& text) {
    Write(text);
    std::fflush(stdout);
  });
  Write("\n");
  return Failure(status);
}

absl::Status Generate(GenerateFlags flags) {
  WEFT_RETURN_IF_ERROR(SetFromFlags(flags.given, Table(&flags)));
  if (flags.model.empty()) return InvalidArgument("--model=DIR is missing: a run, or a published model");
  WEFT_RETURN_IF_ERROR(Validate(flags.options.generate.sampling));
  const bool prompt = flags.given.count("prompt") > 0;
  if (prompt && !flags.files.empty()) {
    return InvalidArgument("--prompt and the file ", flags.files[0], " exclude each other");
  }
  WEFT_ASSIGN_OR_RETURN(const auto generator, UsageError(TextGenerator::Open(flags.model, flags.options)));
  if (prompt || (flags.files.empty() && isatty(STDIN_FILENO) != 0)) {
    return PrintOne(generator.get(), flags.json, flags.prompt);
  }
  bool any = !flags.files.empty();
  const auto encode = [&](absl::string_view line) -> absl::StatusOr<TokenIds> {
    any = true;
    if (line.empty()) return InvalidArgument("it is empty, but a prompt is wanted");
    return generator->Encode(line);
  };
  const auto print = [&](const TextLines& lines, absl::Span<const TokenIds> prompts) {
    const std::vector<std::string> texts(lines.lines.begin(), lines.lines.begin() + prompts.size());
    return PrintAll(generator.get(), flags.json, texts, prompts);
  };
  WEFT_RETURN_IF_ERROR(AnswerLines(flags.files, static_cast<size_t>(flags.options.batch), encode, print));
  return any ? absl::OkStatus() : PrintOne(generator.get(), flags.json, "");
}

}  // namespace

Command GenerateCommand(CLI::App* weft) {
  auto flags = std::make_shared<GenerateFlags>();
  CLI::App* app = AddCommand(
      weft, "generate",
      "Continues --prompt, or each line of files or of standard input, with a GPT, and prints the texts in order. "
      "Without any input it begins a new text. A text ends at the model's end token, at --stop or after --length "
      "tokens.");
  AddFlags(app, Table(flags.get()), &flags->given);
  AddFiles(app, &flags->files);
  return {"weft generate",
          app,
          [flags] { return Generate(*flags); },
          "continues a text with a GPT",
          {
              {"Continues a text, which the model writes again each time with another seed.",
               "weft generate --model=runs/gpt-1 --prompt='In the beginning' --seed=2"},
              {"Continues each line of a file in the most likely way.",
               "weft generate --model=runs/gpt-1 --temperature=0 --length=40 prompts.txt"},
          }};
}

}  // namespace weft
