// Reads tiny published models and compares outputs and gradients with those of transformers; writes them again and
// compares the tensors; and changes one key at a time in config.json. draw.py wrote the models and the results. A model
// that is read must have the outputs of transformers. Otherwise the error must name the key or the tensors that do not
// fit.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "weft/base/file.h"
#include "weft/formats/model_formats.h"
#include "weft/formats/weights.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/inference/encode/classifier.h"
#include "weft/inference/generate/translate.h"
#include "weft/text/data/gzip.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kFolder[] = "tests/published/", kAbsent[] = "(absent)";
// The largest difference of an output. Twice as much is allowed if a key of config.json was changed, because some keys
// make outputs larger.
constexpr double kTolerance = 1e-5;

// The inputs of draw.py.
const std::vector<int32_t> kTokens = {1, 5, 9, 2, 7, 11, 3, 8}, kSegments = {0, 0, 0, 0, 1, 1, 1, 1},
                           kTargets = {2, 6, 4, 10, 12};
constexpr int32_t kStart = 3, kEnd = 2, kLongest = 12;  // of the search of draw.py

// Records a model on inputs of batch 1.
struct Recorded {
  Var Ids(const char* name, const std::vector<int32_t>& ids, int64_t below) {
    const Var input = tape.Input(name, {kI32, {1, static_cast<int64_t>(ids.size())}}, {.below = below});
    feeds.push_back({input, ids});
    return input;
  }

  Tape tape;
  std::vector<FeedPair> feeds;
  std::vector<float> pixels;  // which a feed refers to, as to the next field
  std::vector<int32_t> ids;
  VarList outputs;
  std::vector<std::string> labels = {};  // if the outputs are a classifier's logits
  LabelScores scores = LabelScores::kSoftmax;
};

void Record(const PublishedGpt& gpt, Recorded* to) {
  to->outputs = {Gpt(gpt.config).Logits(to->Ids("tokens", kTokens, gpt.config.vocabulary))};
}

void Record(const PublishedBert& model, Recorded* to) {
  const Bert bert(model.config);
  to->ids = kTokens;
  if (model.config.model_type == "mpnet") std::replace(to->ids.begin(), to->ids.end(), 1, 4);  // as draw.py
  const Var tokens = to->Ids("tokens", to->ids, model.config.vocabulary);
  BertInputs inputs;
  if (model.config.segment_inputs) inputs.segments = to->Ids("segments", kSegments, model.config.segments);
  const Var hidden = bert.Encode(tokens, inputs);
  const auto classes = static_cast<int64_t>(model.labels.size());
  const bool masked = model.masked(), next = model.weights.Has("cls.seq_relationship.");
  if (model.task == TextTask::kTokens) {
    to->outputs = {bert.Classify(hidden, classes)};
  } else if (classes > 0) {
    to->outputs = {bert.ClassifyText(hidden, {}, classes)};
    to->labels = model.labels;
    to->scores = model.scores;
  } else if (model.choice) {
    to->outputs = {bert.ClassifyText(hidden, {}, 1)};
  } else if (model.weights.Has("qa_outputs.")) {
    to->outputs = {bert.AnswerSpan(hidden)};
  } else if (model.weights.Has("discriminator_predictions.")) {
    to->outputs = {bert.Replaced(hidden)};
  } else {
    if (!masked && !next) to->outputs.push_back(hidden);
    if (!masked && !next && model.weights.Has("pooler.")) to->outputs.push_back(bert.Pool(hidden));
    if (masked) to->outputs.push_back(bert.MaskedTokens(hidden));
    if (next) to->outputs.push_back(bert.NextSentence(bert.Pool(hidden)));
  }
}

void Record(const PublishedVit& vit, Recorded* to) {
  const VitConfig& config = vit.config;
  const Shape shape = {1, config.image_height, config.image_width, config.channels};
  const int64_t each = config.image_height * config.image_width;
  for (int64_t i = 0; i < shape.elements(); ++i) {  // draw.py has the channels first
    to->pixels.push_back(std::sin(static_cast<float>(i % config.channels * each + i / config.channels)));
  }
  const Var images = to->tape.Input("images", {kF32, shape});
  to->feeds.push_back({images, to->pixels});
  to->outputs = {Vit(config).Logits(images)};
  to->labels = vit.labels;
  to->scores = vit.scores;
}

