// Reads the files of draw.py, which llama.cpp's converter wrote of models of transformers, and compares their logits
// and their tokens with what transformers and tokenizers gave.
#include "weft/core/gguf.h"

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "weft/base/file.h"
#include "weft/base/json.h"
#include "weft/formats/convert.h"
#include "weft/formats/generation.h"
#include "weft/formats/run_folder.h"
#include "weft/formats/weights.h"
#include "weft/inference/runtime/runtime.h"
#include "weft/text/data/gzip.h"
#include "weft/text/tokenizers/gguf_tokenizer.h"
#include "weft/text/tokenizers/load_tokenizer.h"

namespace weft {
namespace {

using Json = nlohmann::json;

struct Logits : EvalGraph {
  Var tokens, logits;
};

std::string PathOf(const std::string& name) { return absl::StrCat("tests/gguf/", name, ".gguf"); }

// Returns the tensor called `name`, or an empty one.
Tensor Find(const GgufFile& file, const std::string& name) {
  for (const NamedTensor& each : file.tensors()) {
    if (each.name == name) return each.tensor;
  }
  return {};
}

// Writes a file with the tensors of `file` and other metadata, and returns its path.
std::string WithMetadata(const GgufFile& file, const nlohmann::ordered_json& metadata) {
  std::vector<GgufWriter::NamedType> types;
  for (const auto& [name, tensor] : file.tensors()) types.emplace_back(name, tensor.type);
  const std::string path = testing::TempDir() + "/changed.gguf";
  absl::StatusOr<GgufWriter> writer = GgufWriter::Create(path, metadata, types);
  EXPECT_TRUE(writer.ok()) << writer.status();
  if (!writer.ok()) return path;
  for (const auto& [name, tensor] : file.tensors()) EXPECT_TRUE(writer->Add(tensor).ok());
  EXPECT_TRUE(writer->Finish().ok());
  return path;
}

class GgufTest : public testing::Test {
 protected:
  void SetUp() override {
    const absl::StatusOr<std::string> text = ReadMaybeGzip("tests/gguf/expected.json.gz");
    ASSERT_TRUE(text.ok()) << text.status();
    expected_ = Json::parse(*text);
  }

  // Returns the logits of the last token, or the last hidden state of an encoder, with the weights held as they are
  // stored.
  absl::StatusOr<std::vector<float>> LogitsOf(const std::string& path) {
    const absl::StatusOr<PublishedModel> model = ReadModel(path);
    if (!model.ok()) return model.status();
    const auto* const gpt = std::get_if<PublishedGpt>(&*model);
    const auto* const bert = std::get_if<PublishedBert>(&*model);
    const std::vector<int32_t> ids = expected_["ids"];
    Logits graph;
    graph.tokens = graph.tape.Input("tokens", {kI32, {1, static_cast<int64_t>(ids.size())}}, {.below = 100});
    graph.logits = gpt != nullptr ? Gpt(gpt->config).Logits(graph.tokens) : Bert(bert->config).Encode(graph.tokens);
    const int64_t width = graph.logits.dim(-1);
    Parameters parameters({.draw = false});
    if (absl::Status set = ProvideFiniteWeights(path, WeightsOf(*model), &parameters); !set.ok()) return set;
    if (absl::Status done = graph.Compile({.fetch = {graph.logits}}, {.threads = 1}, &parameters); !done.ok())
      return done;
    const absl::StatusOr<Outputs> out = graph.Run({{graph.tokens, ids}});
    if (!out.ok()) return out.status();
    const absl::Span<const float> all = (*out)[graph.logits].span<const float>();
    return std::vector<float>(all.end() - width, all.end());
  }

  void ExpectLogits(const std::string& path, const std::string& name, double tolerance) {
    const absl::StatusOr<std::vector<float>> got = LogitsOf(path);
    ASSERT_TRUE(got.ok()) << path << ": " << got.status();
    const std::vector<float> wanted = expected_[name]["logits"];
    ASSERT_EQ(got->size(), wanted.size());
    double largest = 0;
    for (size_t i = 0; i < wanted.size(); ++i) largest = std::max<double>(largest, std::abs((*got)[i] - wanted[i]));
    EXPECT_LT(largest, tolerance) << path;
  }

