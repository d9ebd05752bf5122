// Writes programs and published models as ONNX files, and checks the files: a node defines each input before another
// node reads it, and each tensor has the bytes of its shape. GPTs that are imported from these files compute the same
// logits as the models that were written. check_export.py compares results with onnxruntime and transformers.
#include <filesystem>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "weft/base/file.h"
#include "weft/formats/model_formats.h"
#include "weft/formats/onnx/export.h"
#include "weft/formats/onnx/onnx.pb.h"
#include "weft/formats/onnx/onnx_model.h"
#include "weft/formats/weights.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/ops/ops.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

using Sizes = absl::Span<const int64_t>;
constexpr char kPublished[] = "tests/published/";

std::string TestFolder(const std::string& name) {
  const std::string folder = absl::StrCat(testing::TempDir(), "/onnx/", name);
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

size_t BytesOfType(int32_t type) {
  static const std::map<int32_t, size_t> kBytes = {{onnx::Tensor::FLOAT, 4}, {onnx::Tensor::DOUBLE, 8},
                                                   {onnx::Tensor::INT32, 4}, {onnx::Tensor::INT64, 8},
                                                   {onnx::Tensor::BOOL, 1},  {onnx::Tensor::BFLOAT16, 2}};
  return kBytes.at(type);
}

void CheckTensor(const onnx::Tensor& tensor, const std::string& folder) {
  size_t elements = 1;
  for (const int64_t size : tensor.dims()) elements *= static_cast<size_t>(size);
  if (tensor.data_location() == onnx::Tensor::EXTERNAL) {
    std::map<std::string, std::string> entries;
    for (const onnx::Entry& entry : tensor.external_data()) entries[entry.key()] = entry.value();
    uint64_t offset = 0, length = 0;
    ASSERT_TRUE(absl::SimpleAtoi(entries["offset"], &offset) && absl::SimpleAtoi(entries["length"], &length));
    EXPECT_EQ(offset % 4096, 0u);
    EXPECT_EQ(length, elements * BytesOfType(tensor.data_type())) << tensor.name();
    EXPECT_LE(offset + length, fs::file_size(folder + "/" + entries["location"]));
    return;
  }
  const auto values = static_cast<size_t>(tensor.float_data_size() + tensor.double_data_size() +
                                          tensor.int32_data_size() + tensor.int64_data_size());
  EXPECT_EQ(tensor.raw_data().size() + values * BytesOfType(tensor.data_type()),
            elements * BytesOfType(tensor.data_type()))
      << tensor.name();
}

// Reads a model and checks that it is whole.
onnx::Model ReadOnnx(const std::string& path) {
  onnx::Model model;
  const absl::StatusOr<std::string> bytes = ReadFile(path);
  EXPECT_TRUE(bytes.ok() && model.ParseFromString(*bytes)) << path;
  EXPECT_EQ(model.ir_version(), 8);
  EXPECT_EQ(model.opset_import(0).version(), 17);
  std::set<std::string> known;
  const auto define = [&](const std::string& name) { EXPECT_TRUE(known.insert(name).second) << name; };
  for (const onnx::ValueInfo& input : model.graph().input()) define(input.name());
  for (const onnx::Tensor& tensor : model.graph().initializer()) {
    define(tensor.name());
    CheckTensor(tensor, fs::path(path).parent_path().string());
  }
  for (const onnx::Node& node : model.graph().node()) {
    for (const std::string& input : node.input()) EXPECT_TRUE(known.contains(input)) << node.name() << " " << input;
    for (const std::string& output : node.output()) define(output);
  }
  for (const onnx::ValueInfo& output : model.graph().output()) EXPECT_TRUE(known.contains(output.name()));
  return model;
}

// Returns "input_ids[batch_size,sequence_length,7]".
std::string Print(const onnx::ValueInfo& value) {
  std::string text;
  for (const onnx::Shape::Dimension& dim : value.type().tensor_type().shape().dim()) {
    absl::StrAppend(&text, text.empty() ? "" : ",", dim.dim_param());
    if (dim.dim_param().empty()) absl::StrAppend(&text, dim.dim_value());
  }
  return absl::StrCat(value.name(), "[", text, "]");
}

std::vector<std::string> PrintAll(const google::protobuf::RepeatedPtrField<onnx::ValueInfo>& values) {
  std::vector<std::string> all;
  for (const onnx::ValueInfo& value : values) all.push_back(Print(value));
  return all;
}

// Returns the number of nodes of each type.
std::map<std::string, int> CountTypes(const onnx::Model& model) {
  std::map<std::string, int> counts;
  for (const onnx::Node& node : model.graph().node()) ++counts[node.op_type()];
  return counts;
}

// Exports a program whose input x is f32 [sizes..., 4].
absl::Status ExportOf(const std::string& path, const std::vector<OnnxAxis>& axes, Var (*program)(Var x)) {
  const auto record = [&](Tape* tape, Sizes sizes) -> OnnxOutputs {
    Shape shape(sizes);
    shape.Append(4);
    return {{"y", program(tape->Input("x", {kF32, shape}))}};
  };
  return ExportOnnx(path, axes, record, {});
}

// Returns a constant with the numbers 0 .. n - 1.
Var ConstantRows(Tape* tape, int64_t n) {
  std::vector<float> rows(static_cast<size_t>(n));
  std::iota(rows.begin(), rows.end(), 0.0f);
  return tape->Constant({{kF32, {n}}, reinterpret_cast<std::byte*>(rows.data())});
}

TEST(OnnxExport, EachPublishedModelIsWritten) {
  int models = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(kPublished)) {
    if (!entry.is_directory()) continue;
    const std::string name = entry.path().filename().string(), folder = TestFolder(name);
    SCOPED_TRACE(name);
    const absl::StatusOr<PublishedModel> model = ReadModel(kPublished + name);
    ASSERT_TRUE(model.ok()) << model.status();
    const absl::Status written = WriteModel(folder, *model, "onnx");
    ASSERT_TRUE(written.ok()) << written;
    const bool pair = std::holds_alternative<PublishedTransformer>(*model);
    ReadOnnx(folder + (pair ? "/encoder_model.onnx" : "/model.onnx"));
    if (pair) ReadOnnx(folder + "/decoder_model.onnx");
    EXPECT_TRUE(Exists(folder + "/config.json"));
    EXPECT_FALSE(Exists(folder + "/model.safetensors"));
    ++models;
  }
  EXPECT_GE(models, 50);
}