// Returns the sources of draw.py.
std::vector<int32_t> SourceOf(const TransformerConfig& config) {
  std::vector<int32_t> source = kTokens;
  if (config.positions == PositionKind::kSinusoidalHalves) std::replace(source.begin(), source.end(), 1, 4);
  return source;
}

void Record(const PublishedTransformer& transformer, Recorded* to) {
  const TransformerConfig& config = transformer.config;
  to->ids = SourceOf(config);
  to->outputs = {Transformer(config).Logits(to->Ids("source", to->ids, config.source_vocabulary),
                                            to->Ids("target", kTargets, config.target_vocabulary))};
}

// A model that was read, and its outputs on the inputs of draw.py.
struct Run {
  absl::StatusOr<PublishedModel> model = absl::UnknownError("not read");
  Recorded recorded;
  Parameters parameters{{.draw = false}};

  // Reads the model in `folder` and computes its outputs and `more`, which `record` records from the outputs.
  absl::StatusOr<std::vector<Tensor>> Read(const std::string& folder,
                                           absl::FunctionRef<VarList(Recorded& recorded)> record) {
    model = ReadModel(folder);
    if (!model.ok()) return model.status();
    std::visit([&](const auto& published) { Record(published, &recorded); }, *model);
    VarList fetch = record(recorded);
    graph = Compile(recorded.tape, {.fetch = fetch, .mode = kEval});
    if (!graph.ok()) return graph.status();
    if (absl::Status set = ProvideFiniteWeights(folder, WeightsOf(*model), &parameters); !set.ok()) return set;
    runner.emplace(*graph, &parameters, RunnerOptions{.threads = 1});
    out = runner->Run(recorded.feeds);
    if (!out.ok()) return out.status();
    std::vector<Tensor> tensors;
    for (const Var each : fetch) tensors.push_back((*out)[each]);
    return tensors;
  }
  absl::StatusOr<Graph> graph = absl::UnknownError("not compiled");
  std::optional<Runner> runner;
  absl::StatusOr<Outputs> out = absl::UnknownError("not run");
};

// Reads the model and computes its outputs, one after the other.
absl::StatusOr<std::vector<double>> OutputsOf(const std::string& folder) {
  Run run;
  const absl::StatusOr<std::vector<Tensor>> outputs =
      run.Read(folder, [](Recorded& recorded) { return recorded.outputs; });
  if (!outputs.ok()) return outputs.status();
  std::vector<double> values;
  for (const Tensor& output : *outputs) {
    const absl::Span<const float> part = output.span<const float>();
    values.insert(values.end(), part.begin(), part.end());
  }
  if (run.recorded.labels.empty()) return values;
  const std::vector<float> logits(values.begin(), values.end());
  for (const auto& [label, score, id] : RankLabels(run.recorded.labels, logits, run.recorded.scores)) {
    values[static_cast<size_t>(id)] = score;
  }
  return values;
}

// Returns the sum of cos(i) times output i of the model.
Var Loss(const VarList& outputs) {
  Tape* const tape = outputs[0].tape;
  Var loss;
  int64_t first = 0;
  for (const Var output : outputs) {
    const int64_t count = output.shape().elements();
    const Var weights = ConstantTable(tape, kF32, count, 1, [&](int64_t i, int64_t) {
      return std::cos(static_cast<double>(static_cast<float>(first + i)));
    });
    const Var sum = Sum(Reshape(output, {count, 1}) * weights);
    loss = loss.tape == nullptr ? sum : loss + sum;
    first += count;
  }
  return loss;
}

// Returns the model with the gradients of Loss in place of its weights.
absl::StatusOr<PublishedModel> GradientsOf(const std::string& folder) {
  Run run;
  VarList weights;
  const absl::StatusOr<std::vector<Tensor>> gradients = run.Read(folder, [&](Recorded& recorded) {
    weights = recorded.tape.Weights();
    return recorded.tape.Gradient(Loss(recorded.outputs), weights);
  });
  if (!gradients.ok()) return gradients.status();
  Weights values;
  for (size_t i = 0; i < weights.size(); ++i) {
    const absl::StatusOr<Tensor> to = values.Add(run.recorded.tape.ParameterName(weights[i]), (*gradients)[i].type);
    if (!to.ok()) return to.status();
    std::memcpy(to->data, (*gradients)[i].data, to->type.bytes());
  }
  WeightsOf(*run.model) = std::move(values);
  return std::move(run.model);
}

