#include "weft/tests/weft_program.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>

#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/models/bert.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

std::string NewFolder() {
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  const fs::path folder = fs::path(testing::TempDir()) / "weft_program" / test->test_suite_name() / test->name();
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder.string();
}

std::string Text() {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "line " + std::to_string(i) + " of a text, with words\n";
  return text;
}

testing::AssertionResult Failure(const std::string& what, const CommandResult& result) {
  return testing::AssertionFailure() << what << "; exit code " << result.exit_code << "\nstdout: " << result.out
                                     << "\nstderr: " << result.err;
}

}  // namespace

Arguments operator+(Arguments a, const Arguments& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Arguments operator-(Arguments a, const std::string& word) {
  std::erase(a, word);
  return a;
}

std::string Differences(const Files& a, const Files& b) {
  std::string names;
  for (const auto& [name, contents] : a) {
    const auto other = b.find(name);
    if (other == b.end() || other->second != contents) names += name + "\n";
  }
  for (const auto& [name, contents] : b) {
    if (a.count(name) == 0) names += name + "\n";
  }
  return names;
}

WeftProgramTest::WeftProgramTest() : folder_(NewFolder()), program_(fs::absolute("apps/weft").string()) {
  Write("text.txt", Text());
}

CommandResult WeftProgramTest::Weft(const Arguments& arguments, CommandOptions options) const {
  if (options.folder.empty()) options.folder = folder_;
  return RunCommand(Arguments{program_} + arguments, options);
}

CommandResult WeftProgramTest::Train(const Arguments& more, CommandOptions options) const {
  const Arguments small = {"--data=text.txt",  "--steps=20",         "--eval-every=10",
                           "--eval-batches=2", "--sample-length=40", "--warmup-steps=4"};
  return Weft(Arguments{"train", "gpt"} + small + kTinyModel + more, options);
}

void WeftProgramTest::MakeRun(const std::string& name, const Arguments& more) const {
  ASSERT_TRUE(Works(Train(Arguments{"--out=" + name} + more)));
}

void WeftProgramTest::WriteTrainingData() const {
  std::string source, target, labelled, pictures;
  for (int i = 0; i < 40; ++i) {
    const std::string first(1, static_cast<char>('a' + i % 7)), second(1, static_cast<char>('k' + i % 5));
    std::string words = first, reversed = first;
    for (int j = 0; j < i % 9; ++j) {
      words += " " + second;
      reversed = second + " " + reversed;
    }
    source += words + "\n";
    target += reversed + "\n";
    labelled += (i % 2 == 0 ? "a good " : "the bad ") + words + "\t" + (i % 2 == 0 ? "pos" : "neg") + "\n";
    for (int pixel = 0; pixel < 16; ++pixel) {
      pictures += (i % 2 == 0 ? pixel : pixel / 4) % 2 == 0 ? "9," : "1,";  // vertical or horizontal stripes
    }
    pictures += std::to_string(i % 2) + "\n";
  }
  Write("a.txt", source);
  Write("b.txt", target);
  Write("labelled.tsv", labelled);
  Write("pictures.csv", pictures);
}

Arguments WeftProgramTest::SmallTraining(const std::string& name) {
  static const std::map<std::string, Arguments> flags = {
      {"translate",
       {"--source=a.txt", "--target=b.txt", "--vocabulary=300", "--encoder-layers=1", "--decoder-layers=1",
        "--width=32", "--heads=2", "--feed-forward=64", "--batch=8", "--dropout=0.1", "--scheduled-sampling=linear",
        "--sampling-steps=10", "--input-noise=0.05", "--r-drop=2", "--bpe-dropout=0.2"}},
      {"bert",
       {"--data=text.txt", "--vocabulary=300", "--layers=1", "--width=32", "--heads=2", "--feed-forward=64",
        "--context=24", "--batch=4", "--eval-batches=2", "--next-sentence", "--min-learning-rate=0"}},
      {"classify",
       {"--data=labelled.tsv", "--vocabulary=300", "--layers=1", "--width=32", "--heads=2", "--feed-forward=64",
        "--batch=4", "--pooling=mean"}},
      {"vit",
       {"--data=pictures.csv", "--patch-size=2", "--layers=1", "--width=32", "--heads=2", "--batch=4", "--shift=1",
        "--dropout=0.1"}},
  };
  return Arguments{"train", name} + flags.at(name);
}

void WeftProgramTest::WriteBert(const std::string& folder, int64_t context) const {
  fs::create_directories(Path(folder));
  Write(folder + "/vocab.txt", "[UNK]\n[CLS]\n[SEP]\n[PAD]\na\n##b\n");
  Write(folder + "/config.json",
        "{\"model_type\":\"bert\",\"vocab_size\":6,\"max_position_embeddings\":" + std::to_string(context) +
            ",\"num_hidden_layers\":2,\"num_attention_heads\":2,\"hidden_size\":8,\"intermediate_size\":12}");
  Tape tape;
  const Var tokens = tape.Input("tokens", {kI32, {1, 2}}, {.below = 6});
  const Bert bert({.vocabulary = 6, .context = context, .layers = 2, .heads = 2, .width = 8, .feed_forward = 12});
  const absl::StatusOr<Graph> graph = Compile(tape, {.fetch = {bert.Encode(tokens)}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  Parameters parameters({.seed = 5});
  const Runner runner(*graph, &parameters);  // creates them
  const absl::Status saved = parameters.Save(Path(folder + "/model.safetensors"));
  ASSERT_TRUE(saved.ok()) << saved;
}

void WeftProgramTest::WriteTransformer(const std::string& folder) const {
  constexpr int64_t kWidth = 8, kInner = 12, kTokens = 9;  // <blank>, <s>, </s>, five letters, and the unknown one
  fs::create_directories(Path(folder));
  for (const char* side : {"source", "target"}) {
    Write(folder + "/" + side + "_vocabulary.txt", "<blank>\n<s>\n</s>\na\nb\nc\nd\ne\n");
  }
  Write(folder + "/config.json",
        "{\"d_model\":8,\"num_heads\":2,\"ffn_dim\":12,\"encoder_layers\":2,\"decoder_layers\":2,"
        "\"activation\":\"relu\",\"source_vocab\":9,\"target_vocab\":9}");
  std::vector<std::pair<std::string, Shape>> shapes = {{"encoder/embeddings/weight", {kTokens, kWidth}},
                                                       {"decoder/embeddings/weight", {kTokens, kWidth}}};
  const auto add = [&](const std::string& name, int64_t out, int64_t in) {
    shapes.push_back({name + "/weight", {out, in}});
    shapes.push_back({name + "/bias", {out}});
  };
  const auto add_norm = [&](const std::string& name) {
    for (const char* part : {"/gamma", "/beta"}) shapes.push_back({name + part, {kWidth}});
  };
  add("decoder/projection", kTokens, kWidth);
  for (const std::string side : {"encoder", "decoder"}) {
    add_norm(side + "/layer_norm");
    for (const std::string layer : {"/layer_0", "/layer_1"}) {
      const std::string name = side + layer;
      add_norm(name + "/self_attention/layer_norm");
      add(name + "/self_attention/linear_0", 3 * kWidth, kWidth);
      add(name + "/self_attention/linear_1", kWidth, kWidth);
      add_norm(name + "/ffn/layer_norm");
      add(name + "/ffn/linear_0", kInner, kWidth);
      add(name + "/ffn/linear_1", kWidth, kInner);
      if (side == "encoder") continue;
      add_norm(name + "/attention/layer_norm");
      add(name + "/attention/linear_0", kWidth, kWidth);
      add(name + "/attention/linear_1", 2 * kWidth, kWidth);
      add(name + "/attention/linear_2", kWidth, kWidth);
    }
  }
  Parameters parameters({.seed = 5});
  std::vector<ParameterSpec> specs;
  for (const auto& [name, shape] : shapes) specs.push_back({name, {kF32, shape}, Gaussian(0.5f)});
  ASSERT_TRUE(parameters.Create(specs).ok());
  const absl::Status saved = parameters.Save(Path(folder + "/model.safetensors"));
  ASSERT_TRUE(saved.ok()) << saved;
}

bool WeftProgramTest::Exists(const std::string& name) const { return fs::exists(Path(name)); }

std::string WeftProgramTest::Read(const std::string& name) const {
  std::ifstream file(Path(name), std::ios::binary);
  EXPECT_TRUE(file) << "can't read " << name;
  std::ostringstream contents;
  contents << file.rdbuf();
  return std::move(contents).str();
}

void WeftProgramTest::Write(const std::string& name, const std::string& contents) const {
  std::ofstream(Path(name), std::ios::binary) << contents;
}

Files WeftProgramTest::Snapshot(const std::string& name) const {
  Files files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(Path(name))) {
    const std::string path = fs::relative(entry.path(), Path(name)).string();
    files[path] = entry.is_directory() ? "a folder" : Read(name + "/" + path);
  }
  return files;
}

Files WeftProgramTest::Results(const std::string& run) const {
  static const std::regex times("\"(seconds|tokens_per_second|memory)\":[0-9.e+-]+");
  Files files = Snapshot(run);
  files.erase("config.json");
  std::string& metrics = files["metrics.jsonl"];
  metrics = std::regex_replace(metrics, times, "\"$1\":0");
  return files;
}

std::string WithoutProgress(const std::string& err) {
  static const std::regex progress(
      "training an? .*|runs on [0-9]+ of [0-9]+ threads: .*|step [0-9]+/[0-9]+  .*|saved .*/model.safetensors|resumed "
      "after step [0-9]+|nothing was saved "
      "yet "
      "to resume from: .*|[0-9.]+% of the weights are trained: .*|this CPU has no bf16 products: .*|new weights, which "
      ".*|left out of .*|no better .*|the "
      "learning rate is now .*|measuring a step of .*|simulating [0-9]+ executions of .*");
  std::string rest;
  std::istringstream lines(err);
  for (std::string line; std::getline(lines, line);) {
    if (!std::regex_match(line, progress)) rest += line + "\n";
  }
  return rest;
}

testing::AssertionResult Fails(const CommandResult& result, int exit_code, const std::string& message) {
  if (result.exit_code != exit_code) return Failure("wanted exit code " + std::to_string(exit_code), result);
  const std::string err = WithoutProgress(result.err);
  if (err.rfind("weft", 0) != 0) return Failure("stderr doesn't begin with the command", result);
  if (std::count(err.begin(), err.end(), '\n') != 1) return Failure("stderr isn't one line", result);
  if (err.find(message) == std::string::npos) return Failure("stderr doesn't have '" + message + "'", result);
  return testing::AssertionSuccess();
}

testing::AssertionResult Works(const CommandResult& result) {
  if (result.exit_code != 0 || !WithoutProgress(result.err).empty()) {
    return Failure("wanted exit code 0 and nothing but progress on stderr", result);
  }
  return testing::AssertionSuccess();
}

}  // namespace weft
