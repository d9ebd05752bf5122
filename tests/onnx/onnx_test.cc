// Imports ONNX's own node cases (onnx==1.22.0). Each case is a model with one or a few nodes. The test records each
// case whose types Weft has, compiles it, runs it on two threads and compares the outputs with the tolerances of ONNX's
// runner. It then records the case again with constants in place of the inputs. The importer computes such a model
// while it records, and the outputs must be the same.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/base/file.h"
#include "weft/base/status.h"
#include "weft/formats/onnx/onnx.pb.h"
#include "weft/formats/onnx/onnx_model.h"
#include "weft/formats/onnx/onnx_node.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/tests/cases/case_file.h"

namespace weft {
namespace {

constexpr double kRelative = 1e-3, kAbsolute = 1e-7;
constexpr int kPassed = 648, kSkipped = 59;  // 707 cases in all

// Records, runs and compares the case. `constants`: the inputs that are constants.
absl::Status Check(const OnnxModel& model, const Case& onnx, const std::set<size_t>& constants) {
  Tape tape;
  std::vector<OnnxInput> inputs;
  std::vector<FeedPair> feeds;
  for (size_t i = 0; i < onnx.inputs.size(); ++i) {
    const std::string& name = model.inputs()[i].name;
    inputs.push_back({name, *onnx.inputs[i]});
    if (constants.contains(i)) continue;
    const Var x = tape.Input(absl::StrCat("x", i), onnx.inputs[i]->type);
    inputs.back().value = x;
    feeds.push_back({x, *onnx.inputs[i]});
  }
  const absl::StatusOr<VarList> outputs = model.Record(&tape, inputs);
  if (!outputs.ok()) return outputs.status();
  if (outputs->size() != onnx.outputs.size()) return absl::InternalError("the number of outputs differs");
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {outputs->begin(), outputs->end()}});
  if (!graph.ok()) return absl::InternalError(graph.status().message());
  Parameters parameters({.seed = 1});
  model.Provide(&parameters);
  Runner runner(*graph, &parameters, {.threads = 2});
  const absl::StatusOr<Outputs> run = runner.Run(feeds);
  if (!run.ok()) return absl::InternalError(run.status().message());
  for (size_t i = 0; i < outputs->size(); ++i) {
    const std::string difference = Difference((*run)[(*outputs)[i]], *onnx.outputs[i], kRelative, kAbsolute);
    if (!difference.empty()) return absl::InternalError(absl::StrCat("output ", i, ": ", difference));
  }
  return absl::OkStatus();
}

// Returns the failure of the case, or Unimplemented if it cannot be run. Inputs that must be constants, according to
// the errors, become constants.
absl::Status CheckCase(const Case& onnx) {
  const absl::StatusOr<OnnxModel> model = OnnxModel::Parse(onnx.model, "");
  if (!model.ok()) return model.status();
  std::set<size_t> constants;
  absl::Status status = Check(*model, onnx, constants);
  for (size_t tries = 0; absl::IsFailedPrecondition(status) && tries < onnx.inputs.size(); ++tries) {
    for (size_t i = 0; i < onnx.inputs.size(); ++i) {
      if (absl::StrContains(status.message(), absl::StrCat("its input '", model->inputs()[i].name, "'"))) {
        constants.insert(i);
      }
    }
    status = Check(*model, onnx, constants);
  }
  if (!status.ok()) return status;
  for (size_t i = 0; i < onnx.inputs.size(); ++i) constants.insert(i);
  return Annotate(Check(*model, onnx, constants), "as constants");
}

TEST(OnnxTest, NodeCases) {
  const absl::StatusOr<CaseFile> file = CaseFile::Open("tests/onnx/cases.bin.gz");
  ASSERT_TRUE(file.ok()) << file.status();
  int passed = 0, skipped = 0, failed = 0;
  for (const Case& onnx : file->cases()) {
    std::string skip = onnx.skip;
    absl::Status status;
    if (skip.empty()) status = CheckCase(onnx);
    if (absl::IsUnimplemented(status)) skip = std::string(status.message());
    if (!skip.empty()) {
      ++skipped;
      std::printf("skipped %s: %s\n", onnx.name.c_str(), skip.c_str());
    } else if (status.ok()) {
      ++passed;
    } else {
      ++failed;
      ADD_FAILURE() << onnx.name << ": " << status;
    }
  }
  EXPECT_EQ(passed, kPassed);
  EXPECT_EQ(skipped, kSkipped);
  std::printf("%d passed, %d skipped, %d failed\n", passed, skipped, failed);
}