// Returns the elements of `y` for these tokens.
std::vector<float> Evaluate(const Tape& tape, Var tokens, absl::Span<const int32_t> ids, Var y,
                            Parameters* parameters) {
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {y}, .mode = kEval});
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return {};
  Runner runner(*graph, parameters, {.threads = 1});
  const absl::StatusOr<Outputs> out = runner.Run({{tokens, ids}});
  EXPECT_TRUE(out.ok()) << out.status();
  if (!out.ok()) return {};
  const absl::Span<const float> values = (*out)[y].span<const float>();
  return {values.begin(), values.end()};
}

TEST(OnnxExport, WhatIsReadAgainGivesTheSameLogits) {
  const std::vector<int32_t> ids = {1, 5, 9, 2, 7, 11, 3, 8, 4, 6};
  std::vector<int32_t> ones(ids.size(), 1);
  const TensorType type = {kI32, {2, 5}};
  for (const char* const name : {"gpt2", "llama", "gemma2", "gpt_neox", "bloom", "mixtral"}) {
    SCOPED_TRACE(name);
    const std::string folder = TestFolder(name);
    const absl::StatusOr<PublishedGpt> gpt = ReadModelOf<PublishedGpt>(absl::StrCat(kPublished, name));
    ASSERT_TRUE(gpt.ok()) << gpt.status();
    const absl::Status written = WriteModel(folder, *gpt, "onnx");
    ASSERT_TRUE(written.ok()) << written;
    const absl::StatusOr<OnnxModel> read = OnnxModel::Open(folder + "/model.onnx");
    ASSERT_TRUE(read.ok()) << read.status();
    Tape imported, own;
    const Var imported_ids = imported.Input("ids", type, {.below = 30}),
              own_ids = own.Input("ids", type, {.below = 30});
    const Tensor mask = {type, reinterpret_cast<std::byte*>(ones.data())};
    const absl::StatusOr<VarList> logits =
        read->Record(&imported, {{"input_ids", imported_ids}, {"attention_mask", mask}});
    ASSERT_TRUE(logits.ok()) << logits.status();
    Parameters parameters({.draw = false}), own_parameters({.draw = false});
    read->Provide(&parameters);
    ASSERT_TRUE(ProvideFiniteWeights(name, gpt->weights, &own_parameters).ok());
    const std::vector<float> got = Evaluate(imported, imported_ids, ids, (*logits)[0], &parameters),
                             wanted = Evaluate(own, own_ids, ids, Gpt(gpt->config).Logits(own_ids), &own_parameters);
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], wanted[i], 2e-5) << i;
  }
}