  void ExpectTokens(const std::string& path, const std::string& name) {
    const auto tokenizer = LoadTokenizer(path);
    ASSERT_TRUE(tokenizer.ok()) << path << ": " << tokenizer.status();
    for (const Json& row : expected_[name]["texts"]) {
      const std::string text = row[0];
      const absl::StatusOr<std::vector<int32_t>> ids = (*tokenizer)->Encode(text);
      ASSERT_TRUE(ids.ok()) << ids.status();
      EXPECT_EQ(*ids, row[1].get<std::vector<int32_t>>()) << name << ": " << text;
    }
  }

  Json expected_;
};

// The models whose logits are compared, with the largest difference that the format of the weights may make.
constexpr std::pair<const char*, double> kModels[] = {{"gpt2", 1e-4},      {"llama", 1e-4},  {"llama_f16", 5e-3},
                                                      {"llama_q8_0", 0.5}, {"llama3", 1e-4}, {"qwen2", 1e-4},
                                                      {"qwen3", 1e-4},     {"bert", 1e-4}};

TEST_F(GgufTest, ModelsHaveTheLogitsOfTransformers) {
  for (const auto& [name, tolerance] : kModels) ExpectLogits(PathOf(name), name, tolerance);
}

TEST_F(GgufTest, TokenizersGiveTheIdsOfTokenizers) {
  for (const auto& [name, tolerance] : kModels) ExpectTokens(PathOf(name), name);
}

TEST_F(GgufTest, FileGivesSpecialTokens) {
  const std::string path = PathOf("llama");
  const auto tokenizer = LoadTokenizer(path);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const absl::StatusOr<GenerationSettings> settings = ReadGenerationSettings(path, **tokenizer, 301);
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->end, (std::vector<int32_t>{2, 0}));  // llama.cpp knows <|endoftext|>, token 0, by its text
  EXPECT_EQ(settings->begin, 1);
  EXPECT_EQ(settings->padding, 2);
  EXPECT_EQ((*tokenizer)->special_tokens().unknown, 0);
}

// llama.cpp surrounds the texts of a BERT whatever the flags say, and has numbers for tokens without a key.
TEST_F(GgufTest, TokensAroundATextAreThoseOfLlamaCpp) {
  const auto wrapped = [](const char* name, const std::vector<const char*>& without, bool flags) {
    const absl::StatusOr<GgufFile> file = GgufFile::Open(PathOf(name));
    EXPECT_TRUE(file.ok()) << file.status();
    nlohmann::ordered_json metadata = file->metadata();
    for (const char* const key : {"add_bos_token", "add_eos_token"}) {
      metadata[absl::StrCat("tokenizer.ggml.", key)] = flags;
    }
    for (const char* const key : without) metadata.erase(absl::StrCat("tokenizer.ggml.", key));
    const auto tokenizer = LoadTokenizer(WithMetadata(*file, metadata));
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
    return (*tokenizer)->Wrap({5}).ids;
  };
  EXPECT_EQ(wrapped("bert", {}, false), (std::vector<int32_t>{2, 5, 3}));
  EXPECT_EQ(wrapped("bert", {"bos_token_id", "seperator_token_id"}, true), (std::vector<int32_t>{101, 5, 102}));
  EXPECT_EQ(wrapped("gpt2", {"bos_token_id"}, true), (std::vector<int32_t>{11, 5, 2}));
  EXPECT_EQ(wrapped("gpt2", {}, false), std::vector<int32_t>{5});
}

TEST_F(GgufTest, TokenizersThatAFileCannotHaveAreRefused) {
  const std::string folder = testing::TempDir() + "/tokenizer";
  const Json bert = Json::parse(R"({"model": {"type": "WordPiece", "vocab": {"[UNK]": 0, "a": 1, "b": 2},
      "unk_token": "[UNK]"}, "normalizer": {"type": "BertNormalizer"}, "pre_tokenizer": {"type": "BertPreTokenizer"},
      "decoder": {"type": "WordPiece"},
      "post_processor": {"type": "BertProcessing", "cls": ["a", 1], "sep": ["b", 2]}})");
  constexpr char kOther[] = "its WordPiece is not that of a BERT",
                 kAround[] = "its texts have other tokens around them than the begin and the end token";
  const struct {
    const char *patch, *error;
  } kRows[] = {
      {R"({"normalizer": {"clean_text": false}})", kOther},
      {R"({"normalizer": {"handle_chinese_chars": false}})", kOther},
      {R"({"pre_tokenizer": {"type": "Whitespace"}})", kOther},
      {R"({"post_processor": null})", kAround},
      {R"({"added_tokens": [{"content": "a", "id": 1, "special": true, "lstrip": true}]})", "\"a\" has lstrip"},
  };
  for (const auto& [patch, error] : kRows) {
    Json changed = bert;
    changed.merge_patch(Json::parse(patch));
    ASSERT_TRUE(WriteTokenizerFolder(folder, {"tokenizer.json", changed.dump()}).ok());
    EXPECT_EQ(GgufOfTokenizer(folder, 3).status().message(),
              absl::StrCat("the tokenizer can't be written to a GGUF file: ", error));
  }
}