// Returns a model with an opset, whose nodes `nodes` compute y from x, f32[n,4].
onnx::Model ModelOf(const std::vector<std::pair<std::string, std::vector<std::string>>>& nodes, int64_t opset = 20) {
  onnx::Model model;
  model.add_opset_import()->set_version(opset);
  onnx::ValueInfo* const x = model.mutable_graph()->add_input();
  x->set_name("x");
  x->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::Tensor::FLOAT);
  x->mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_param("n");
  x->mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(4);
  for (const auto& [op, names] : nodes) {  // inputs, then the output
    onnx::Node* const node = model.mutable_graph()->add_node();
    node->set_op_type(op);
    node->set_name(op + " of the test");
    for (size_t i = 0; i + 1 < names.size(); ++i) node->add_input(names[i]);
    node->add_output(names.back());
  }
  *model.mutable_graph()->add_output() = *x;
  model.mutable_graph()->mutable_output(0)->set_name("y");
  return model;
}
onnx::Attribute* AddAttribute(onnx::Node* node, const std::string& name, onnx::Attribute::Type type) {
  onnx::Attribute* const attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(type);
  return attribute;
}
onnx::Tensor* AddIntegers(onnx::Model* model, const std::string& name, const std::vector<int64_t>& values) {
  onnx::Tensor* const tensor = model->mutable_graph()->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(onnx::Tensor::INT64);
  tensor->add_dims(static_cast<int64_t>(values.size()));
  for (int64_t value : values) tensor->add_int64_data(value);
  return tensor;
}

// Returns the error of importing the model with x f32[3,4], or OK.
absl::Status Import(const onnx::Model& model, const std::string& folder = "") {
  const absl::StatusOr<OnnxModel> read = OnnxModel::Parse(model.SerializeAsString(), folder);
  if (!read.ok()) return read.status();
  Tape tape;
  return read->Record(&tape, {{"x", tape.Input("x", {kF32, {3, 4}})}}).status();
}
void ExpectError(const absl::Status& status, absl::string_view part) {
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr(std::string(part)));
}

TEST(OnnxTest, ErrorsNameWhatIsWrong) {
  EXPECT_TRUE(Import(ModelOf({{"Relu", {"x", "y"}}})).ok());
  ExpectError(Import(ModelOf({{"Loop", {"x", "y"}}})), "Loop 'Loop of the test': Weft reads no such op");
  ExpectError(Import(ModelOf({{"Relu", {"z", "y"}}})), "no earlier node computes its input 'z'");
  ExpectError(Import(ModelOf({{"Add", {"x", "y"}}})), "it has no input 1");
  ExpectError(Import(ModelOf({{"Relu", {"x", "y"}}}, 6)), "its opset is 6; opsets from 7 to 27 are read");
  ExpectError(Import(ModelOf({{"Softmax", {"x", "y"}}}, 12)), "opset 12 gives the op another meaning than 13");
  onnx::Model domain = ModelOf({{"Relu", {"x", "y"}}});
  domain.mutable_graph()->mutable_node(0)->set_domain("com.microsoft");
  ExpectError(Import(domain), "no such op of the domain 'com.microsoft'");
  onnx::Model attribute = ModelOf({{"Relu", {"x", "y"}}});
  attribute.mutable_graph()->mutable_node(0)->add_attribute()->set_name("slope");
  ExpectError(Import(attribute), "its attribute 'slope' is not read");
  ExpectError(Import(ModelOf({{"Shape", {"x", "s"}}, {"Cast", {"s", "y"}}})), "elements of ONNX's type 0");
  onnx::Model type = ModelOf({{"Relu", {"x", "y"}}});
  onnx::Type* const wanted = type.mutable_graph()->mutable_input(0)->mutable_type();
  wanted->mutable_tensor_type()->mutable_shape()->mutable_dim(1)->set_dim_value(5);
  ExpectError(Import(type), "input 'x' is f32[3,4]; the model wants f32[n,5]");
  ExpectError(Import(ModelOf({{"ReduceSum", {"x", "s"}}, {"Reshape", {"x", "s", "y"}}})),
              "the numbers of its input 's' must be known");
}

