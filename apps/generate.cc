#include "weft/models/generate.h"

#include <cstdio>
#include <memory>

#include "weft/apps/commands.h"
#include "weft/apps/flags.h"
#include "weft/apps/gpt_options.h"
#include "weft/core/file.h"
#include "weft/core/status.h"
#include "weft/text/character_tokenizer.h"
#include "weft/train/checkpoint.h"

namespace weft {
namespace {

struct GenerateFlags {
  std::string model, prompt;
  GenerateOptions options = {.length = 500, .temperature = 0.8, .seed = 1};
  int64_t threads = 0;
  GivenFlags given;
};

Hyperparameters Table(GenerateFlags* flags) {
  return {
      {"model", "the folder of a run of weft train gpt", &flags->model},
      {"prompt", "the text to continue; empty: a new line", &flags->prompt, {.may_be_empty = true}},
      {"length", "characters to add", &flags->options.length, {.low = 0}},
      {"temperature", "divides the logits; 0: always the likeliest character", &flags->options.temperature, {.low = 0}},
      {"top-k", "draw among the k likeliest; 0: among all", &flags->options.top_k, {.low = 0}},
      {"seed", "one seed gives one text", &flags->options.seed},
      {"threads", "threads to compute with; 0: one a core", &flags->threads, {.low = 0, .high = 1024}},
  };
}

struct Model {
  GptOptions options;
  CharacterTokenizer tokenizer;
};

absl::StatusOr<Model> ReadModel(const std::string& folder) {
  if (folder.empty()) return absl::InvalidArgumentError("--model=DIR is missing: the folder of a run");
  GptOptions options;
  const std::string config = folder + "/config.json", vocabulary = folder + "/tokenizer.json";
  WEFT_ASSIGN_OR_RETURN(const nlohmann::ordered_json json, ReadJsonFile(config));
  WEFT_RETURN_IF_ERROR(Annotate(SetFromConfig(json, &options), config));
  WEFT_RETURN_IF_ERROR(Annotate(Finish(&options), config));
  WEFT_ASSIGN_OR_RETURN(const std::string contents, ReadFile(vocabulary));
  absl::StatusOr<CharacterTokenizer> tokenizer = CharacterTokenizer::FromJson(contents);
  WEFT_RETURN_IF_ERROR(Annotate(tokenizer.status(), vocabulary));
  options.model.vocabulary = tokenizer->vocabulary_size();
  return Model{options, *std::move(tokenizer)};
}

absl::Status Generate(GenerateFlags flags) {
  WEFT_RETURN_IF_ERROR(SetFromFlags(flags.given, Table(&flags)));
  const absl::StatusOr<Model> model = ReadModel(flags.model);
  if (!model.ok()) return UsageError(model.status());
  WEFT_ASSIGN_OR_RETURN(std::vector<int32_t> prompt, model->tokenizer.Encode(flags.prompt));
  if (prompt.empty()) prompt = {model->tokenizer.StartToken()};

  Parameters parameters({.draw = false});
  WEFT_ASSIGN_OR_RETURN(const auto generator,
                        Generator::Create(model->options.model, &parameters, static_cast<int>(flags.threads)));
  WEFT_RETURN_IF_ERROR(UsageError(LoadRunWeights(flags.model, &parameters)));
  const auto write = [](const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  };
  write(flags.prompt);
  const auto print = [&](int32_t token) { write(*model->tokenizer.Decode({token})); };
  const absl::Status status = Failure(generator->Generate(prompt, flags.options, print).status());
  write("\n");
  return status;
}

}  // namespace

Command GenerateCommand(CLI::App* weft) {
  auto flags = std::make_shared<GenerateFlags>();
  CLI::App* app = weft->add_subcommand("generate", "Continues a text with a model that weft train gpt made.");
  AddFlags(app, Table(flags.get()), &flags->given);
  return {"weft generate", app, [flags] { return Generate(*flags); }};
}

}  // namespace weft
