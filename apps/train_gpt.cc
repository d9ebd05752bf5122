#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weft/apps/commands.h"
#include "weft/apps/flags.h"
#include "weft/apps/gpt_options.h"
#include "weft/core/file.h"
#include "weft/core/status.h"
#include "weft/models/generate.h"
#include "weft/text/character_tokenizer.h"
#include "weft/text/corpus.h"
#include "weft/text/utf8.h"
#include "weft/train/run_directory.h"

namespace weft {
namespace {

struct TrainGptFlags {
  GptOptions defaults;  // the rows of the table that the flags were made of
  GivenFlags given;
  std::string config;
  RunDirectoryOptions run = {.name = "gpt"};
};

Hyperparameters RunTable(TrainGptFlags* flags) {
  return {
      {"config", "a JSON file: {\"steps\": 100, \"learning_rate\": 3e-4, ...}", &flags->config},
      {"out", "the run's folder; without it, runs/gpt-N with the next free N", &flags->run.out},
      {"resume", "continue a run: that of --out, or the newest of runs/gpt-N", &flags->run.resume},
      {"overwrite", "replace the run that --out holds", &flags->run.overwrite},
  };
}

// A resumed run keeps what its config.json says, but for the rows that may change.
absl::Status CheckUnchanged(GptOptions before, GptOptions now) {
  const Hyperparameters old_table = AllHyperparameters(&before), table = AllHyperparameters(&now);
  for (size_t i = 0; i < table.size(); ++i) {
    if (table[i].rules.may_change || table[i].json() == old_table[i].json()) continue;
    return absl::InvalidArgumentError(absl::StrCat("a resumed run can't change ", table[i].flag, ": it has '",
                                                   old_table[i].text(), "', asked for is '", table[i].text(), "'"));
  }
  return absl::OkStatus();
}

// Defaults, then a resumed run's own config.json, then --config, then flags.
absl::StatusOr<GptOptions> ReadOptions(const TrainGptFlags& flags, const RunDirectory& run) {
  GptOptions options;
  if (flags.run.resume) {
    WEFT_RETURN_IF_ERROR(Annotate(SetFromConfig(run.config(), &options), run.File("config.json")));
  }
  const GptOptions before = options;
  if (!flags.config.empty()) {
    WEFT_ASSIGN_OR_RETURN(const nlohmann::ordered_json json, ReadJsonFile(flags.config));
    WEFT_RETURN_IF_ERROR(Annotate(SetFromConfig(json, &options), flags.config));
  }
  WEFT_RETURN_IF_ERROR(SetFromFlags(flags.given, AllHyperparameters(&options)));
  if (!options.data.empty()) {
    std::error_code error;
    options.data = std::filesystem::absolute(options.data, error).string();
    WEFT_RETURN_IF_ERROR(SystemStatus("find", options.data, error.value()));
    if (!CheckUtf8(options.data).ok()) {
      return absl::InvalidArgumentError("--data: the path is not UTF-8, as config.json needs it");
    }
  }
  if (flags.run.resume) WEFT_RETURN_IF_ERROR(CheckUnchanged(before, options));
  WEFT_RETURN_IF_ERROR(Finish(&options));
  return options;
}

struct Data {
  CharacterTokenizer tokenizer;
  TokenCorpus corpus;
  std::string fingerprint;
};

absl::StatusOr<Data> ReadData(const GptOptions& options) {
  WEFT_ASSIGN_OR_RETURN(const std::string text, options.data.empty() ? ReadKingJamesBible() : ReadText(options.data));
  WEFT_ASSIGN_OR_RETURN(CharacterTokenizer tokenizer, CharacterTokenizer::FromText(text));
  WEFT_ASSIGN_OR_RETURN(std::vector<int32_t> tokens, tokenizer.Encode(text));
  WEFT_ASSIGN_OR_RETURN(TokenCorpus corpus, TokenCorpus::Create(std::move(tokens), options.model.context));
  return Data{std::move(tokenizer), std::move(corpus), absl::StrFormat("%016x", HashName(text))};
}

// Prints what the model writes after a newline, and keeps it in sample.txt.
absl::Status Sample(const GptOptions& options, const CharacterTokenizer& tokenizer, const RunDirectory& run,
                    Parameters* parameters) {
  if (options.sample_length == 0) return absl::OkStatus();
  WEFT_ASSIGN_OR_RETURN(const auto generator,
                        Generator::Create(options.model, parameters, static_cast<int>(options.trainer.threads)));
  WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens,
                        generator->Generate({tokenizer.StartToken()}, {.length = options.sample_length,
                                                                       .temperature = options.sample_temperature,
                                                                       .seed = options.trainer.seed}));
  WEFT_ASSIGN_OR_RETURN(std::string text, tokenizer.Decode(tokens));
  text += "\n";
  std::printf("sample:\n");
  std::fwrite(text.data(), 1, text.size(), stdout);
  return WriteFile(run.File("sample.txt"), {text});
}

absl::Status TrainGpt(TrainGptFlags flags) {
  WEFT_RETURN_IF_ERROR(SetFromFlags(flags.given, RunTable(&flags)));
  absl::StatusOr<RunDirectory> run = RunDirectory::Find(flags.run);
  if (!run.ok()) return UsageError(run.status());
  absl::StatusOr<GptOptions> options = ReadOptions(flags, *run);
  if (!options.ok()) return UsageError(options.status());
  const absl::StatusOr<Data> data = ReadData(*options);
  if (!data.ok()) return UsageError(data.status());
  options->model.vocabulary = data->tokenizer.vocabulary_size();

  const std::unique_ptr<GptProgram> program = RecordTraining(*options);
  WEFT_RETURN_IF_ERROR(program->tape.status());
  Parameters parameters({.seed = options->trainer.seed});
  WEFT_ASSIGN_OR_RETURN(
      const std::unique_ptr<Trainer> trainer,
      Trainer::Create(options->trainer, program->training, &data->corpus, data->fingerprint, &parameters, &*run));
  bool resumed = false;
  if (flags.run.resume) {
    absl::StatusOr<bool> found = trainer->Resume();
    if (!found.ok())
      return absl::IsFailedPrecondition(found.status()) ? UsageError(found.status()) : Failure(found.status());
    resumed = *found;
    if (trainer->step() > options->trainer.steps) {
      return absl::InvalidArgumentError(absl::StrCat("the run has made ", trainer->step(),
                                                     " steps already, more than the ", options->trainer.steps,
                                                     " that it should have"));
    }
  }
  WEFT_RETURN_IF_ERROR(UsageError(run->Begin(ToConfig(*options))));
  WEFT_RETURN_IF_ERROR(Failure(WriteFile(run->File("tokenizer.json"), {data->tokenizer.ToJson()})));

  std::signal(SIGPIPE, SIG_IGN);  // whoever reads along may leave
  std::signal(SIGXFSZ, SIG_IGN);  // a file at its limit is an error like a full disk
  Progress progress({.terminal = isatty(STDOUT_FILENO) != 0, .log_every = options->trainer.log_every});
  progress.Say(absl::StrCat("training a GPT of ", parameters.ElementCount(), " parameters on ",
                            data->corpus.tokens(CorpusPart::kTrain).size(), " characters (", options->model.vocabulary,
                            " different) in ", run->path()));
  if (resumed) progress.Say(absl::StrCat("resumed after step ", trainer->step()));
  if (flags.run.resume && !resumed) progress.Say("nothing was saved yet to resume from: starting at step 0");
  WEFT_RETURN_IF_ERROR(Failure(trainer->Train(&progress)));
  progress.Say(absl::StrCat("saved ", run->File("model.safetensors")));
  return Failure(Sample(*options, data->tokenizer, *run, &parameters));
}

}  // namespace

Command TrainGptCommand(CLI::App* train) {
  auto flags = std::make_shared<TrainGptFlags>();
  CLI::App* app = train->add_subcommand(
      "gpt", "Trains a character GPT: without a flag, 0.8 million parameters on the King James Bible.");
  AddFlags(app, RunTable(flags.get()), &flags->given);
  AddFlags(app, AllHyperparameters(&flags->defaults), &flags->given);
  return {"weft train gpt", app, [flags] { return TrainGpt(*flags); }};
}

}  // namespace weft
