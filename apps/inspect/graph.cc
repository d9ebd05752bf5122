// `weft graph` prints the graph of a training step, as recorded or as compiled: of a run, of a named graph, or of a GPT
// with the options of the command line.
#include <cstdio>
#include <memory>

#include "weft/apps/commands.h"
#include "weft/apps/flags.h"
#include "weft/apps/inspect/step_flags.h"
#include "weft/base/status.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/compile/print.h"
#include "weft/lab/fold.h"
#include "weft/lab/graph_page.h"
#include "weft/lab/page.h"
#include "weft/lab/ranks/rank_step.h"
#include "weft/lab/real_graphs.h"
#include "weft/models/options.h"
#include "weft/train/jobs/gpt_job.h"
#include "weft/train/loop/options.h"

namespace weft {
namespace {

constexpr char kCompiled[] = "stage=compiled";  // Rules::needs of flags that apply only to the compiled graph

struct GraphFlags {
  GptOptions options;
  int64_t vocabulary = 73;
  int64_t ranks = 1, rank = 0;
  int64_t depth = 2;  // two levels, "gpt/h.0": each block is a box
  ChoiceFlags choice;
  std::string stage = "compiled", format = "text", mode = "train", config;
  bool memory = false, explain = false;
  GivenFlags given;
};

// Returns the rows of flags that are about any graph.
Hyperparameters PrintTable(GraphFlags* flags) {
  return {
      {"stage", "the program as recorded or as compiled", &flags->stage, {.choices = {"recorded", "compiled"}}},
      {"format",
       "text: one node a line; dot, json, html: folded into boxes, for Graphviz, other programs or a browser",
       &flags->format,
       {.choices = {"text", "dot", "json", "html"}, .needs = "no memory, no explain"}},
      {"depth",
       "levels of scope at which dot, json and html fold nodes into boxes; 0: a box for each node",
       &flags->depth,
       {.low = 0, .high = 100, .needs = "format=dot|json|html, no memory, no explain"}},
      {"mode",
       "train: the whole training step; eval: the loss alone",
       &flags->mode,
       {.choices = {"train", "eval"}, .needs = kCompiled}},
      ChoiceRow<DType>("precision", "number format of matrix products and of the values between them", kPrecisionNames,
                       &flags->options.training.trainer.precision, {.needs = kCompiled}),
      {"memory", "print the compiled graph's memory plan instead of the graph", &flags->memory, {.needs = kCompiled}},
      {"memory-budget",
       "maximum number of bytes for the graph's values, such as 500M; 0: no maximum",
       &flags->options.training.trainer.memory_budget,
       {.is_bytes = true, .needs = kCompiled}},
      {"explain",
       "print which patterns were fused into one op, why others were not, and what bounds the speedup on many "
       "threads, instead of the graph",
       &flags->explain,
       {.needs = kCompiled}},
      {"graph",
       "a model whose training step is printed, instead of a GPT's",
       &flags->choice.graph,
       {.choices = RealGraphNames()}},
      {"step",
       "of a run: the training step, counted from 0, whose batch is taken",
       &flags->choice.step,
       {.low = 0, .high = 1e9}},
      {"ranks",
       "of a run or a model: print the graph that adds the gradients of this number of ranks, with its messages",
       &flags->ranks,
       {.low = 1, .high = 4096}},
      {"rank",
       "the rank whose graph is printed with --ranks",
       &flags->rank,
       {.low = 0, .high = 4095, .needs = "ranks"}},
  };
}

Hyperparameters Table(GraphFlags* flags) {
  Hyperparameters table = {
      {"config",
       "a JSON file of hyperparameters, such as a run's config.json; the number of tokens comes from --vocabulary",
       &flags->config,
       {.type = "FILE"}}};
  Append(PrintTable(flags), &table);
  Append(
      {
          {"vocabulary",
           "number of distinct tokens; default: the number of distinct characters in the King James Bible",
           &flags->vocabulary,
           {.low = 1, .high = 1e7}},
          {"batch", "number of windows in a batch", &flags->options.batch, {.low = 1, .high = 1e6}},
      },
      &table);
  Append(InGroup("Model", ModelRows(&flags->options.model)), &table);
  return table;
}

// Returns the text of `program` in the format of --format. `graph`: the compiled graph of `program`, or null.
std::string Print(const Program& program, const Graph* graph, const GraphFlags& flags) {
  if (flags.format == "text") return graph == nullptr ? PrintText(program) : PrintText(*graph);
  if (flags.format == "dot" && flags.depth == 0) return PrintDot(program);
  const CompiledGraph* compiled = graph == nullptr ? nullptr : &graph->compiled();
  const int depth = static_cast<int>(flags.depth);
  const Fold fold = FoldByScope(program, compiled == nullptr ? RecordedPhases(program) : Phases(*compiled), depth);
  if (flags.format == "dot") return PrintDot(fold);
  const std::string json = PrintJson(program, compiled, fold, depth);
  return flags.format == "json" ? json : FillPage(kGraphPage, json);
}

// Sets `flags` from the configuration file of --config, and then from the other flags, which override the file.
absl::Status ReadFlags(GraphFlags* flags) {
  const Hyperparameters table = Table(flags);
  GivenFlags given = flags->given;
  if (const auto config = given.extract("config")) {
    WEFT_RETURN_IF_ERROR(SetFromText(config.mapped(), table.front()));
    GptJob job;
    WEFT_RETURN_IF_ERROR(UsageError(SetOptions({.name = "gpt", .config = InputPath(flags->config)}, &job)));
    WEFT_RETURN_IF_ERROR(job.Check(nullptr));
    flags->options = job.options();
  }
  return SetFromFlags(given, table);
}

// Records the step of a GPT with the options of the command line.
absl::StatusOr<std::unique_ptr<RealGraph>> RecordGpt(GraphFlags* flags) {
  flags->options.model.vocabulary = flags->vocabulary;
  WEFT_RETURN_IF_ERROR(Validate(flags->options.model));
  const std::shared_ptr<GptProgram> program = RecordTraining(flags->options);
  const Optimizer optimizer = flags->options.training.optimizer;
  const Var rate = program->tape.Input("learning_rate", {kF32, {}});
  const DType precision = flags->options.training.trainer.precision;
  const Var update = optimizer.Minimize(program->training.loss, rate, {.precision = precision});
  WEFT_RETURN_IF_ERROR(program->tape.status());
  auto graph = std::make_unique<RealGraph>();
  graph->owner = program;
  graph->tape = &program->tape;
  graph->loss = program->training.loss;
  graph->options = {.fetch = {graph->loss}, .update = {update}, .precision = precision};
  return graph;
}

// Returns the run or graph that the command line names. Flags that do not concern printing change options of the run.
absl::StatusOr<GraphChoice> ToGraphChoice(GraphFlags* flags) {
  WEFT_ASSIGN_OR_RETURN(GraphChoice choice, ToChoice(flags->choice));
  choice.options = {flags->given.begin(), flags->given.end()};
  if (choice.options.count("config") > 0)
    return InvalidArgument("--config is of a GPT, but ", choice.name, " is named");
  for (const Hyperparameter& row : PrintTable(flags)) choice.options.erase(row.flag);
  if (choice.options.erase("batch") > 0) choice.batch = flags->options.batch;
  if (flags->given.count("precision") > 0) choice.precision = flags->options.training.trainer.precision;
  return choice;
}

// Records the step of the run or graph that the command line names.
absl::StatusOr<std::unique_ptr<RealGraph>> RecordChoice(GraphFlags* flags) {
  WEFT_ASSIGN_OR_RETURN(const GraphChoice choice, ToGraphChoice(flags));
  return UsageError(RecordGraph(choice));
}

// Returns the compiled graph of one of several ranks, which adds the gradients of all of them.
absl::StatusOr<Graph> RankGraph(GraphFlags* flags) {
  WEFT_RETURN_IF_ERROR(CheckNotGiven(flags->given, {"mode", "memory-budget"}, " is not for the graph of --ranks"));
  WEFT_ASSIGN_OR_RETURN(const GraphChoice choice, ToGraphChoice(flags));
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<RankStep> step,
                        UsageError(RankStep::Plan({.graph = choice,
                                                   .rank = static_cast<int>(flags->rank),
                                                   .ranks = static_cast<int>(flags->ranks),
                                                   .micro_batches = flags->ranks})));
  return step->graph_with_messages();
}

std::string Print(const Graph& graph, const GraphFlags& flags) {
  std::string text;
  if (flags.memory) text += PrintMemory(graph);
  if (flags.explain) text += PrintExplanations(graph) + PrintSpeedup(graph);
  if (!flags.memory && !flags.explain) text = Print(graph.program(), &graph, flags);
  return text;
}

absl::Status PrintGraph(GraphFlags flags) {
  WEFT_RETURN_IF_ERROR(ReadFlags(&flags));
  const bool chosen = !flags.choice.run.empty() || !flags.choice.graph.empty();
  if (!chosen && flags.choice.step > 0) return InvalidArgument("--step is of a run, but none is named");
  if (flags.ranks > 1) {
    if (!chosen || flags.stage == "recorded") {
      return InvalidArgument("--ranks is for the compiled graph of a run or of a model that --graph names");
    }
    WEFT_ASSIGN_OR_RETURN(const Graph graph, RankGraph(&flags));
    std::fputs(Print(graph, flags).c_str(), stdout);
    return absl::OkStatus();
  }
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<RealGraph> step, chosen ? RecordChoice(&flags) : RecordGpt(&flags));
  std::string text;
  if (flags.stage == "recorded") {
    text = Print(step->tape->program(), nullptr, flags);
  } else {
    const TrainerOptions& trainer = flags.options.training.trainer;
    if (!chosen || flags.given.count("memory-budget") > 0) step->options.memory_budget = trainer.memory_budget;
    if (flags.mode == "eval") {
      if (step->loss) step->options.fetch = {step->loss};
      step->options.update = {};
      step->options.mode = kEval;
    }
    WEFT_ASSIGN_OR_RETURN(const Graph graph, UsageError(Compile(*step->tape, step->options)));
    text = Print(graph, flags);
  }
  std::fputs(text.c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace

Command GraphCommand(CLI::App* weft, const std::string& name) {
  auto flags = std::make_shared<GraphFlags>();
  CLI::App* app = AddCommand(weft, name, "Prints the graph of a training step: a run's, a named model's, or a GPT's.");
  AddFlags(app, Table(flags.get()), &flags->given);
  AddRun(app, &flags->choice);
  return {app,
          [flags] { return PrintGraph(*flags); },
          "prints the graph of a training step",
          {{"Writes a page for a browser, in which boxes unfold.", "weft graph --format=html > graph.html"},
           {"Prints how much memory the training step of a run takes.", "weft graph runs/gpt-1 --memory"},
           {"Prints the messages of rank 1 of 4.", "weft graph --graph=charcpu --ranks=4 --rank=1"}}};
}

}  // namespace weft
