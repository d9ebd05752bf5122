// Records each graph with a batch and the learning rate, ready to compile and run. The tape of a run's step belongs to
// its job, which the graph keeps. Each BenchModel is a row of sizes; one function records any of them.
#include "weft/lab/real_graphs.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "weft/base/file.h"
#include "weft/base/status.h"
#include "weft/core/parameters.h"
#include "weft/core/random.h"
#include "weft/models/bert.h"
#include "weft/models/block.h"
#include "weft/models/gpt.h"
#include "weft/models/recurrent.h"
#include "weft/models/transformer.h"
#include "weft/ops/ops.h"
#include "weft/train/jobs/job_list.h"
#include "weft/train/loop/options.h"
#include "weft/train/loop/trainer.h"

namespace weft {
namespace {

constexpr BenchModel kModels[] = {
    {"gpt2", 50257, 1024, 12, 12, 768, 4, 64},
    {"bert", 30522, 512, 12, 12, 768, 8, 128, /*causal=*/false},
    {"babygpt", 65, 256, 6, 6, 384, 8, 256},
    {"charcpu", 65, 64, 4, 4, 128, 12, 64},
    {"minilm-forward", 30522, 512, 6, 12, 384, 32, 128, /*causal=*/false, /*trains=*/false},
};

// Records the logits of a Gpt without the causal mask, so each position attends to all positions.
Var EncoderLogits(const BenchModel& model, Var tokens) {
  const Var table = EmbeddingTable("wte", tokens.tape, model.vocabulary, model.width);
  const Var positions = EmbeddingTable("wpe", tokens.tape, model.context, model.width);
  Var x = Embedding(table, tokens) + Slice(positions, 0, 0, tokens.dim(1));  // [B, T, C]
  const BlockOptions block = {.attention = {.heads = model.heads, .variant = {.patterns = {{.window = model.window}}}}};
  for (int64_t i = 0; i < model.layers; ++i) x = Block(absl::StrCat("h.", i), x, block);
  return MatMul(LayerNorm("ln_f", x), table, {.transpose_b = true});  // [B, T, V]
}

template <class Config>  // of a Gpt or a Bert
Config ConfigOf(const BenchModel& model) {
  return {.vocabulary = model.vocabulary,
          .context = model.context,
          .layers = model.layers,
          .heads = model.heads,
          .width = model.width,
          .attention = {.patterns = {{.window = model.window}}}};
}

}  // namespace

absl::Span<const BenchModel> BenchModels() { return kModels; }

const BenchModel* FindBenchModel(absl::string_view name) { return FindRow(kModels, name); }

std::vector<int32_t> RandomTokens(int64_t count, int64_t below, uint32_t stream) {
  const RandomStream random = {.seed = 1, .stream = stream};
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  for (size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<int32_t>(random.Below(static_cast<uint64_t>(below), i));
  }
  return tokens;
}

Optimizer BenchOptimizer() { return AdamW({.clip = 1}); }

RecordedModel RecordModel(Tape* tape, const BenchModel& model, int64_t batch, int64_t length) {
  const TensorType ids = {kI32, {batch, length}};
  BenchModel sizes = model;
  sizes.context = std::max(model.context, length);
  RecordedModel recorded = {.tokens = tape->Input("tokens", ids, {.below = model.vocabulary})};
  if (model.trains) {
    recorded.targets = tape->Input("targets", ids, {.below = model.vocabulary});
    const Var logits =
        sizes.causal ? Gpt(ConfigOf<GptConfig>(sizes)).Logits(recorded.tokens) : EncoderLogits(sizes, recorded.tokens);
    recorded.result = CrossEntropy(logits, recorded.targets);
  } else {
    recorded.result = Bert(ConfigOf<BertConfig>(sizes)).Encode(recorded.tokens);
  }
  return recorded;
}

namespace {

constexpr int64_t kBatch = 16, kLength = 64, kWidth = 256, kVocabulary = 256;  // sizes of the LSTM and the encoder
constexpr float kLearningRate = 1e-4f;

Var Weight(Tape* tape, const std::string& name, const Shape& shape, float deviation = 0.05f) {
  return tape->Parameter(name, {kF32, shape}, Gaussian(deviation));
}

// [B, T, C] from tokens [B, T].
Var Embedded(Tape* tape, int64_t batch, int64_t width) {
  const Var tokens = tape->Input("tokens", {kI32, {batch, kLength}}, {.below = kVocabulary});
  return Embedding(Weight(tape, "table", {kVocabulary, width}), tokens);
}
Var Words(Tape* tape) { return Embedded(tape, kBatch, kWidth); }

// Returns the loss of predicting random targets from y [B, T, C].
Var Predict(Tape* tape, Var y) {
  const Var targets = tape->Input("targets", {kI32, {kBatch, kLength}}, {.below = kVocabulary});
  return CrossEntropy(MatMul(y, Weight(tape, "head", {kWidth, kVocabulary})), targets);
}

Var Attend(Var y) {
  const Var scores = MatMul(y, y, {.transpose_b = true}) * (1 / 16.0);
  return y + MatMul(Softmax(scores), y);
}

Var LstmLoss(Tape* tape) { return Predict(tape, Attend(Lstm("lstm", Words(tape), kWidth).outputs)); }

Var EncoderLoss(Tape* tape) {
  const Var y = Attend(Words(tape));
  const Var hidden = Gelu(MatMul(y, Weight(tape, "up", {kWidth, 4 * kWidth})));
  return Predict(tape, y + MatMul(hidden, Weight(tape, "down", {4 * kWidth, kWidth})));
}

// Each product is one tile. The longest path goes through the deepest tower, forward and backward, and takes about half
// of the step's work. So a schedule on two workers is good only if this path never waits.
Var TowersLoss(Tape* tape) {
  constexpr int64_t kTowerBatch = 6, kTowerWidth = 128;
  constexpr float kKeepsScale = 0.15f;  // deviation of weights that keeps values' scale over 42 layers
  const Var x = Reshape(Embedded(tape, kTowerBatch, kTowerWidth), {kTowerBatch * kLength, kTowerWidth});
  constexpr int kDepths[] = {1, 1, 2, 2, 2, 3, 3, 42};
  Var sum;
  for (size_t t = 0; t < std::size(kDepths); ++t) {
    const Scope scope(tape, "tower" + std::to_string(t));
    Var y = x;
    for (int i = 0; i < kDepths[t]; ++i) {
      y = Gelu(MatMul(y, Weight(tape, "w" + std::to_string(i), {kTowerWidth, kTowerWidth}, kKeepsScale)));
    }
    const Var loss = Mean(y * y);
    sum = sum ? sum + loss : loss;
  }
  return sum;
}

Var TransformerLoss(Tape* tape, const TransformerConfig& config) {
  const int64_t vocabulary = config.source_vocabulary;
  const auto tokens = [&](const char* name) { return tape->Input(name, {kI32, {8, 64}}, {.below = vocabulary}); };
  const Transformer model(config);
  return model.Loss(model.Logits(tokens("source"), tokens("target")), tokens("next"));
}

constexpr unsigned kNamed = 1, kCalibrates = 2;  // bits of Row::lists

// `loss`: null for a BenchModel, with all of its layers or with two, which have all kinds of nodes that
// twelve have.
struct Row {
  absl::string_view name;  // of a model, or its name and kTwoLayers
  unsigned lists;          // those that name the graph; 0: it is only for predictions
  Var (*loss)(Tape* tape) = nullptr;
};
constexpr absl::string_view kTwoLayers = " of two layers";
constexpr Row kRows[] = {
    {"babygpt", kNamed},
    {"babygpt of two layers", kCalibrates},
    {"bert", kNamed},
    {"bert of two layers", kCalibrates},
    {"charcpu", kNamed | kCalibrates},
    {"encoder", kNamed | kCalibrates, EncoderLoss},
    {"gpt2", kNamed},
    {"gpt2 of two layers", kCalibrates},
    {"lstm", kNamed | kCalibrates, LstmLoss},
    {"minilm-forward", kNamed},
    {"towers", kNamed | kCalibrates, TowersLoss},
    {"transformer", kNamed,
     [](Tape* tape) { return TransformerLoss(tape, {.source_vocabulary = 8000, .target_vocabulary = 8000}); }},
    {"transformer-big", 0,
     [](Tape* tape) {
       return TransformerLoss(tape, {.heads = 16, .width = 1024, .feed_forward = 4096, .shared_embeddings = true});
     }},
};

std::vector<std::string> Names(unsigned list) {
  std::vector<std::string> names;
  for (const Row& row : kRows) {
    if ((row.lists & list) != 0) names.emplace_back(row.name);
  }
  return names;
}

void RecordBenchModel(absl::string_view name, int64_t batch, RealGraph* graph) {
  const bool whole = !absl::ConsumeSuffix(&name, kTwoLayers);
  BenchModel model = *FindBenchModel(name);
  if (!whole) model.layers = 2;
  if (batch == 0) batch = model.batch;
  const Var result = RecordModel(graph->tape, model, batch, model.length).result;
  if (model.trains) {
    graph->loss = result;
  } else {
    graph->options = {.fetch = {result}, .mode = kEval};
  }
}

// Adds random tokens for each of the tape's integer inputs, which are kept in `tokens`, and the learning rate.
void AddFeeds(RealGraph* graph, std::vector<std::vector<int32_t>>* tokens) {
  const Program& program = graph->tape->program();
  tokens->reserve(program.inputs.size());  // feeds refer to the elements, so these must not move
  for (const Node& node : program.nodes) {
    if (node.op != &kInputOp) continue;
    const InputSpec& input = program.inputs[node.attrs.as<SourceAttrs>().index];
    const Var var = {graph->tape, node.output(0)};
    if (input.type.dtype == kF32) {
      graph->batch.feeds.push_back({var, kLearningRate});
      continue;
    }
    const uint32_t stream = static_cast<uint32_t>(tokens->size());
    tokens->push_back(RandomTokens(input.type.shape.elements(), input.bounds.below, stream));
    graph->batch.feeds.push_back({var, tokens->back()});
    graph->batch.tokens = graph->batch.targets = input.type.shape.elements();  // the targets are the last such input
  }
}

absl::StatusOr<std::unique_ptr<RealGraph>> RecordRow(const Row& row, const GraphChoice& choice, bool updates) {
  struct Memory {
    Tape tape;
    std::vector<std::vector<int32_t>> tokens;
  };
  if (!choice.options.empty() || choice.step > 0) {
    return InvalidArgument("options and steps are those of a run, but ", choice.name, " is a graph of its own");
  }
  if (choice.batch > 0 && row.loss != nullptr) {
    return InvalidArgument("batch: the graph ", choice.name, " has a batch of fixed size");
  }
  const auto memory = std::make_shared<Memory>();
  auto graph = std::make_unique<RealGraph>();
  graph->owner = memory;
  graph->tape = &memory->tape;
  if (row.loss != nullptr) {
    graph->loss = row.loss(graph->tape);
  } else {
    RecordBenchModel(choice.name, choice.batch, graph.get());
  }
  if (graph->loss) graph->optimizer = row.loss == TowersLoss ? Sgd({}) : BenchOptimizer();
  if (graph->loss && updates) {
    const Var rate = graph->tape->Input("learning_rate", {kF32, {}});
    graph->options = {.fetch = {graph->loss}, .update = {graph->optimizer->Minimize(graph->loss, rate).update}};
  }
  AddFeeds(graph.get(), &memory->tokens);
  return graph;
}

// What the feeds of a run's step refer to.
struct RunOfGraph {
  std::unique_ptr<TrainingJob> job;
  Parameters parameters;  // for a job that needs weights to make a batch