TEST(OnnxTest, IntegersBeyond32BitsAreErrorsWhereTheyMatter) {
  onnx::Model slice = ModelOf({{"Slice", {"x", "one", "far", "y"}}});
  AddIntegers(&slice, "one", {1});
  AddIntegers(&slice, "far", {INT64_MAX});
  EXPECT_TRUE(Import(slice).ok()) << Import(slice);
  onnx::Model sum = ModelOf({{"Add", {"one", "far", "s"}}, {"Reshape", {"x", "s", "y"}}});
  AddIntegers(&sum, "one", {1});
  AddIntegers(&sum, "far", {INT64_MAX});
  ExpectError(Import(sum), "an integer of input 1 does not fit 32 bits");
  onnx::Model product = ModelOf({{"Mul", {"big", "big", "s"}}, {"Reshape", {"x", "s", "y"}}});
  AddIntegers(&product, "big", {1 << 20});
  ExpectError(Import(product), "does not fit 32 bits");
  // Also after ops that move integers.
  onnx::Model moved = ModelOf({{"Identity", {"far", "f"}}, {"CastLike", {"f", "x", "y"}}});
  AddIntegers(&moved, "far", {int64_t{1} << 40});
  ExpectError(Import(moved), "an integer of input 0 does not fit 32 bits");
  onnx::Model end = ModelOf({{"Identity", {"far", "f"}}, {"Slice", {"x", "one", "f", "y"}}});
  AddIntegers(&end, "one", {1});
  AddIntegers(&end, "far", {INT64_MAX});
  EXPECT_TRUE(Import(end).ok()) << Import(end);
}

