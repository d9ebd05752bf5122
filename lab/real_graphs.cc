// Records each graph with random tokens and the learning rate, ready to compile and run.
#include "weft/lab/real_graphs.h"

#include <iterator>
#include <map>

#include "weft/core/status.h"
#include "weft/lab/models.h"
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

Var Lstm(Tape* tape, Var x) {
  const Var by_input = MatMul(x, Weight(tape, "input", {kWidth, 4 * kWidth}));
  const Var recurrent = Weight(tape, "recurrent", {kWidth, 4 * kWidth}), bias = Weight(tape, "bias", {4 * kWidth});
  VarList outputs;
  Var h, c;
  for (int64_t t = 0; t < kLength; ++t) {
    Var gates = Reshape(Slice(by_input, 1, t, t + 1), {kBatch, 4 * kWidth}) + bias;
    if (h) gates = gates + MatMul(h, recurrent);
    const VarList parts = Split(gates, 1, 4);
    const Var fresh = Sigmoid(parts[0]) * Tanh(parts[1]);
    c = c ? Sigmoid(parts[2]) * c + fresh : fresh;
    h = Sigmoid(parts[3]) * Tanh(c);
    outputs.push_back(Reshape(h, {kBatch, 1, kWidth}));
  }
  return Concat(outputs, 1);
}

Var Encoder(Tape* tape, Var x) {
  const Var y = Attend(x);
  const Var hidden = Gelu(MatMul(y, Weight(tape, "up", {kWidth, 4 * kWidth})));
  return y + MatMul(hidden, Weight(tape, "down", {4 * kWidth, kWidth}));
}

// Each product is one tile. The longest path goes through the deepest tower, forward and backward, and takes about half
// of the step's work. So a schedule on two workers is good only if this path never waits.
Var Towers(Tape* tape) {
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

void Train(Var loss, const Optimizer& optimizer, RealGraph* graph) {
  graph->loss = loss;
  graph->optimizer = optimizer;
}

// Records the model `name` with `layers` layers; 0: with all of its layers. Two layers have all kinds of nodes that
// twelve have.
void RecordBenchModel(const char* name, int64_t layers, int64_t batch, RealGraph* graph) {
  BenchModel model = *FindBenchModel(name);
  if (layers > 0) model.layers = layers;
  if (batch == 0) batch = model.batch;
  if (model.trains) {
    const BenchLoss recorded = RecordLoss(graph->tape, model, batch, model.length);
    return Train(recorded.loss, BenchOptimizer(), graph);
  }
  graph->options = OptionsFor(RecordStep(graph->tape, model, batch, model.length));
}

// Records the gradients and the update of a graph's loss.
void RecordUpdate(RealGraph* graph) {
  const Var rate = graph->tape->Input("learning_rate", {kF32, {}});
  graph->options = {.fetch = {graph->loss}, .update = {graph->optimizer->Minimize(graph->loss, rate).update}};
}

// `batch`: rows of tokens; 0: the graph's own number.
using Recorders = std::map<std::string, void (*)(RealGraph* graph, int64_t batch)>;

const Recorders& RealGraphs() {
  static const Optimizer& adamw = *new Optimizer(BenchOptimizer());
  static const auto& recorders = *new Recorders{
      {"gpt2", [](RealGraph* g, int64_t batch) { RecordBenchModel("gpt2", 0, batch, g); }},
      {"bert", [](RealGraph* g, int64_t batch) { RecordBenchModel("bert", 0, batch, g); }},
      {"babygpt", [](RealGraph* g, int64_t batch) { RecordBenchModel("babygpt", 0, batch, g); }},
      {"charcpu", [](RealGraph* g, int64_t batch) { RecordBenchModel("charcpu", 0, batch, g); }},
      {"minilm-forward", [](RealGraph* g, int64_t batch) { RecordBenchModel("minilm-forward", 0, batch, g); }},
      {"transformer",
       [](RealGraph* g, int64_t) {
         Train(TransformerLoss(g->tape, {.source_vocabulary = 8000, .target_vocabulary = 8000}), adamw, g);
       }},
      {"towers", [](RealGraph* g, int64_t) { Train(Towers(g->tape), Sgd({}), g); }},
      {"lstm", [](RealGraph* g, int64_t) { Train(Predict(g->tape, Attend(Lstm(g->tape, Words(g->tape)))), adamw, g); }},
      {"encoder", [](RealGraph* g, int64_t) { Train(Predict(g->tape, Encoder(g->tape, Words(g->tape))), adamw, g); }}};
  return recorders;
}

const Recorders& PredictionGraphs() {
  static const auto& recorders = *new Recorders{
      {"transformer-big", [](RealGraph* g, int64_t) {
         const TransformerConfig big = {.heads = 16, .width = 1024, .feed_forward = 4096, .shared_embeddings = true};
         Train(TransformerLoss(g->tape, big), BenchOptimizer(), g);
       }}};
  return recorders;
}

const Recorders& CalibrationGraphs() {
  static const auto& recorders = *new Recorders{
      {"gpt2 of two layers", [](RealGraph* g, int64_t batch) { RecordBenchModel("gpt2", 2, batch, g); }},
      {"bert of two layers", [](RealGraph* g, int64_t batch) { RecordBenchModel("bert", 2, batch, g); }},
      {"babygpt of two layers", [](RealGraph* g, int64_t batch) { RecordBenchModel("babygpt", 2, batch, g); }},
      {"charcpu", [](RealGraph* g, int64_t batch) { RecordBenchModel("charcpu", 0, batch, g); }},
      {"encoder", RealGraphs().at("encoder")},
      {"lstm", RealGraphs().at("lstm")},
      {"towers", RealGraphs().at("towers")}};
  return recorders;
}

std::vector<std::string> Names(const Recorders& recorders) {
  std::vector<std::string> names;
  for (const auto& [name, record] : recorders) names.push_back(name);
  return names;
}

}  // namespace