// Returns the largest difference from the outputs that draw.py kept, or infinity.
double Difference(const std::vector<double>& got, const std::vector<double>& wanted) {
  if (got.size() < wanted.size()) return INFINITY;
  double largest = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double difference = std::abs(got[i * got.size() / wanted.size()] - wanted[i]);
    largest = difference >= 0 ? std::max(largest, difference) : INFINITY;
  }
  return largest;
}

// Returns the names of the models of draw.py.
std::vector<std::string> Models() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Returns the results of draw.py for a model.
Json CasesOf(const std::string& name) {
  const absl::StatusOr<std::string> text = ReadMaybeGzip(absl::StrCat(kFolder, name, "/cases.json.gz"));
  EXPECT_TRUE(text.ok()) << text.status();
  return text.ok() ? Json::parse(*text) : Json::object();
}

// The written model must have the tensors of the folder that was read, bit by bit.
TEST(PublishedTest, AWrittenModelHasTheSameTensors) {
  for (const std::string& name : Models()) {
    const std::string from = absl::StrCat(kFolder, name), to = absl::StrCat(testing::TempDir(), "/", name, "_written");
    const absl::StatusOr<PublishedModel> model = ReadModel(from);
    ASSERT_TRUE(model.ok()) << name << ": " << model.status();
    std::filesystem::create_directories(to);
    ASSERT_TRUE(WriteModel(to, *model).ok()) << name << ": " << WriteModel(to, *model);
    const absl::StatusOr<Weights> wanted = Weights::Read(from), got = Weights::Read(to);
    ASSERT_TRUE(wanted.ok() && got.ok()) << name << ": " << got.status();
    for (const NamedTensor& each : wanted->tensors()) {
      const Tensor* const written = got->Find(each.name);
      ASSERT_NE(written, nullptr) << name << " lacks " << each.name;
      ASSERT_EQ(written->type, each.tensor.type) << name << ", " << each.name;
      EXPECT_EQ(std::memcmp(written->data, each.tensor.data, each.tensor.type.bytes()), 0) << name << ", " << each.name;
    }
    EXPECT_EQ(got->tensors().size(), wanted->tensors().size()) << name;
  }
}

// Gradients are written as weights are, so that they have the names and layouts of transformers.
TEST(PublishedTest, GradientsAreThoseOfTransformers) {
  for (const std::string& name : Models()) {
    const absl::StatusOr<PublishedModel> gradients = GradientsOf(absl::StrCat(kFolder, name));
    ASSERT_TRUE(gradients.ok()) << name << ": " << gradients.status();
    const std::string folder = absl::StrCat(testing::TempDir(), "/", name, "_gradients");
    std::filesystem::create_directories(folder);
    ASSERT_TRUE(WriteModel(folder, *gradients).ok()) << name << ": " << WriteModel(folder, *gradients);
    const absl::StatusOr<Weights> written = Weights::Read(folder);
    ASSERT_TRUE(written.ok()) << name << ": " << written.status();
    const Json cases = CasesOf(name);
    ASSERT_FALSE(cases["gradients"].empty()) << name;
    for (const auto& [tensor, kept] : cases["gradients"].items()) {
      const Tensor* const found = written->Find(tensor);
      ASSERT_NE(found, nullptr) << name << " lacks " << tensor;
      const absl::Span<const float> span = found->span<const float>();
      const std::vector<double> wanted = kept;
      const double largest =
          std::abs(*absl::c_max_element(wanted, [](double a, double b) { return std::abs(a) < std::abs(b); }));
      EXPECT_LT(Difference({span.begin(), span.end()}, wanted), 1e-4 * std::max(1.0, largest))
          << name << ", " << tensor;
    }
  }
}