TEST(OnnxTest, ElementsInOtherFilesStayInTheFolder) {
  const std::string folder = testing::TempDir() + "/onnx_folder";
  std::filesystem::create_directories(folder + "/model");
  const std::string integers("\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0", 16);
  for (const char* const name : {"/model/own", "/other"}) ASSERT_TRUE(WriteFile(folder + name, {integers}).ok());
  std::filesystem::remove(folder + "/model/link");
  std::filesystem::create_symlink("../other", folder + "/model/link");
  const auto import = [&](const std::string& location, const std::string& offset, int64_t elements) {
    onnx::Model model = ModelOf({{"Slice", {"x", "from", "to", "y"}}});
    AddIntegers(&model, "to", {4});
    onnx::Tensor* const tensor = AddIntegers(&model, "from", {});
    tensor->set_dims(0, elements);
    tensor->set_data_location(onnx::Tensor::EXTERNAL);
    for (const auto& [key, value] : {std::pair<std::string, std::string>{"location", location}, {"offset", offset}}) {
      onnx::Entry* const entry = tensor->add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
    return Import(model, folder + "/model");
  };
  EXPECT_TRUE(import("own", "8", 1).ok()) << import("own", "8", 1);
  ExpectError(import("own", "8", 2), "has 8 bytes in place of 16");
  ExpectError(import("own", "17", 0), "its offset 17 is beyond the end");
  ExpectError(import("own", "-1", 1), "its offset '-1' is no number");
  for (const std::string& location : {std::string("../other"), folder + "/other", std::string("link"), std::string()}) {
    ExpectError(import(location, "0", 1), "which is not in the model's folder");
  }
}

// A model of t = LeakyRelu(x) in a function, and y = -t if `condition`, else max(t, 0).
onnx::Model Branches(std::vector<std::pair<std::string, std::vector<std::string>>> nodes) {
  nodes.push_back({"Own", {"x", "t"}});
  nodes.push_back({"If", {"condition", "y"}});
  onnx::Model model = ModelOf(nodes);
  AddIntegers(&model, "five", {5});
  onnx::Node* const choice = model.mutable_graph()->mutable_node(model.graph().node_size() - 1);
  for (const char* const name : {"then_branch", "else_branch"}) {
    onnx::Attribute* const branch = choice->add_attribute();
    branch->set_name(name);
    onnx::Node* const node = branch->mutable_g()->add_node();
    node->set_op_type(name[0] == 't' ? "Neg" : "Relu");
    node->add_input("t");
    node->add_output(name);
    branch->mutable_g()->add_output()->set_name(name);
  }
  onnx::Node* const call = model.mutable_graph()->mutable_node(model.graph().node_size() - 2);
  AddAttribute(call, "slope", onnx::Attribute::FLOAT)->set_f(0.5F);
  onnx::Function* const own = model.add_functions();
  own->set_name("Own");
  own->add_input("a");
  own->add_output("b");
  onnx::Node* const node = own->add_node();
  node->set_op_type("LeakyRelu");
  node->add_input("a");
  node->add_output("b");
  node->add_attribute()->set_name("alpha");
  node->mutable_attribute(0)->set_ref_attr_name("slope");
  return model;
}

// Returns y for x = -2, 0, 1, 4.
std::vector<double> ResultOf(const onnx::Model& model) {
  const absl::StatusOr<OnnxModel> read = OnnxModel::Parse(model.SerializeAsString(), "");
  if (!read.ok()) ADD_FAILURE() << read.status();
  if (!read.ok()) return {};
  Tape tape;
  const Var x = tape.Input("x", {kF32, {1, 4}});
  const absl::StatusOr<VarList> y = read->Record(&tape, {{"x", x}});
  if (!y.ok()) ADD_FAILURE() << y.status();
  if (!y.ok()) return {};
  Parameters parameters;
  Runner runner(*Compile(tape, {.fetch = {(*y)[0]}}), &parameters);
  return Doubles((*runner.Run({{x, std::vector<float>{-2, 0, 1, 4}}}))[(*y)[0]]);
}

TEST(OnnxTest, FunctionsAndBranchesAreInlined) {
  // The condition is known: x has fewer than 5 columns.
  const onnx::Model known = Branches(
      {{"Shape", {"x", "shape"}}, {"ReduceMax", {"shape", "columns"}}, {"Less", {"columns", "five", "condition"}}});
  EXPECT_EQ(ResultOf(known), (std::vector<double>{1, 0, -1, -4}));
  // The condition depends on the elements of x.
  const onnx::Model unknown = Branches({{"ReduceSum", {"x", "sum"}}, {"Less", {"sum", "sum", "condition"}}});
  EXPECT_EQ(ResultOf(unknown), (std::vector<double>{0, 0, 1, 4}));
  // Functions may differ in their overload only.
  onnx::Model two = known;
  two.mutable_functions(0)->set_overload("negative");
  two.mutable_functions(0)->mutable_node(0)->set_op_type("Neg");
  two.mutable_functions(0)->mutable_node(0)->clear_attribute();
  *two.add_functions() = known.functions(0);
  EXPECT_EQ(ResultOf(two), ResultOf(known));
  // A function that calls itself is refused.
  onnx::Model endless = known;
  endless.mutable_functions(0)->mutable_node(0)->set_op_type("Own");
  ExpectError(Import(endless), "nested more than 16 deep");
}

// The file says no type of a value that a node computes, so CastLike takes the type that the value has.
TEST(OnnxTest, CastLikeTakesTheTypeOfAComputedValue) {
  // As bools b, numbers other than 0 are true; as floats f again, they are 1.
  const onnx::Model bools = ModelOf(
      {{"Relu", {"x", "f"}}, {"Less", {"x", "f", "b"}}, {"CastLike", {"x", "b", "c"}}, {"CastLike", {"c", "f", "y"}}});
  EXPECT_EQ(ResultOf(bools), (std::vector<double>{1, 0, 1, 1}));
  // As integers i, numbers f between 0 and 1 are 0.
  const onnx::Model integers = ModelOf(
      {{"Sigmoid", {"x", "f"}}, {"ArgMax", {"x", "i"}}, {"CastLike", {"f", "i", "c"}}, {"CastLike", {"c", "f", "y"}}});
  EXPECT_EQ(ResultOf(integers), (std::vector<double>{0, 0, 0, 0}));
  // As bytes b, like the byte "max" of 254, their sums s wrap around at 256.
  onnx::Model bytes = ModelOf({{"Relu", {"x", "f"}},
                               {"CastLike", {"f", "max", "b"}},
                               {"Add", {"b", "max", "s"}},
                               {"CastLike", {"s", "f", "y"}}});
  onnx::Tensor* const max = AddIntegers(&bytes, "max", {254});
  max->set_data_type(onnx::Tensor::UINT8);
  max->clear_int64_data();
  max->add_int32_data(254);
  EXPECT_EQ(ResultOf(bytes), (std::vector<double>{254, 254, 255, 2}));
}

void AddFloat(onnx::Model* model, const std::string& name, float value) {
  onnx::Tensor* const tensor = AddIntegers(model, name, {});
  tensor->set_data_type(onnx::Tensor::FLOAT);
  tensor->set_dims(0, 1);
  tensor->add_float_data(value);
}

// 200 + 200, as bytes, is 144.
TEST(OnnxTest, ConstantsHaveTheirType) {
  onnx::Model model =
      ModelOf({{"Constant", {"c"}}, {"Add", {"c", "c", "s"}}, {"CastLike", {"s", "x", "f"}}, {"Add", {"x", "f", "y"}}});
  onnx::Tensor* const value =
      AddAttribute(model.mutable_graph()->mutable_node(0), "value", onnx::Attribute::TENSOR)->mutable_t();
  value->set_data_type(onnx::Tensor::UINT8);
  value->add_dims(1);
  value->add_int32_data(200);
  EXPECT_EQ(ResultOf(model), (std::vector<double>{142, 144, 145, 148}));
}

TEST(OnnxTest, RoundAndFmodAreExact) {
  onnx::Model large = ModelOf({{"Add", {"x", "c", "s"}}, {"Round", {"s", "y"}}});
  AddFloat(&large, "c", 8388607);  // from 2^23 on, all f32 are integers
  EXPECT_EQ(ResultOf(large), (std::vector<double>{8388605, 8388607, 8388608, 8388611}));
  onnx::Model below = ModelOf({{"Mul", {"x", "c", "s"}}, {"Round", {"s", "y"}}});
  AddFloat(&below, "c", std::nextafter(0.5F, 0.0F));
  EXPECT_EQ(ResultOf(below), (std::vector<double>{-1, 0, 0, 2}));
  for (const float divisor : {0.1F, -3.0F, std::numeric_limits<float>::infinity()}) {
    onnx::Model rest = ModelOf({{"Mod", {"x", "c", "y"}}});
    AddFloat(&rest, "c", divisor);
    AddAttribute(rest.mutable_graph()->mutable_node(0), "fmod", onnx::Attribute::INT)->set_i(1);
    std::vector<double> wanted;
    for (const float x : {-2.0F, 0.0F, 1.0F, 4.0F}) wanted.push_back(std::fmod(x, divisor));
    EXPECT_EQ(ResultOf(rest), wanted) << divisor;
  }
}

TEST(OnnxTest, ASliceThatBeginsBeforeTheAxisAndGoesBackHasTheFirstElement) {
  onnx::Model model = ModelOf({{"Slice", {"x", "from", "to", "axis", "step", "y"}}});
  AddIntegers(&model, "from", {-9});
  AddIntegers(&model, "to", {INT64_MIN});
  AddIntegers(&model, "axis", {1});
  AddIntegers(&model, "step", {-1});
  EXPECT_EQ(ResultOf(model), (std::vector<double>{-2}));
}

// Query, key and value are x, [1, 1, 4, 1].
TEST(OnnxTest, AttentionKnowsTheEndOfACache) {
  onnx::Model model =
      ModelOf({{"Reshape", {"x", "shape", "r"}}, {"Attention", {"r", "r", "r", "", "", "", "length", "y"}}});
  AddIntegers(&model, "shape", {1, 1, 4, 1});
  AddIntegers(&model, "length", {2});
  onnx::Node* const attention = model.mutable_graph()->mutable_node(1);
  AddAttribute(attention, "is_causal", onnx::Attribute::INT)->set_i(1);
  AddAttribute(attention, "scale", onnx::Attribute::FLOAT)->set_f(1e-30F);  // attends evenly
  // The cache has 2 tokens, so the last of the 4 targets sees both of them, and the one before it the first.
  EXPECT_EQ(ResultOf(model), (std::vector<double>{0, 0, -2, -1}));
}

TEST(OnnxTest, AttentionReturnsItsProductWithoutTheSoftCap) {
  onnx::Model model = ModelOf({{"Reshape", {"x", "shape", "r"}}, {"Attention", {"r", "r", "r", "y"}}});
  AddIntegers(&model, "shape", {1, 1, 4, 1});
  onnx::Node* const attention = model.mutable_graph()->mutable_node(1);
  AddAttribute(attention, "scale", onnx::Attribute::FLOAT)->set_f(1);
  AddAttribute(attention, "softcap", onnx::Attribute::FLOAT)->set_f(1);
  attention->clear_output();
  for (const char* const name : {"o", "", "", "y"}) attention->add_output(name);
  EXPECT_EQ(ResultOf(model), (std::vector<double>{4, 0, -2, -8, 0, 0, 0, 0, -2, 0, 1, 4, -8, 0, 4, 16}));
}

// docs/formats.md lists exactly the ops that are read.
TEST(OnnxTest, ThePageListsEveryOp) {
  const absl::StatusOr<std::string> page = ReadFile("docs/formats.md");
  ASSERT_TRUE(page.ok()) << page.status();
  const size_t begin = page->find("`Abs`, `Add`"), end = page->find("\n\n", begin);
  ASSERT_NE(end, std::string::npos);
  std::vector<std::string> wanted = {"Constant", "If"};  // onnx_recorder.cc has them
  for (const auto& ops : {OnnxArithmetic(), OnnxLayers(), OnnxSequences(), OnnxShapes()}) {
    for (const OnnxOp& op : ops) wanted.emplace_back(op.name);
  }
  std::sort(wanted.begin(), wanted.end());
  std::string listed = page->substr(begin, end - begin);
  std::replace(listed.begin(), listed.end(), '\n', ' ');
  EXPECT_EQ(listed, absl::StrCat("`", absl::StrJoin(wanted, "`, `"), "`"));
}

}  // namespace
}  // namespace weft