// Of several chat templates, a file has the one called default.
TEST_F(GgufTest, ChatTemplatesAreFoundWhereTransformersFindsThem) {
  const std::string folder = testing::TempDir() + "/templates";
  const std::pair<const char*, const char*> kFiles[] = {
      {"tokenizer_config.json",
       R"({"chat_template": [{"name": "tools", "template": "T"}, {"name": "default", "template": "D"}]})"},
      {"chat_template.jinja", "D"},
      {"tokenizer_config.json", R"({"chat_template": [{"name": "tools", "template": "T"}]})"}};
  for (const auto& [name, contents] : kFiles) {
    ASSERT_TRUE(WriteTokenizerFolder(folder, {"tokenizer.json", R"({"model": {"type": "BPE", "vocab": {"a": 0},
        "merges": []}, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
        "decoder": {"type": "ByteLevel"}})"})
                    .ok());
    ASSERT_TRUE(WriteFile(absl::StrCat(folder, "/", name), {contents}).ok());
    const absl::StatusOr<nlohmann::ordered_json> metadata = GgufOfTokenizer(folder, 1);
    if (absl::StrContains(contents, "\"D\"") || name == std::string("chat_template.jinja")) {
      ASSERT_TRUE(metadata.ok()) << metadata.status();
      EXPECT_EQ(metadata->value("tokenizer.chat_template", ""), "D") << name;
    } else {
      EXPECT_EQ(metadata.status().message(),
                "the tokenizer can't be written to a GGUF file: none of its chat templates is called default");
    }
  }
}

// A model that is read and written again has the same tensors, bit by bit, and the same metadata.
TEST_F(GgufTest, FilesAreWrittenAsTheyWereRead) {
  for (const auto& [name, tolerance] : kModels) {
    const std::string out = absl::StrCat(testing::TempDir(), "/written_", name);
    const auto conversion = ModelConversion::Prepare({.model = PathOf(name), .out = out, .format = "gguf"});
    ASSERT_TRUE(conversion.ok()) << conversion.status();
    const absl::Status written = conversion->Write();
    ASSERT_TRUE(written.ok()) << written;
    EXPECT_FALSE(Exists(out + "/tokenizer.json")) << "it is in the file";
    ExpectLogits(out, name, tolerance);
    ExpectTokens(out, name);
    const absl::StatusOr<GgufFile> wanted = GgufFile::Open(PathOf(name)), got = GgufFile::Open(out + "/model.gguf");
    ASSERT_TRUE(wanted.ok() && got.ok());
    for (const auto& [key, value] : wanted->metadata().items()) {
      if (absl::StartsWith(key, "general.")) continue;
      // llama.cpp's tokenizer for BERT has no use for these.
      if (name == std::string("bert") && (key == "tokenizer.ggml.pre" || key == "tokenizer.ggml.add_sep_token"))
        continue;
      EXPECT_EQ(got->metadata().value(key, nlohmann::ordered_json()), value) << name << ", " << key;
    }
    ASSERT_EQ(got->tensors().size(), wanted->tensors().size());
    for (const auto& [tensor_name, tensor] : wanted->tensors()) {
      const Tensor same = Find(*got, tensor_name);
      ASSERT_EQ(same.type, tensor.type) << tensor_name;
      if (tensor_name == "rope_freqs.weight") {  // is computed anew
        for (int64_t i = 0; i < tensor.type.shape.dim(0); ++i) {
          EXPECT_FLOAT_EQ(same.span<float>()[i], tensor.span<float>()[i]) << i;
        }
        continue;
      }
      EXPECT_EQ(std::memcmp(same.data, tensor.data, tensor.type.bytes()), 0) << tensor_name;
    }
  }
}