// Greedy search reads the keys and values of earlier tokens from a cache.
TEST(PublishedTest, EncoderDecodersGenerateTheTokensOfTransformers) {
  int models = 0;
  for (const std::string& name : Models()) {
    const Json cases = CasesOf(name);
    if (!cases.contains("generated")) continue;
    const absl::StatusOr<PublishedTransformer> model = ReadModelOf<PublishedTransformer>(absl::StrCat(kFolder, name));
    ASSERT_TRUE(model.ok()) << name << ": " << model.status();
    Parameters parameters({.draw = false});
    ASSERT_TRUE(ProvideFiniteWeights(name, model->weights, &parameters).ok()) << name;
    const auto translator = Translator::Create(model->config, &parameters);
    ASSERT_TRUE(translator.ok()) << name << ": " << translator.status();
    const auto found = (*translator)
                           ->Translate({{SourceOf(model->config)}},
                                       {.beam = 1, .max_length = kLongest, .begin = kStart, .end = {kEnd}});
    ASSERT_TRUE(found.ok()) << name << ": " << found.status();
    EXPECT_EQ((*found)[0][0].tokens, cases["generated"]["tokens"].get<std::vector<int32_t>>()) << name;
    EXPECT_NEAR((*found)[0][0].log_probability, cases["generated"]["log_probability"].get<double>(), 2e-3) << name;
    ++models;
  }
  EXPECT_GT(models, 0);
}

// The tables of docs/formats.md have exactly the types that are read.
TEST(PublishedTest, ThePageListsEveryType) {
  const absl::StatusOr<std::string> page = ReadFile("docs/formats.md");
  ASSERT_TRUE(page.ok()) << page.status();
  std::set<std::string> listed, known;
  bool in_families = false;
  for (const absl::string_view line : absl::StrSplit(*page, '\n')) {
    if (absl::StartsWith(line, "#")) in_families = absl::EndsWith(line, " of Hugging Face");
    if (!in_families || !absl::StartsWith(line, "| `") || absl::StartsWith(line, "| `model_type`")) continue;
    const absl::string_view cell = line.substr(2, line.find(" |") - 2);
    for (const absl::string_view type : absl::StrSplit(cell, ", ")) listed.emplace(type.substr(1, type.size() - 2));
  }
  for (const ModelFamily* const family :
       {&PublishedGpt::kFamily, &PublishedBert::kFamily, &PublishedTransformer::kFamily, &PublishedVit::kFamily}) {
    for (const absl::string_view type : family->model_types) known.emplace(type);
  }
  known.erase("transformer");  // this project's own
  EXPECT_EQ(listed, known);
}

TEST(PublishedTest, EachKeyIsFollowedOrRefused) {
  for (const std::string& name : Models()) {
    const Json model = CasesOf(name);
    const absl::StatusOr<std::string> config = ReadFile(absl::StrCat(kFolder, name, "/config.json"));
    ASSERT_TRUE(config.ok()) << config.status();
    const Json original = Json::parse(*config);
    const std::string folder = absl::StrCat(testing::TempDir(), "/", name);
    std::filesystem::create_directories(folder);
    std::filesystem::copy_file(absl::StrCat(kFolder, name, "/model.safetensors"), folder + "/model.safetensors",
                               std::filesystem::copy_options::overwrite_existing);
    const auto outputs_of = [&](const Json& json) {
      EXPECT_TRUE(WriteFile(folder + "/config.json", {json.dump()}).ok());
      return OutputsOf(folder);
    };
    const absl::StatusOr<std::vector<double>> base = outputs_of(original);
    ASSERT_TRUE(base.ok()) << name << ": " << base.status();
    ASSERT_LT(Difference(*base, model["outputs"]), kTolerance) << name;
    int same = 0, followed = 0, refused = 0;
    for (const Json& row : model["rows"]) {
      const std::string key = row[0];
      const Json& expected = row[2];
      Json changed = original;
      if (row[1] == kAbsent) {
        changed.erase(key);
      } else {
        changed[key] = row[1];
      }
      const std::string what = absl::StrCat(name, ", ", key, ": ", row[1].dump(), ", in transformers ",
                                            expected.is_array() ? "other outputs" : expected.dump());
      const absl::StatusOr<std::vector<double>> got = outputs_of(changed);
      if (!got.ok()) {
        EXPECT_TRUE(expected == "error" || absl::IsFailedPrecondition(got.status()) ||
                    absl::StrContains(got.status().message(), key))
            << what << ": " << got.status();
        ++refused;
      } else {  // where transformers has no outputs, the key must have no effect
        const Json& wanted = expected.is_array() ? expected : model["outputs"];
        EXPECT_LT(Difference(*got, wanted), 2 * kTolerance) << what;
        ++(expected.is_array() ? followed : same);
      }
    }
    std::printf("%-12s %d keys change nothing, %d are followed, %d are refused\n", name.c_str(), same, followed,
                refused);
  }
}

}  // namespace
}  // namespace weft