  explicit RunOfGraph(std::unique_ptr<TrainingJob> j) : job(std::move(j)), parameters({.seed = job->training().seed}) {}
};

absl::StatusOr<std::unique_ptr<RealGraph>> RecordRun(const GraphChoice& choice, bool updates) {
  std::map<std::string, std::string> changes = choice.options;
  if (choice.batch > 0) changes["batch"] = absl::StrCat(choice.batch);
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<TrainingJob> made, ReadRun(choice.name, changes));
  auto run = std::make_shared<RunOfGraph>(std::move(made));
  TrainingJob* const job = run->job.get();
  WEFT_RETURN_IF_ERROR(job->Prepare(&run->parameters));
  const TrainerOptions trainer = ToTrainerOptions(job->training(), job->batches_per_epoch());
  auto graph = std::make_unique<RealGraph>();
  graph->owner = run;
  graph->optimizer = trainer.optimizer;
  graph->step = trainer;
  graph->step.micro_batches = 1;
  WEFT_ASSIGN_OR_RETURN(graph->batch, job->Train(choice.step, {0, trainer.micro_batches}));
  const TrainingProgram& program = job->programs()[graph->batch.program];
  graph->batch.program = 0;
  graph->tape = program.tape;
  graph->loss = program.loss;
  if (updates) {
    const Var rate = program.tape->Input("learning_rate", {kF32, {}});
    const UpdateOptions options = {.all_or_none = true,
                                   .average_decay = graph->step.ema,
                                   .precision = choice.precision.value_or(graph->step.precision)};
    const Minimized update = trainer.optimizer.Minimize(program.loss, rate, options);
    graph->options = {
        .fetch = {program.loss, update.gradient_norm}, .update = {update}, .memory_budget = graph->step.memory_budget};
    graph->batch.feeds.push_back({rate, kLearningRate});
  }
  return graph;
}

}  // namespace

std::vector<std::string> RealGraphNames() { return Names(kNamed); }
std::vector<std::string> CalibrationGraphNames() { return Names(kCalibrates); }

absl::StatusOr<std::unique_ptr<RealGraph>> RecordGraph(const GraphChoice& choice, bool updates) {
  const Row* const row = FindRow(kRows, choice.name);
  const bool is_run = row == nullptr;
  if (is_run && !IsFolder(choice.name)) {
    return absl::NotFoundError(absl::StrCat("'", choice.name, "'", DidYouMean(choice.name, RealGraphNames()),
                                            ": there is no such run folder, and no such graph among ",
                                            absl::StrJoin(RealGraphNames(), ", ")));
  }
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<RealGraph> graph,
                        is_run ? RecordRun(choice, updates) : RecordRow(*row, choice, updates));
  WEFT_RETURN_IF_ERROR(graph->tape->status());
  graph->step.precision = graph->options.precision = choice.precision.value_or(graph->step.precision);
  return graph;
}

}  // namespace weft