TEST_F(GgufTest, FilesBecomeFoldersOfHuggingFace) {
  for (const auto& [name, tolerance] : kModels) {
    const std::string out = absl::StrCat(testing::TempDir(), "/folder_", name);
    const auto conversion = ModelConversion::Prepare({.model = PathOf(name), .out = out});
    ASSERT_TRUE(conversion.ok()) << conversion.status();
    ASSERT_TRUE(conversion->Write().ok());
    ExpectLogits(out, name, tolerance);
    ExpectTokens(out, name);
    // The package tokenizers refuses a file without these keys.
    const absl::StatusOr<std::string> text = ReadFile(out + "/tokenizer.json");
    ASSERT_TRUE(text.ok()) << text.status();
    const Json tokenizer = Json::parse(*text);
    for (const Json& token : tokenizer["added_tokens"]) {
      for (const char* const key : {"single_word", "lstrip", "rstrip", "normalized", "special"}) {
        EXPECT_TRUE(token.contains(key)) << name << ": " << token << " lacks " << key;
      }
    }
    const bool bert = name == std::string("bert");
    EXPECT_TRUE(bert ? tokenizer["normalizer"].contains("clean_text") : tokenizer["decoder"].contains("trim_offsets"));
    if (bert) continue;  // has no chat template
    const absl::StatusOr<nlohmann::ordered_json> config = ReadJsonFile(out + "/tokenizer_config.json");
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_TRUE(config->value("chat_template", "").starts_with("{% for m in messages %}"));
  }
}

TEST_F(GgufTest, OtherWeightsAreWrittenIfAskedFor) {
  const std::string out = testing::TempDir() + "/q4_0";
  ConvertOptions options = {.model = PathOf("llama_q8_0"), .out = out, .format = "gguf"};
  options.write.weights = kQ4_0;
  const auto conversion = ModelConversion::Prepare(options);
  ASSERT_TRUE(conversion.ok()) << conversion.status();
  ASSERT_TRUE(conversion->Write().ok());
  const absl::StatusOr<GgufFile> file = GgufFile::Open(out + "/model.gguf");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->metadata()["general.file_type"], 2);  // llama.cpp's LLAMA_FTYPE_MOSTLY_Q4_0
  for (const auto& [name, tensor] : file->tensors()) {
    const DType wanted =
        absl::StrContains(name, "norm") || absl::StrContains(name, "attn_k") || absl::StrContains(name, "attn_v") ? kF32
        : absl::StrContains(name, "token_embd") ? kQ8_0
                                                : kQ4_0;
    EXPECT_EQ(tensor.type.dtype, wanted) << name;
  }
}

// Converts the GGUF file `path` to a folder in Hugging Face's format, and this folder to a GGUF file. Returns the paths
// of the three models.
std::vector<std::string> Converted(const std::string& path) {
  std::vector<std::string> paths = {path};
  for (const char* const format : {"huggingface", "gguf"}) {
    const std::string out = absl::StrCat(testing::TempDir(), "/converted_", format);
    const auto conversion =
        ModelConversion::Prepare({.model = paths.back(), .out = out, .format = format, .overwrite = true});
    EXPECT_TRUE(conversion.ok()) << conversion.status();
    if (!conversion.ok()) break;
    EXPECT_TRUE(conversion->Write().ok());
    paths.push_back(out);
  }
  return paths;
}

TEST_F(GgufTest, PoolingIsFollowedAndKept) {
  const absl::StatusOr<GgufFile> file = GgufFile::Open(PathOf("bert"));
  ASSERT_TRUE(file.ok()) << file.status();
  const std::pair<int, Pooling> kPoolings[] = {{1, Pooling::kMean}, {2, Pooling::kFirst}};
  for (const auto& [number, pooling] : kPoolings) {
    nlohmann::ordered_json metadata = file->metadata();
    metadata["bert.pooling_type"] = static_cast<uint32_t>(number);
    for (const std::string& path : Converted(WithMetadata(*file, metadata))) {
      const auto model = ReadModelOf<PublishedBert>(path);
      ASSERT_TRUE(model.ok()) << model.status();
      const absl::StatusOr<SentenceFormat> format = ReadSentenceFormat(path, model->config);
      ASSERT_TRUE(format.ok()) << format.status();
      EXPECT_EQ(format->pooling, pooling) << path;
    }
  }
}

