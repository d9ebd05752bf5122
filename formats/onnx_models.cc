// The format "onnx" is for onnxruntime and other programs that run graphs; it is only written. docs/formats.md lists
// the files, inputs and outputs, which have the names of Hugging Face's package `optimum`.
#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <variant>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/formats/onnx/export.h"
#include "weft/formats/published.h"

namespace weft {
namespace {

constexpr absl::string_view kFiles[] = {
    "model.onnx",         "model.onnx_data",         "encoder_model.onnx", "encoder_model.onnx_data",
    "decoder_model.onnx", "decoder_model.onnx_data", kConfigFile};
constexpr char kModel[] = "model.onnx", kBatch[] = "batch_size", kLength[] = "sequence_length";

using Sizes = absl::Span<const int64_t>;

// Records an input of ids below `below`.
Var Ids(Tape* tape, const char* name, const Shape& shape, int64_t below) {
  return tape->Input(name, {kI32, shape}, {.below = below});
}
Var Mask(Tape* tape, const char* name, const Shape& shape) { return Ids(tape, name, shape, 2); }

absl::Status Export(const std::string& folder, const char* file, const std::vector<OnnxAxis>& axes,
                    const Weights& weights, OnnxRecord record) {
  return ExportOnnx(absl::StrCat(folder, "/", file), axes, record, weights.tensors());
}

absl::Status WriteGraphs(const std::string& folder, const PublishedGpt& gpt) {
  return Export(folder, kModel, {{kBatch}, {kLength, gpt.config.context}}, gpt.weights,
                [&](Tape* tape, Sizes sizes) -> OnnxOutputs {
                  const Shape shape(sizes);
                  const Var tokens = Ids(tape, "input_ids", shape, gpt.config.vocabulary);
                  // Padding is a document of its own, which no other token sees.
                  return {{"logits", Gpt(gpt.config).Logits(tokens, nullptr, Mask(tape, "attention_mask", shape))}};
                });
}

// Records what the model's head computes of the hidden states [B, T, C]. `mask`: the attention_mask, i32 [B, T].
OnnxOutputs RecordHead(const PublishedBert& model, Var hidden, Var mask) {
  const Bert bert(model.config);
  const int64_t batch = hidden.dim(0), length = hidden.dim(1), classes = static_cast<int64_t>(model.labels.size());
  const Weights& weights = model.weights;
  const bool masked = model.masked(), next = weights.Has("cls.seq_relationship.");
  if (model.task == TextTask::kTokens && classes > 0) return {{"logits", bert.Classify(hidden, classes)}};
  if (classes > 0 || model.choice) return {{"logits", bert.ClassifyText(hidden, mask, std::max<int64_t>(classes, 1))}};
  if (weights.Has("qa_outputs.")) {
    const VarList ends = Split(bert.AnswerSpan(hidden), -1, 2);
    return {{"start_logits", Reshape(ends[0], {batch, length})}, {"end_logits", Reshape(ends[1], {batch, length})}};
  }
  if (weights.Has("discriminator_predictions.")) return {{"logits", Reshape(bert.Replaced(hidden), {batch, length})}};
  OnnxOutputs outputs;
  if (masked) outputs.emplace_back(next ? "prediction_logits" : "logits", bert.MaskedTokens(hidden));
  if (next) outputs.emplace_back(masked ? "seq_relationship_logits" : "logits", bert.NextSentence(bert.Pool(hidden)));
  if (!outputs.empty()) return outputs;
  outputs.emplace_back("last_hidden_state", hidden);
  if (weights.Has("pooler.")) outputs.emplace_back("pooler_output", bert.Pool(hidden));
  return outputs;
}

absl::Status WriteGraphs(const std::string& folder, const PublishedBert& model) {
  std::vector<OnnxAxis> axes = {{kBatch}, {kLength, model.config.context}};
  if (model.choice) axes.insert(axes.begin() + 1, {"num_choices"});
  return Export(folder, kModel, axes, model.weights, [&](Tape* tape, Sizes sizes) -> OnnxOutputs {
    const Shape given(sizes), texts = {given.rows(), given.cols()};  // the answers to choose from are texts
    const auto input = [&](const char* name, int64_t below) { return Reshape(Ids(tape, name, given, below), texts); };
    const Var tokens = input("input_ids", model.config.vocabulary), mask = input("attention_mask", 2);
    BertInputs inputs = {.lengths = mask};
    if (model.config.segment_inputs && model.config.segments > 0) {
      inputs.segments = input("token_type_ids", model.config.segments);
    }
    OnnxOutputs outputs = RecordHead(model, Bert(model.config).Encode(tokens, inputs), mask);
    if (model.choice) outputs[0].second = Reshape(outputs[0].second, {sizes[0], sizes[1]});
    return outputs;
  });
}

absl::Status WriteGraphs(const std::string& folder, const PublishedTransformer& model) {
  const TransformerConfig& config = model.config;
  if (config.memory != TransformerConfig::Memory::kLast) {
    return InvalidArgument("ONNX: a decoder has one memory, but memory is same-layer");
  }
  const Transformer transformer(config);
  const OnnxAxis source = {"encoder_sequence_length", config.context};
  WEFT_RETURN_IF_ERROR(Export(folder, "encoder_model.onnx", {{kBatch}, source}, model.weights,
                              [&](Tape* tape, Sizes sizes) -> OnnxOutputs {
                                const Shape shape(sizes);
                                const Var tokens = Ids(tape, "input_ids", shape, config.source_vocabulary);
                                const Var mask = Mask(tape, "attention_mask", shape);
                                return {{"last_hidden_state", transformer.Encode(tokens, mask).back()}};
                              }));
  return Export(folder, "decoder_model.onnx", {{kBatch}, {"decoder_sequence_length", config.context}, source},
                model.weights, [&](Tape* tape, Sizes sizes) -> OnnxOutputs {
                  const int64_t batch = sizes[0], targets = sizes[1], sources = sizes[2];
                  const Var tokens = Ids(tape, "input_ids", {batch, targets}, config.target_vocabulary);
                  const Var memory = tape->Input("encoder_hidden_states", {kF32, {batch, sources, config.width}});
                  const Var mask = Mask(tape, "encoder_attention_mask", {batch, sources});
                  const VarList memories(static_cast<size_t>(config.decoder_layers), memory);
                  return {{"logits", transformer.Decode(tokens, memories, mask)}};
                });
}

absl::Status WriteGraphs(const std::string& folder, const PublishedVit& model) {
  const VitConfig& c = model.config;
  if (model.task != VitTask::kClassify) return InvalidArgument("ONNX: the ViT has no classifier");
  return Export(folder, kModel, {{kBatch}}, model.weights, [&](Tape* tape, Sizes sizes) -> OnnxOutputs {
    const Shape shape = {sizes[0], c.channels, c.image_height, c.image_width};
    return {{"logits", Vit(c).Logits(Permute(tape->Input("pixel_values", {kF32, shape}), {0, 2, 3, 1}))}};
  });
}

absl::Status Write(const PublishedModel& model, const std::string& folder, const WriteModelOptions&) {
  WEFT_RETURN_IF_ERROR(std::visit([&](const auto& each) { return WriteGraphs(folder, each); }, model));
  const absl::Status config = FamilyOf(model).write(model, folder, {.published_classes_only = true});
  if (absl::IsInvalidArgument(config)) return absl::OkStatus();  // transformers does not have the model
  std::error_code error;
  std::filesystem::remove(WeightsPath(folder), error);
  return config;
}

}  // namespace

constexpr Format kOnnxFormat = {
    .name = "onnx",
    .write = Write,
    .files = kFiles,
};

}  // namespace weft
