#include <cstdio>
#include <memory>

#include "weft/apps/commands.h"
#include "weft/apps/flags.h"
#include "weft/apps/gpt_options.h"
#include "weft/core/status.h"
#include "weft/graph/compile.h"
#include "weft/graph/print.h"

namespace weft {
namespace {

struct GraphFlags {
  GptOptions options;
  int64_t vocabulary = 73;
  std::string stage = "compiled", format = "text", mode = "train", config;
  bool memory = false, explain = false;
  GivenFlags given;
};

Hyperparameters Table(GraphFlags* flags) {
  Hyperparameters table = {
      {"stage", "as it was recorded, or as it runs", &flags->stage, {.choices = {"recorded", "compiled"}}},
      {"format", "one node a line, or Graphviz's DOT", &flags->format, {.choices = {"text", "dot"}}},
      {"mode", "the training step, or the loss alone", &flags->mode, {.choices = {"train", "eval"}}},
      {"precision",
       "of products and what lies between them",
       &flags->options.trainer.precision,
       {.choices = {"f32", "bf16"}}},
      {"memory", "print what memory the compiled graph takes, and not the graph", &flags->memory},
      {"memory-budget",
       "the most bytes that its values may take, like 500M; 0: no limit",
       &flags->options.trainer.memory_budget,
       {.is_bytes = true}},
      {"explain", "print which patterns became ops of their own, or why they did not, and not the graph",
       &flags->explain},
      {"vocabulary",
       "different tokens; as given: those of the King James Bible",
       &flags->vocabulary,
       {.low = 1, .high = 1e7}},
      {"batch", "windows in a batch", &flags->options.batch, {.low = 1, .high = 1e6}},
  };
  table.insert(table.begin(), {"config", "a JSON file, or the config.json of a run", &flags->config});
  const Hyperparameters model = ModelHyperparameters(&flags->options);
  table.insert(table.end(), model.begin(), model.end());
  return table;
}

absl::Status PrintGraph(GraphFlags flags) {
  const Hyperparameters table = Table(&flags);
  GivenFlags given = flags.given;
  if (const auto config = given.extract("config")) {
    WEFT_RETURN_IF_ERROR(SetFromText(config.mapped(), table.front()));
    const absl::StatusOr<nlohmann::ordered_json> json = ReadJsonFile(flags.config);
    if (!json.ok()) return UsageError(json.status());
    WEFT_RETURN_IF_ERROR(Annotate(SetFromConfig(*json, &flags.options), flags.config));
  }
  WEFT_RETURN_IF_ERROR(SetFromFlags(given, table));
  const size_t of_compiled = given.count("mode") + given.count("precision") + given.count("memory-budget");
  if (flags.stage == "recorded" && (of_compiled > 0 || flags.memory || flags.explain)) {
    return absl::InvalidArgumentError(
        "--mode, --precision, --memory, --memory-budget and --explain are of the compiled graph, not of "
        "--stage=recorded");
  }
  if ((flags.memory || flags.explain) && given.count("format") > 0) {
    return absl::InvalidArgumentError("--format is of the graph, which --memory and --explain don't print");
  }
  WEFT_RETURN_IF_ERROR(Finish(&flags.options));
  flags.options.model.vocabulary = flags.vocabulary;
  const std::unique_ptr<GptProgram> program = RecordTraining(flags.options);
  WEFT_RETURN_IF_ERROR(program->tape.status());
  const bool dot = flags.format == "dot";
  std::string text;
  if (flags.stage == "recorded") {
    text = dot ? PrintDot(program->tape.program()) : PrintText(program->tape.program());
  } else {
    CompileOptions options = {.fetch = {program->training.loss}, .memory_budget = flags.options.trainer.memory_budget};
    if (flags.options.trainer.precision == "bf16") options.precision = kBF16;
    if (flags.mode == "train") {
      options.update = {program->training.update};
    } else {
      options.mode = kEval;
    }
    WEFT_ASSIGN_OR_RETURN(const Graph graph, Compile(program->tape, options));
    if (flags.memory) text += PrintMemory(graph);
    if (flags.explain) text += PrintExplanations(graph);
    if (!flags.memory && !flags.explain) text = dot ? PrintDot(graph.program()) : PrintText(graph);
  }
  std::fputs(text.c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace

Command GraphCommand(CLI::App* weft) {
  auto flags = std::make_shared<GraphFlags>();
  CLI::App* app = weft->add_subcommand("graph", "Prints the graph of a GPT's training step.");
  AddFlags(app, Table(flags.get()), &flags->given);
  return {"weft graph", app, [flags] { return PrintGraph(*flags); }};
}

}  // namespace weft