// llama.cpp ends texts also at tokens that it knows by their texts, and samples as the file says.
TEST_F(GgufTest, SettingsOfGenerationAreFollowedAndKept) {
  constexpr int32_t kTurn = 300;
  const absl::StatusOr<GgufFile> file = GgufFile::Open(PathOf("llama"));
  ASSERT_TRUE(file.ok()) << file.status();
  nlohmann::ordered_json metadata = file->metadata();
  metadata["tokenizer.ggml.tokens"][kTurn] = "<|eot_id|>";
  metadata["tokenizer.ggml.token_type"][kTurn] = 4;  // a token of the user, which llama.cpp makes a control token
  metadata["tokenizer.ggml.fim_sep_token_id"] = uint32_t{9};
  metadata["tokenizer.ggml.suppress_tokens"] = {7, 8};
  metadata["general.sampling.temp"] = 0.5;
  metadata["general.sampling.top_k"] = 20;
  for (const std::string& path : Converted(WithMetadata(*file, metadata))) {
    const auto tokenizer = LoadTokenizer(TokenizerOf(path));
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    const absl::StatusOr<GenerationSettings> settings = ReadGenerationSettings(path, **tokenizer, 301);
    ASSERT_TRUE(settings.ok()) << settings.status();
    EXPECT_EQ(settings->end, (std::vector<int32_t>{2, 9, 0, kTurn})) << path;
    EXPECT_EQ(settings->excluded, (std::vector<int32_t>{7, 8})) << path;
    EXPECT_EQ(settings->do_sample, true) << path;
    EXPECT_EQ(settings->temperature, 0.5) << path;
    EXPECT_EQ(settings->top_k, 20) << path;
  }
}

// What changes a model and is not supported is refused, by its key.
TEST_F(GgufTest, UnsupportedKeysAreRefusedByName) {
  const absl::StatusOr<GgufFile> file = GgufFile::Open(PathOf("llama"));
  ASSERT_TRUE(file.ok()) << file.status();
  const struct {
    const char* key;
    nlohmann::ordered_json value;
    const char* error;  // "": the key is harmless
  } kRows[] = {
      {"general.architecture", "falcon",
       "general.architecture is \"falcon\", which is not supported; wanted gpt2, llama, qwen2, qwen3, bert"},
      {"general.type", "adapter", "general.type is \"adapter\""},
      {"split.count", uint32_t{2}, "split.count is 2"},
      // The text is not UTF-8, which generation_config.json must be.
      {"tokenizer.ggml.padding_token_id", "\xFF", "tokenizer.ggml.padding_token_id is a text"},
      {"tokenizer.ggml.eot_token_id", "\xFF", "tokenizer.ggml.eot_token_id is a text"},
      {"tokenizer.ggml.suppress_tokens", std::vector<int32_t>(65), "suppress_tokens is a text, or has more than 64"},
      {"llama.rope.scaling.type", "yarn", "rope.scaling.type is \"yarn\""},
      {"llama.rope.scaling.type", "none", ""},
      {"llama.rope.dimension_count", uint32_t{2}, "rope.dimension_count is 2"},
      {"llama.attention.value_length", uint32_t{8}, "attention.value_length is 8"},
      {"llama.attention.head_count", "many", "attention.head_count is \"many\""},
      {"llama.attention.head_count", uint32_t{0}, "heads"},
      {"llama.expert_count", uint32_t{8}, "expert_count is 8"},
      {"llama.expert_count", uint32_t{0}, ""},
      {"general.sampling.mirostat", int32_t{2}, "general.sampling.mirostat is 2"},
      {"llama.block_count", uint32_t{3}, "missing 'model.layers.2"},
      {"general.license", "mit", ""},
      {"general.quantized_by", "me", ""},
  };
  for (const auto& [key, value, error] : kRows) {
    nlohmann::ordered_json metadata = file->metadata();
    metadata[key] = value;
    const absl::Status status = ReadModel(WithMetadata(*file, metadata)).status();
    EXPECT_EQ(status.ok(), *error == '\0') << key << ": " << status;
    EXPECT_TRUE(absl::StrContains(status.message(), error)) << key << ": " << status;
  }
}

}  // namespace
}  // namespace weft
