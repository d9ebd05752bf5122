#include "weft/bench/real_graphs.h"

#include <map>

#include "weft/bench/models.h"
#include "weft/core/random.h"
#include "weft/models/transformer.h"
#include "weft/ops/ops.h"
#include "weft/train/optimizer.h"

namespace weft {
namespace {

constexpr int64_t kBatch = 16, kLength = 64, kWidth = 256, kVocabulary = 256;  // of the LSTM and the encoder

Var Weight(Tape* tape, const std::string& name, const Shape& shape) {
  return tape->Parameter(name, {kF32, shape}, Gaussian(0.05f));
}

// [B, T, C] from tokens [B, T].
Var Embedded(Tape* tape) {
  const Var tokens = tape->Input("tokens", {kI32, {kBatch, kLength}}, {.below = kVocabulary});
  return Embedding(Weight(tape, "table", {kVocabulary, kWidth}), tokens);
}

// The loss of predicting targets from y [B, T, C].
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

Var Towers(Tape* tape) {
  const Var x = Reshape(Embedded(tape), {kBatch * kLength, kWidth});
  VarList ends;
  for (int depth : {4, 4, 4, 4, 8, 8, 16, 32}) {
    const Scope scope(tape, "tower" + std::to_string(ends.size()));
    Var y = Slice(x, 0, 0, 64);
    for (int i = 0; i < depth; ++i) y = Tanh(MatMul(y, Weight(tape, "w" + std::to_string(i), {kWidth, kWidth})));
    ends.push_back(y);
  }
  Var sum = ends[0];
  for (size_t i = 1; i < ends.size(); ++i) sum = sum + ends[i];
  return Mean(sum * sum);
}

Var TransformerLoss(Tape* tape) {
  const TransformerConfig config = {.source_vocabulary = 8000, .target_vocabulary = 8000};
  const auto tokens = [&](const char* name) { return tape->Input(name, {kI32, {8, 64}}, {.below = 8000}); };
  const Transformer model(config);
  return model.Loss(model.Logits(tokens("source"), tokens("target")), tokens("next"));
}

void Train(Var loss, RealGraph* graph) {
  const Var rate = graph->tape.Input("learning_rate", {kF32, {}});
  graph->options = {.fetch = {loss}, .update = {Var(AdamW({.clip = 1}).Minimize(loss, rate))}};
}

void RecordBenchModel(const char* name, RealGraph* graph) {
  const BenchModel& model = *FindBenchModel(name);
  graph->options = OptionsFor(RecordStep(&graph->tape, model, model.batch, model.length));
}

const std::map<std::string, void (*)(RealGraph*)>& Recorders() {
  static const auto& recorders = *new std::map<std::string, void (*)(RealGraph*)>{
      {"gpt2", [](RealGraph* g) { RecordBenchModel("gpt2", g); }},
      {"bert", [](RealGraph* g) { RecordBenchModel("bert", g); }},
      {"transformer", [](RealGraph* g) { Train(TransformerLoss(&g->tape), g); }},
      {"towers", [](RealGraph* g) { Train(Towers(&g->tape), g); }},
      {"lstm", [](RealGraph* g) { Train(Predict(&g->tape, Attend(Lstm(&g->tape, Embedded(&g->tape)))), g); }},
      {"encoder", [](RealGraph* g) { Train(Predict(&g->tape, Encoder(&g->tape, Embedded(&g->tape))), g); }}};
  return recorders;
}

}  // namespace

std::vector<std::string> RealGraphNames() {
  std::vector<std::string> names;
  for (const auto& [name, record] : Recorders()) names.push_back(name);
  return names;
}

std::unique_ptr<RealGraph> RecordRealGraph(const std::string& name) {
  auto graph = std::make_unique<RealGraph>();
  Recorders().at(name)(graph.get());
  const Program& program = graph->tape.program();
  graph->tokens.reserve(program.inputs.size());  // feeds point into it
  for (const Node& node : program.nodes) {
    if (node.op != &kInputOp) continue;
    const InputSpec& input = program.inputs[node.attrs.as<SourceAttrs>().index];
    const Var var = {&graph->tape, node.output(0)};
    if (input.type.dtype == kF32) {
      graph->feeds.push_back({var, 1e-4f});
      continue;
    }
    const RandomStream random = {.seed = 1, .stream = static_cast<uint32_t>(graph->tokens.size())};
    std::vector<int32_t>& tokens = graph->tokens.emplace_back(static_cast<size_t>(input.type.shape.elements()));
    for (size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = static_cast<int32_t>(random.Below(static_cast<uint64_t>(input.bounds.below), i));
    }
    graph->feeds.push_back({var, tokens});
  }
  return graph;
}

}  // namespace weft
