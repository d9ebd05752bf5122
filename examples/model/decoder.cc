// A decoder of bytes with a layer of its own. It trains on a text, saves its weights, and continues a prompt.
// Axes: B texts, T tokens, C features.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "weft/base/file.h"
#include "weft/base/status.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/models/block.h"
#include "weft/train/optimize/optimizer.h"

constexpr int64_t kBytes = 256, kLength = 64, kWidth = 96, kBatch = 16;

// Returns x [B, T, C], in which each feature is mixed with that of the token before, as in RWKV (Peng et al., 2023).
// The shares are learnt. So tokens know their order, and the model needs no positions.
weft::Var ShiftTokens(const std::string& name, weft::Var x) {
  const weft::Scope scope(x.tape, name);
  const weft::Var share = x.tape->Parameter("share", {x.dtype(), {x.dim(-1)}}, weft::Constant(0.5f));
  const weft::Var before = Slice(Pad(x, 1, 1, 0), 1, 0, x.dim(1));  // [B, T, C], with zeros for the first token
  return x + share * (before - x);
}

// Returns the logits [B, T, kBytes] of the byte after each of `tokens`, i32 [B, T].
weft::Var Logits(weft::Var tokens) {
  const weft::Var table = weft::EmbeddingTable("bytes", tokens.tape, kBytes, kWidth);
  weft::Var x = Embedding(table, tokens);  // [B, T, C]
  for (const std::string i : {"0", "1"}) {
    x = weft::Block("block." + i, ShiftTokens("shift." + i, x), {.attention = {.heads = 4, .causal = true}});
  }
  return MatMul(weft::LayerNorm("last_norm", x), table, {.transpose_b = true});
}

absl::Status Train(const std::string& path, const std::string& model, int steps) {
  WEFT_ASSIGN_OR_RETURN(const std::string text, weft::ReadFile(path));
  if (text.size() <= kLength) return weft::InvalidArgument(path, " has ", text.size(), " bytes, wanted at least 65");
  weft::Tape tape;
  const weft::Var bytes = tape.Input("bytes", {weft::kI32, {kBatch, kLength + 1}}, {.below = kBytes});
  const weft::Var rate = tape.Input("rate", {weft::kF32, {}});
  const weft::Var loss = CrossEntropy(Logits(Slice(bytes, 1, 0, kLength)), Slice(bytes, 1, 1, kLength + 1));
  const weft::Minimized step = weft::AdamW({.clip = 1}).Minimize(loss, rate);
  WEFT_ASSIGN_OR_RETURN(weft::Graph graph, weft::Compile(tape, {.fetch = {loss}, .update = {step}}));
  weft::Parameters parameters({.seed = 1});
  weft::Runner runner(graph, &parameters);
  std::mt19937 random(1);
  for (int i = 1; i <= steps; ++i) {
    std::vector<int32_t> batch;
    for (int64_t row = 0; row < kBatch; ++row) {
      const char* const begin = text.data() + random() % (text.size() - kLength);
      for (int64_t t = 0; t <= kLength; ++t) batch.push_back(static_cast<unsigned char>(begin[t]));
    }
    WEFT_ASSIGN_OR_RETURN(const weft::Outputs out, runner.Run({{bytes, batch}, {rate, 2e-3f}}));
    if (i % 50 == 0) std::printf("step %d  loss %.3f\n", i, out.Scalar(loss));
  }
  return parameters.Save(model);
}

// Prints `text`, which must not be empty, and `count` more bytes. Each is drawn from the model's probabilities.
absl::Status Generate(const std::string& model, std::string text, int count) {
  weft::Tape tape;
  const weft::Var tokens = tape.Input("tokens", {weft::kI32, {1, kLength}}, {.below = kBytes});
  const weft::Var probabilities = Softmax(Logits(tokens) / 0.7);  // [1, T, kBytes]
  WEFT_ASSIGN_OR_RETURN(weft::Graph graph, weft::Compile(tape, {.fetch = {probabilities}, .mode = weft::kEval}));
  weft::Parameters parameters({.draw = false});
  weft::Runner runner(graph, &parameters);
  WEFT_RETURN_IF_ERROR(parameters.Load(model));
  std::mt19937 random(1);
  while (count-- > 0) {
    const std::string seen = text.substr(text.size() < kLength ? 0 : text.size() - kLength);
    std::vector<int32_t> x;
    for (const unsigned char byte : seen) x.push_back(byte);
    x.resize(kLength);  // no token sees the zeros after it
    WEFT_ASSIGN_OR_RETURN(const weft::Outputs out, runner.Run({{tokens, x}}));
    const float* const row = out[probabilities].as<float>() + (seen.size() - 1) * kBytes;
    text += static_cast<char>(std::discrete_distribution<int>(row, row + kBytes)(random));
  }
  std::printf("%s\n", text.c_str());
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  const std::string command = argc == 5 ? argv[1] : "";
  absl::Status status = weft::InvalidArgument("usage: decoder (train TEXT MODEL STEPS | generate MODEL PROMPT BYTES)");
  if (command == "train") status = Train(argv[2], argv[3], std::atoi(argv[4]));
  if (command == "generate" && *argv[3] != '\0') status = Generate(argv[2], argv[3], std::atoi(argv[4]));
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