std::vector<std::string> RealGraphNames() { return Names(RealGraphs()); }
std::vector<std::string> PredictionGraphNames() { return Names(PredictionGraphs()); }
std::vector<std::string> CalibrationGraphNames() { return Names(CalibrationGraphs()); }

absl::StatusOr<std::unique_ptr<RealGraph>> RecordRealGraph(const std::string& name, int64_t batch, bool updates) {
  const bool of_models = FindBenchModel(name.substr(0, name.find(' '))) != nullptr;
  if (batch > 0 && !of_models) return InvalidArgument("batch: the graph ", name, " has a batch of fixed size");
  auto graph = std::make_unique<RealGraph>();
  const auto tape = std::make_shared<Tape>();
  graph->owner = tape;
  graph->tape = tape.get();
  for (const Recorders* recorders : {&CalibrationGraphs(), &PredictionGraphs(), &RealGraphs()}) {
    const auto found = recorders->find(name);
    if (found == recorders->end()) continue;
    found->second(graph.get(), batch);
    break;
  }
  if (updates && graph->loss) RecordUpdate(graph.get());
  const Program& program = tape->program();
  graph->tokens.reserve(program.inputs.size());  // feeds refer to the elements, so these must not move
  for (const Node& node : program.nodes) {
    if (node.op != &kInputOp) continue;
    const InputSpec& input = program.inputs[node.attrs.as<SourceAttrs>().index];
    const Var var = {graph->tape, node.output(0)};
    if (input.type.dtype == kF32) {
      graph->feeds.push_back({var, 1e-4f});
      continue;
    }
    const uint32_t stream = static_cast<uint32_t>(graph->tokens.size());
    graph->tokens.push_back(RandomTokens(input.type.shape.elements(), input.bounds.below, stream));
    graph->feeds.push_back({var, graph->tokens.back()});
  }
  return graph;
}

}  // namespace weft
