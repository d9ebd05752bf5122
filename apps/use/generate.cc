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
#include "weft/apps/streams.h"
#include "weft/apps/use/generator_rows.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/inference/generate/text_generation.h"
#include "weft/text/data/lines.h"

namespace weft {
namespace {

struct GenerateFlags : ModelFlags {
  std::string prompt;
  TextGeneratorOptions options = kUsualGeneration;
  bool json = false;
};

Hyperparameters Table(GenerateFlags* flags) {
  Hyperparameters table = {
      ModelRow(kGptModel, &flags->model),
      {"prompt",
       "the text to continue, instead of files; if it is empty, a new text begins",
       &flags->prompt,
       {.may_be_empty = true, .group = "Text"}},
      {"json",
       "print each text as a JSON string on one line, because texts may have line breaks",
       &flags->json,
       {.group = "Output"}},
  };
  Append(GenerateRows(&flags->options), &table);
  return table;
}

void Write(absl::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

nlohmann::ordered_json LogprobJson(const TextGenerator& generator, const TokenLogprob& token) {
  return {{"id", token.token}, {"text", generator.TokenText(token.token)}, {"logprob", token.logprob}};
}

// Continues `prompts`, the tokens of `texts`. When all are complete, prints each text with its continuation.
absl::Status PrintAll(TextGenerator* generator, const GenerateFlags& flags, std::vector<std::string> texts,
                      absl::Span<const TokenIds> prompts) {
  std::vector<nlohmann::ordered_json> tokens(texts.size(), nlohmann::ordered_json::array());
  const bool logprobs = flags.options.generate.logprobs >= 0;
  WEFT_RETURN_IF_ERROR(Failure(generator->Continue(prompts, [&](const GeneratedToken& token) {
    texts[token.prompt] += token.text;
    if (token.logprobs.empty()) return true;
    nlohmann::ordered_json& next = tokens[token.prompt].emplace_back(LogprobJson(*generator, token.logprobs[0]));
    for (const TokenLogprob& likely : absl::MakeConstSpan(token.logprobs).subspan(1)) {
      next["likeliest"].push_back(LogprobJson(*generator, likely));
    }
    return true;
  })));
  for (size_t i = 0; i < texts.size(); ++i) {
    nlohmann::ordered_json json = texts[i];
    if (logprobs) json = {{"text", texts[i]}, {"tokens", tokens[i]}};
    Write(absl::StrCat(flags.json ? JsonLine(json) : texts[i], "\n"));
  }
  return absl::OkStatus();
}

// Prints the prompt, then each piece of its continuation when it is generated. With --json, prints both at the end.
absl::Status PrintOne(TextGenerator* generator, const GenerateFlags& flags, const std::string& prompt) {
  WEFT_ASSIGN_OR_RETURN(const TokenIds ids, generator->Encode(prompt));
  if (flags.json) return PrintAll(generator, flags, {prompt}, {ids});
  Write(prompt);
  const absl::Status status = generator->Continue({ids}, [](const GeneratedToken& generated) {
    Write(generated.text);
    std::fflush(stdout);
    return true;
  });
  Write("\n");
  return Failure(status);
}

// Continues the prompts that the flags name.
absl::Status Continue(TextGenerator* generator, const GenerateFlags& flags) {
  if (flags.given.contains("prompt") || (flags.files.empty() && isatty(STDIN_FILENO) != 0)) {
    return PrintOne(generator, flags, flags.prompt);
  }
  bool any = !flags.files.empty();
  const auto encode = [&](absl::string_view line) {
    any = true;
    return generator->Encode(line);
  };
  const auto print = [&](const TextLines& lines, absl::Span<const TokenIds> prompts) {
    const std::vector<std::string> texts(lines.lines.begin(), lines.lines.begin() + prompts.size());
    return PrintAll(generator, flags, texts, prompts);
  };
  // Lines of files wait together, so that a text that ends makes room for the next.
  constexpr size_t kBatches = 64;
  const size_t lines =
      static_cast<size_t>(flags.options.runtime.batch) * (ReadsStandardInput(flags.files) ? 1 : kBatches);
  WEFT_RETURN_IF_ERROR(AnswerLines(flags.files, lines, encode, print));
  return any ? absl::OkStatus() : PrintOne(generator, flags, "");
}

absl::Status Generate(GenerateFlags flags) {
  WEFT_RETURN_IF_ERROR(Validate(flags.options.generate.sampling));
  if (flags.options.generate.logprobs >= 0 && !flags.json) return InvalidArgument("--logprobs needs --json");
  if (flags.given.contains("prompt") && !flags.files.empty()) {
    return InvalidArgument("--prompt and the file ", flags.files[0], " exclude each other");
  }
  PrintMemoryNote(flags.model);
  WEFT_ASSIGN_OR_RETURN(OpenedGpt gpt, OpenForCommand(flags.model, flags.given, /*beams=*/true, &flags.options));
  WEFT_ASSIGN_OR_RETURN(const auto generator, UsageError(TextGenerator::Create(std::move(gpt), flags.options)));
  WEFT_RETURN_IF_ERROR(Continue(generator.get(), flags));
  PrintFullNote(*generator);
  return absl::OkStatus();
}

}  // namespace

Command GenerateCommand(CLI::App* weft, const std::string& name) {
  return MakeCommand(
      weft, name,
      {"Continues --prompt, or each line of files or of standard input, with a GPT, and prints the texts in order. "
       "Without any input it begins a new text. A text ends at the model's end token, at --stop or after --length "
       "tokens.",
       "continues a text with a GPT",
       {{"Continues a text, which the model writes again each time with another seed.",
         "weft generate --model=runs/gpt-1 --prompt='In the beginning' --seed=2"},
        {"Continues each line of a file in the most likely way.",
         "weft generate --model=runs/gpt-1 --temperature=0 --length=40 prompts.txt"}}},
      std::make_shared<GenerateFlags>(), Table, Generate, &GenerateFlags::files);
}

}  // namespace weft