TEST(OnnxExport, InputsAndOutputsHaveOptimumsNames) {
  const std::string folder = TestFolder("names");
  const auto check = [&](const char* name, const char* file, const std::vector<std::string>& inputs,
                         const std::vector<std::string>& outputs) {
    const absl::StatusOr<PublishedModel> read = ReadModel(absl::StrCat(kPublished, name));
    ASSERT_TRUE(read.ok() && WriteModel(folder, *read, "onnx").ok());
    const onnx::Model model = ReadOnnx(absl::StrCat(folder, "/", file));
    EXPECT_EQ(PrintAll(model.graph().input()), inputs);
    EXPECT_EQ(PrintAll(model.graph().output()), outputs);
    for (const onnx::ValueInfo& input : model.graph().input()) {
      const bool ids = absl::StrContains(input.name(), "ids") || absl::StrContains(input.name(), "mask");
      EXPECT_EQ(input.type().tensor_type().elem_type(), ids ? onnx::Tensor::INT64 : onnx::Tensor::FLOAT);
    }
  };
  const std::string ids = "[batch_size,sequence_length]";
  check("gpt2", "model.onnx", {"input_ids" + ids, "attention_mask" + ids}, {"logits[batch_size,sequence_length,30]"});
  check("bert", "model.onnx", {"input_ids" + ids, "attention_mask" + ids, "token_type_ids" + ids},
        {"last_hidden_state[batch_size,sequence_length,16]", "pooler_output[batch_size,16]"});
  check("bert_answer", "model.onnx", {"input_ids" + ids, "attention_mask" + ids, "token_type_ids" + ids},
        {"start_logits" + ids, "end_logits" + ids});
  // Its decoder_bias is false, so that the head that guesses masked tokens has no weight under cls.predictions.
  check("modernbert_biases", "model.onnx", {"input_ids" + ids, "attention_mask" + ids},
        {"logits[batch_size,sequence_length,30]"});
  const std::string source = "[batch_size,encoder_sequence_length";
  check("marian", "encoder_model.onnx", {"input_ids" + source + "]", "attention_mask" + source + "]"},
        {"last_hidden_state" + source + ",16]"});
  check("marian", "decoder_model.onnx",
        {"input_ids[batch_size,decoder_sequence_length]", "encoder_hidden_states" + source + ",16]",
         "encoder_attention_mask" + source + "]"},
        {"logits[batch_size,decoder_sequence_length,30]"});
  check("vit", "model.onnx", {"pixel_values[batch_size,1,8,8]"}, {"logits[batch_size,3]"});
}

TEST(OnnxExport, LargeWeightsAreInAnotherFile) {
  const std::string path = TestFolder("external") + "/model.onnx";
  std::vector<float> large(512 * 4), small(4);
  for (size_t i = 0; i < large.size(); ++i) large[i] = static_cast<float>(i);
  const std::vector<NamedTensor> weights = {{"small", {{kF32, {4}}, reinterpret_cast<std::byte*>(small.data())}},
                                            {"large", {{kF32, {512, 4}}, reinterpret_cast<std::byte*>(large.data())}},
                                            {"other", {{kF32, {512, 4}}, reinterpret_cast<std::byte*>(large.data())}}};
  const auto record = [](Tape* tape, Sizes sizes) -> OnnxOutputs {
    Var y = tape->Input("x", {kF32, {sizes[0], 4}});
    for (const char* const name : {"large", "other"}) {
      const Var weight = tape->Parameter(name, {kF32, {512, 4}}, Zeros());
      y = MatMul(MatMul(y, weight, {.transpose_b = true}), weight);
    }
    return {{"y", y + tape->Parameter("small", {kF32, {4}}, Zeros())}};
  };
  const absl::Status written = ExportOnnx(path, {{"n"}}, record, weights, /*max_bytes=*/1000);
  ASSERT_TRUE(written.ok()) << written;
  const onnx::Model model = ReadOnnx(path);
  EXPECT_EQ(fs::file_size(path + "_data"), 2u * 8192);
  int external = 0;
  for (const onnx::Tensor& tensor : model.graph().initializer()) external += tensor.external_data_size() > 0 ? 1 : 0;
  EXPECT_EQ(external, 2);
  const absl::StatusOr<std::string> data = ReadFile(path + "_data");
  ASSERT_TRUE(data.ok());
  EXPECT_EQ(data->substr(8192), std::string(reinterpret_cast<const char*>(large.data()), 8192));
  // Without one of the weights, the model is not written.
  const absl::Status missing = ExportOnnx(path, {{"n"}}, record, absl::MakeSpan(weights).first(2));
  EXPECT_TRUE(absl::StrContains(missing.message(), "there is no value f32[512,4] of the parameter 'other'")) << missing;
}

