// Compares Block with PyTorch's TransformerEncoderLayer and TransformerDecoderLayer: values and all gradients, in f64.
// tests/peers/pytorch_blocks.py computed the numbers and describes them.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "weft/core/safetensors.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/models/block.h"

namespace weft {
namespace {

constexpr double kTolerance = 1e-9;

// Returns element `i` of the script's array `k`.
double Element(int64_t k, int64_t i, double scale, double shift = 0) {
  return shift + scale * std::sin(1 + 0.9 * static_cast<double>(k) + 0.61 * static_cast<double>(i));
}
std::vector<double> Array(int64_t k, const Shape& shape) {
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = Element(k, static_cast<int64_t>(i), 1);
  return values;
}

// Returns the names of PyTorch's parameters, in their order there.
std::vector<std::string> TheirNames(bool decoder) {
  std::vector<std::string> names;
  for (const char* attention : {"self_attn", "multihead_attn"}) {
    if (!decoder && absl::StartsWith(attention, "multi")) continue;
    for (const char* array : {"in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"}) {
      names.push_back(absl::StrCat(attention, ".", array));
    }
  }
  for (const char* layer : {"linear1", "linear2", "norm1", "norm2", "norm3"}) {
    if (!decoder && absl::StartsWith(layer, "norm3")) continue;
    for (const char* array : {"weight", "bias"}) names.push_back(absl::StrCat(layer, ".", array));
  }
  return names;
}

// Finds the parameter `ours` in PyTorch's: returns the name there, and the index of the block of rows, as PyTorch joins
// the weights of queries, keys and values.
std::pair<std::string, int64_t> Theirs(const std::string& ours) {
  const char* const kParts[] = {".q_proj.", ".k_proj.", ".v_proj."};
  for (int64_t part = 0; part < 3; ++part) {
    if (absl::StrContains(ours, kParts[part])) return {absl::StrReplaceAll(ours, {{kParts[part], ".in_proj_"}}), part};
  }
  return {absl::StrReplaceAll(ours, {{".in_proj.", ".in_proj_"}}), 0};
}

void Check(const SafetensorsFile& file, int64_t number) {
  SCOPED_TRACE(absl::StrCat("configuration ", number));
  const auto theirs = [&](const std::string& name) { return file.Find(absl::StrCat(number, ".", name))->tensor; };
  const absl::Span<const int32_t> config = theirs("config").span<const int32_t>();
  const bool decoder = config[0] != 0, pre_norm = config[1] != 0, gelu = config[2] != 0, causal = config[3] != 0,
             padded = config[4] != 0;
  const int64_t batch = config[5], target = config[6], source = config[7], heads = config[8], width = config[9];
  const int64_t hidden = config[10];

  AttentionOptions attention = {.heads = heads, .causal = causal, .packed = "in_proj", .output = "out_proj"};
  BlockOptions block = {.attention = attention,
                        .feed_forward = {.width = hidden,
                                         .activation = gelu ? Activation::kGelu : Activation::kRelu,
                                         .up = "linear1",
                                         .down = "linear2"},
                        .pre_norm = pre_norm,
                        .attention_name = "self_attn",
                        .attention_norm = "norm1",
                        .cross_name = "multihead_attn",
                        .cross_norm = "norm2",
                        .feed_forward_name = "",
                        .feed_forward_norm = decoder ? "norm3" : "norm2"};
  attention.causal = false;
  attention.packed = nullptr;
  if (decoder) block.cross_attention = attention;

  Tape tape;
  const Var x = tape.Input("x", {kF64, {batch, target, width}});
  const Var memory = tape.Input("memory", {kF64, {batch, source, width}});
  const Var weights = tape.Input("weights", {kF64, {batch, target, width}});
  const Var lengths = tape.Input("lengths", {kI32, {batch}}, {.below = source + 1});
  BlockInputs inputs;
  if (padded) (decoder ? inputs.cross : inputs.attention).mask = PaddingMask(lengths, source);
  inputs.cross.memory = memory;
  const Var y = Block("", x, block, inputs);
  VarList wrt = {x};
  if (decoder) wrt.push_back(memory);
  const VarList parameters_of = tape.Weights();
  wrt.insert(wrt.end(), parameters_of.begin(), parameters_of.end());
  VarList fetch = Gradient(Sum(y * weights), wrt);
  fetch.push_back(y);
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = fetch});
  ASSERT_TRUE(graph.ok()) << graph.status();
  Parameters parameters;
  Runner runner(*graph, &parameters);
  ASSERT_TRUE(runner.status().ok()) << runner.status();

  const std::vector<std::string> names = TheirNames(decoder);
  for (const std::string& name : parameters.Names()) {
    const auto [their_name, part] = Theirs(name);
    const int64_t k = std::find(names.begin(), names.end(), their_name) - names.begin();
    ASSERT_LT(k, static_cast<int64_t>(names.size())) << name;
    const Tensor tensor = *parameters.Find(name);
    const bool gain = absl::StrContains(name, "norm") && absl::EndsWith(name, "weight");
    const int64_t count = tensor.type.shape.elements();
    for (int64_t i = 0; i < count; ++i) tensor.as<double>()[i] = Element(k + 3, part * count + i, 0.4, gain);
  }
  std::vector<int32_t> source_lengths(static_cast<size_t>(batch), static_cast<int32_t>(source));
  source_lengths[0] = static_cast<int32_t>(std::max<int64_t>(source - 1, 1));
  const std::vector<double> x_data = Array(0, x.shape()), memory_data = Array(1, memory.shape()),
                            weights_data = Array(2, y.shape());
  const absl::StatusOr<Outputs> out =
      runner.Run({{x, x_data}, {memory, memory_data}, {weights, weights_data}, {lengths, source_lengths}});
  ASSERT_TRUE(out.ok()) << out.status();

  const auto compare = [&](const std::string& what, Var ours, const Tensor& wanted, int64_t part) {
    const absl::Span<const double> got = (*out)[ours].span<const double>();
    ASSERT_LE((part + 1) * static_cast<int64_t>(got.size()), wanted.type.shape.elements()) << what;
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_NEAR(got[i], wanted.as<double>()[static_cast<size_t>(part) * got.size() + i], kTolerance)
          << what << " " << i;
    }
  };
  compare("y", y, theirs("y"), 0);
  compare("x", fetch[0], theirs("x"), 0);
  if (decoder) compare("memory", fetch[1], theirs("memory"), 0);
  for (size_t i = 0; i < parameters_of.size(); ++i) {
    const std::string& name = tape.ParameterName(parameters_of[i]);
    const auto [their_name, part] = Theirs(name);
    compare(name, fetch[i + (decoder ? 2 : 1)], theirs(their_name), part);
  }
}

TEST(PyTorchBlocksTest, ValuesAndGradientsAreTheirs) {
  const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open("tests/peers/pytorch_blocks.safetensors");
  ASSERT_TRUE(file.ok()) << file.status();
  for (int64_t number = 0; number < 20 && !HasFatalFailure(); ++number) Check(*file, number);
}

}  // namespace
}  // namespace weft
