// Records each graph with random tokens and the learning rate, ready to compile and run.
#include "weft/lab/real_graphs.h"

#include <iterator>

#include "absl/algorithm/container.h"
#include "absl/strings/strip.h"
#include "weft/core/status.h"
#include "weft/lab/models.h"
#include "weft/models/recurrent.h"
#include "weft/models/transformer.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

constexpr int64_t kBatch = 16, kLength = 64, kWidth = 256, kVocabulary = 256;  // sizes of the LSTM and the encoder

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

// `loss`: null for a model of lab/models.h, with all of its layers or with two, which have all kinds of nodes that
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

const Row* Find(absl::string_view name) {
  const Row* const row = absl::c_find_if(kRows, [&](const Row& each) { return each.name == name; });
  return row == std::end(kRows) ? nullptr : row;
}

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
  if (model.trains) {
    graph->loss = RecordLoss(graph->tape, model, batch, model.length).result;
  } else {
    graph->options = OptionsFor(RecordStep(graph->tape, model, batch, model.length));
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
      graph->batch.feeds.push_back({var, 1e-4f});
      continue;
    }
    const uint32_t stream = static_cast<uint32_t>(tokens->size());
    tokens->push_back(RandomTokens(input.type.shape.elements(), input.bounds.below, stream));
    graph->batch.feeds.push_back({var, tokens->back()});
    graph->batch.tokens = graph->batch.targets = input.type.shape.elements();  // the targets are the last such input
  }
}

}  // namespace

std::vector<std::string> RealGraphNames() { return Names(kNamed); }
std::vector<std::string> CalibrationGraphNames() { return Names(kCalibrates); }
bool IsRealGraph(absl::string_view name) { return Find(name) != nullptr; }

absl::StatusOr<std::unique_ptr<RealGraph>> RecordRealGraph(const std::string& name, int64_t batch, bool updates) {
  struct Memory {
    Tape tape;
    std::vector<std::vector<int32_t>> tokens;
  };
  const Row& row = *Find(name);
  if (batch > 0 && row.loss != nullptr) return InvalidArgument("batch: the graph ", name, " has a batch of fixed size");
  const auto memory = std::make_shared<Memory>();
  auto graph = std::make_unique<RealGraph>();
  graph->owner = memory;
  graph->tape = &memory->tape;
  if (row.loss != nullptr) {
    graph->loss = row.loss(graph->tape);
  } else {
    RecordBenchModel(name, batch, graph.get());
  }
  if (graph->loss) graph->optimizer = row.loss == TowersLoss ? Sgd({}) : BenchOptimizer();
  if (graph->loss && updates) {
    const Var rate = graph->tape->Input("learning_rate", {kF32, {}});
    graph->options = {.fetch = {graph->loss}, .update = {graph->optimizer->Minimize(graph->loss, rate).update}};
  }
  AddFeeds(graph.get(), &memory->tokens);
  return graph;
}

}  // namespace weft