TEST(OnnxExport, SizesAreComputedFromTheInputs) {
  const std::string path = TestFolder("sizes") + "/model.onnx";
  // A mean over a dynamic axis, of more than 64 elements in one recording, is a sum and a division by its size.
  ASSERT_TRUE(ExportOf(path, {{"n", 200}}, [](Var x) { return Mean(x, 0); }).ok());
  std::map<std::string, int> counts = CountTypes(ReadOnnx(path));
  EXPECT_EQ(counts["ReduceSum"], 1);
  EXPECT_EQ(counts["Div"], 1);
  // Positions are computed, and rows of a table are a slice of the largest one.
  ASSERT_TRUE(ExportOf(path, {{"n", 50}}, [](Var x) { return Sum(x, 1) * Iota(x.tape, kF32, x.dim(0)); }).ok());
  counts = CountTypes(ReadOnnx(path));
  EXPECT_EQ(counts["Range"], 1);
  const auto add_rows = [](Var x) { return Sum(x, 1) + ConstantRows(x.tape, x.dim(0)); };
  ASSERT_TRUE(ExportOf(path, {{"n", 50}}, add_rows).ok());
  const onnx::Model model = ReadOnnx(path);
  EXPECT_EQ(CountTypes(model)["Slice"], 1);
  bool whole = false;
  for (const onnx::Tensor& tensor : model.graph().initializer()) whole = whole || tensor.raw_data().size() == 50 * 4;
  EXPECT_TRUE(whole);
  // Equal nodes are written once.
  ASSERT_TRUE(ExportOf(path, {{"n"}}, [](Var x) { return Exp(x) * Exp(x); }).ok());
  EXPECT_EQ(CountTypes(ReadOnnx(path))["Exp"], 1);
  // An op without a counterpart is spelt in smaller ops; dropout is left out.
  ASSERT_TRUE(ExportOf(path, {}, [](Var x) { return Gelu(Dropout(x, 0.5)); }).ok());
  EXPECT_EQ(CountTypes(ReadOnnx(path))["Erf"], 1);
}

TEST(OnnxExport, WhatCantBeExpressedIsRefusedByName) {
  const std::string path = TestFolder("errors") + "/model.onnx";
  const auto error = [&](const std::vector<OnnxAxis>& axes, Var (*program)(Var x)) {
    const absl::Status status = ExportOf(path, axes, program);
    EXPECT_FALSE(Exists(path));
    return std::string(status.message());
  };
  const auto same = [](Var x) { return x; };
  EXPECT_EQ(error({{"n", 3}}, same), "ONNX: n is at most 3, wanted at least 4");
  EXPECT_EQ(error({{"a"}, {"b"}, {"c"}, {"d"}, {"e"}}, same), "ONNX: more than 4 dimensions");
  EXPECT_EQ(error({{"n"}}, [](Var x) { return SquareSumBlocks(x); }),
            "ONNX: the op square_sum_blocks has neither a counterpart nor a spelling in smaller ops");
  EXPECT_TRUE(absl::StrContains(error({{"n"}}, [](Var x) { return x.dim(0) > 2 ? Exp(x) : x; }),
                                "the program has other nodes at other sizes"));
  EXPECT_TRUE(absl::StrContains(error({{"n"}}, [](Var x) { return Scale(x, static_cast<double>(x.dim(0)) + 0.3); }),
                                "ONNX: scale: the factor differs between sizes, and is not 1 / size"));
  EXPECT_TRUE(absl::StrContains(
      error({{"n"}}, [](Var x) { return Reshape(Slice(x, 0, 0, x.dim(0) * x.dim(0) % 2 + 1), {-1}); }),
      "is not a product of dimensions"));
  const auto add_rows = [](Var x) { return x + Reshape(ConstantRows(x.tape, x.dim(0)), {x.dim(0), 1}); };
  EXPECT_TRUE(absl::StrContains(error({{"n"}}, add_rows), "a dimension without a limit"));
  EXPECT_TRUE(absl::StrContains(error({{"n"}}, [](Var x) { return BandMask(x, x.dim(0), 0, 0); }),
                                "the attributes of the op band_mask at  differ between sizes"));
}

}  // namespace
}  // namespace weft
