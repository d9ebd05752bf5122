#include "weft/inference/generate.h"

#include <unistd.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "weft/apps/commands.h"
#include "weft/apps/flags.h"
#include "weft/apps/lines.h"
#include "weft/core/status.h"
#include "weft/inference/open_model.h"
#include "weft/text/text_stream.h"

namespace weft {
namespace {

struct GenerateFlags {
  std::string model, tokenizer, prompt, stop;
  GenerateOptions options = {.sampling = {.temperature = 0.8, .seed = 1}, .length = 500};
  int64_t threads = 0, batch = 8;
  bool json = false;
  std::vector<std::string> files;
  GivenFlags given;
};

Hyperparameters Table(GenerateFlags* flags) {
  SamplingOptions& sampling = flags->options.sampling;
  return {
      {"model", "a run of weft train gpt, a Hugging Face folder of GPT-2 or Llama, or a file of llama2.c",
       &flags->model},
      {"tokenizer", "another than the model's: weft tokenize takes the same", &flags->tokenizer},
      {"prompt",
       "the text to continue, in place of files; empty: from a beginning",
       &flags->prompt,
       {.may_be_empty = true}},
      {"length", "the most tokens to add", &flags->options.length, {.low = 0}},
      {"temperature", "divides the logits; 0: always the likeliest token", &sampling.temperature, {.low = 0}},
      {"top-k", "draw among the k likeliest; 0: among all", &sampling.top_k, {.low = 0}},
      {"top-p", "draw among the fewest that have this probability together", &sampling.top_p, {.low = 0, .high = 1}},
      {"repetition-penalty", "divides logits above 0 of tokens that were there, multiplies those below",
       &sampling.repetition_penalty},
      {"stop", "a text before which the continuation ends", &flags->stop},
      {"truncate", "of prompts longer than the model's context take the end, else they are errors",
       &flags->options.truncate},
      {"json", "print each text as a JSON string in a line of its own: texts may have line breaks", &flags->json},
      {"seed", "one seed gives one text", &sampling.seed},
      {"batch", "the most prompts that are continued at once", &flags->batch, {.low = 1, .high = 4096}},
      {"threads", "threads to compute with; 0: one a core", &flags->threads, {.low = 0, .high = 1024}},
  };
}

void Write(absl::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

class Continuer {
 public:
  static absl::StatusOr<std::unique_ptr<Continuer>> Create(const GenerateFlags& flags) {
    WEFT_ASSIGN_OR_RETURN(OpenedGpt gpt, OpenGpt(flags.model, flags.tokenizer));
    auto continuer = std::unique_ptr<Continuer>(new Continuer(flags, std::move(gpt)));
    WEFT_ASSIGN_OR_RETURN(continuer->generator_,
                          Generator::Create(continuer->gpt_.model.config, &continuer->parameters_,
                                            {.batch = flags.batch, .threads = static_cast<int>(flags.threads)}));
    WEFT_RETURN_IF_ERROR(continuer->parameters_.Set(flags.model, continuer->gpt_.model.weights.tensors()));
    // Between two texts there is an end, or a beginning.
    const SpecialTokens& special = continuer->gpt_.tokenizer->special_tokens();
    for (const auto& id : {special.end, special.begin}) {
      if (id.has_value()) continuer->options_.stop.push_back(*id);
    }
    return continuer;
  }

  // The tokens of a prompt, as the model's format begins.
  absl::StatusOr<std::vector<int32_t>> Encode(absl::string_view prompt) const {
    const Tokenizer& tokenizer = *gpt_.tokenizer;
    WEFT_ASSIGN_OR_RETURN(std::vector<int32_t> ids, tokenizer.Encode(prompt));
    if (ids.empty()) return BeginningOfText(tokenizer);
    ids = tokenizer.Wrap(ids).ids;
    if (ids.back() == tokenizer.special_tokens().end) ids.pop_back();
    const int64_t count = static_cast<int64_t>(ids.size());
    if (count <= gpt_.model.config.context || options_.truncate) return ids;
    return absl::InvalidArgumentError(absl::StrCat("it has ", count, " tokens, but the model's context is ",
                                                   gpt_.model.config.context,
                                                   "; --truncate takes the end of such texts"));
  }

  // Prints the prompt and what follows as it comes.
  absl::Status Stream(const std::string& prompt) {
    WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, Encode(prompt));
    if (json_) return Print({prompt}, {ids});
    Write(prompt);
    const absl::Status status = Continue({ids}, [](size_t, const std::string& text) {
      Write(text);
      std::fflush(stdout);
    });
    Write("\n");
    return Failure(status);
  }

  // Prints a text for each line: those before the first that can't be used, and then returns what is wrong with that.
  absl::Status Lines(absl::Span<const Line> lines) {
    const auto encode = [this](absl::string_view line) -> absl::StatusOr<TokenIds> {
      if (line.empty()) return absl::InvalidArgumentError("it is empty, but a prompt is wanted");
      return Encode(line);
    };
    return AnswerLines(lines, encode, [&](absl::Span<const TokenIds> prompts) {
      std::vector<std::string> texts;
      for (size_t i = 0; i < prompts.size(); ++i) texts.push_back(lines[i].text);
      return Print(std::move(texts), prompts);
    });
  }

 private:
  Continuer(const GenerateFlags& flags, OpenedGpt gpt)
      : gpt_(std::move(gpt)), options_(flags.options), stop_(flags.stop), json_(flags.json) {}

  // `texts` with what follows each, whose tokens are `prompts`.
  absl::Status Print(std::vector<std::string> texts, absl::Span<const TokenIds> prompts) {
    WEFT_RETURN_IF_ERROR(Failure(Continue(prompts, [&](size_t i, const std::string& text) { texts[i] += text; })));
    for (const std::string& text : texts) {
      const auto quoted = [&] {
        return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
      };
      Write(absl::StrCat(json_ ? quoted() : text, "\n"));
    }
    return absl::OkStatus();
  }

  absl::Status Continue(absl::Span<const TokenIds> prompts,
                        const std::function<void(size_t, const std::string&)>& print) {
    std::vector<TextStream> streams;
    for (const auto& prompt : prompts) streams.emplace_back(*gpt_.tokenizer, prompt, stop_);
    absl::Status status;
    const auto sink = [&](size_t i, int32_t token) {
      // A model may have rows beyond the tokenizer's tokens; what they would say is nothing.
      const bool known = token < gpt_.tokenizer->vocabulary_size();
      const absl::StatusOr<std::string> text = known ? streams[i].Add(token) : std::string();
      if (!text.ok()) {
        status = text.status();
        return false;
      }
      print(i, *text);
      return !streams[i].stopped();
    };
    WEFT_RETURN_IF_ERROR(generator_->Generate(prompts, options_, sink).status());
    for (size_t i = 0; i < streams.size(); ++i) print(i, streams[i].Finish());
    return status;
  }

  const OpenedGpt gpt_;
  GenerateOptions options_;
  const std::string stop_;
  const bool json_;
  Parameters parameters_{{.draw = false}};
  std::unique_ptr<Generator> generator_;
};

absl::Status Generate(GenerateFlags flags) {
  WEFT_RETURN_IF_ERROR(SetFromFlags(flags.given, Table(&flags)));
  if (flags.model.empty()) return absl::InvalidArgumentError("--model=DIR is missing: a run, or a published model");
  WEFT_RETURN_IF_ERROR(Validate(flags.options.sampling));
  const bool prompt = flags.given.count("prompt") > 0;
  if (prompt && !flags.files.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("--prompt and the file ", flags.files[0], " exclude each other"));
  }
  const absl::StatusOr<std::unique_ptr<Continuer>> continuer = Continuer::Create(flags);
  if (!continuer.ok()) return UsageError(continuer.status());
  if (prompt || (flags.files.empty() && isatty(STDIN_FILENO) != 0)) return (*continuer)->Stream(flags.prompt);
  bool any = false;
  WEFT_RETURN_IF_ERROR(ForEachBatch(flags.files, static_cast<size_t>(flags.batch), [&](absl::Span<const Line> lines) {
    any = true;
    return (*continuer)->Lines(lines);
  }));
  return any || !flags.files.empty() ? absl::OkStatus() : (*continuer)->Stream("");
}

}  // namespace

Command GenerateCommand(CLI::App* weft) {
  auto flags = std::make_shared<GenerateFlags>();
  CLI::App* app = AddCommand(
      weft, "generate",
      "Continues --prompt, or each line of files or of standard input, with a GPT: a text for each, in their order. "
      "Without any of them it begins a text. A text ends at the model's end token, at --stop or after --length "
      "tokens.");
  AddFlags(app, Table(flags.get()), &flags->given);
  AddFiles(app, &flags->files);
  return {"weft generate", app, [flags] { return Generate(*flags); }};
}

}  // namespace weft
