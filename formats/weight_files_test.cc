// Each test changes a copy of a small GPT-2 that the package transformers wrote, whose head is tied.
#include "weft/formats/weight_files.h"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <thread>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/base/file.h"
#include "weft/core/block_formats.h"
#include "weft/formats/convert.h"
#include "weft/formats/weights.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class WeightFilesTest : public ::testing::Test {
 protected:
  WeightFilesTest() {
    fs::remove_all(folder_);
    fs::copy("tests/peers/peft/gpt2", folder_);
    weights_ = *Weights::Read(folder_);
  }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  void Write(const std::string& name, absl::string_view text) const { ASSERT_TRUE(WriteFile(Path(name), {text}).ok()); }
  // Writes the weights to `name`.
  void WriteWeights(const std::string& name = "model.safetensors") const {
    ASSERT_TRUE(WriteSafetensors(Path(name), weights_.tensors()).ok());
  }
  Tensor Add(const std::string& name, const std::string& copied) {
    const Tensor from = *weights_.Find(copied), to = *weights_.Add(name, from.type);
    std::memcpy(to.data, from.data, from.type.bytes());
    return to;
  }
  // Gives a tensor of the file an unsigned type of the same size.
  void MakeUnread(const std::string& name) const {
    std::string bytes = *ReadFile(Path("model.safetensors"));
    const size_t dtype = bytes.find("F32", bytes.find("\"" + name + "\""));
    bytes.replace(dtype, 3, "U32");
    // The file's own checksum, a hexadecimal number, would not fit: another program's has another length.
    const size_t checksum = bytes.find("\"checksum\"");
    if (checksum != std::string::npos) bytes.replace(checksum, 10, "\"another_\"");
    Write("model.safetensors", bytes);
  }
  absl::StatusOr<PublishedModel> Read(bool ignore = false) const {
    return ReadModel(folder_, {.ignore_extra_tensors = ignore});
  }
  std::string Error() const { return std::string(Read().status().message()); }
  // Returns the bytes of all tensors of the model, by name.
  static std::map<std::string, std::string> Bytes(const PublishedModel& model) {
    std::map<std::string, std::string> bytes;
    for (const auto& [name, tensor] : WeightsOf(model).tensors()) {
      bytes[name] = std::string(reinterpret_cast<const char*>(tensor.data), tensor.type.bytes());
    }
    return bytes;
  }

  const std::string folder_ = ::testing::TempDir() + "/weight_files";
  Weights weights_;
};

TEST_F(WeightFilesTest, AFolderOfShardsIsTheSameModel) {
  const auto whole = Bytes(*Read());
  ASSERT_TRUE(DivideWeights(folder_, 1'000'000).ok());
  EXPECT_FALSE(fs::exists(Path(kWeightIndex)));  // one file is enough
  ASSERT_TRUE(DivideWeights(folder_, 3000).ok());
  EXPECT_FALSE(fs::exists(Path("model.safetensors")));
  for (const char* const shard : {"model-00001-of-00004.safetensors", "model-00004-of-00004.safetensors"}) {
    EXPECT_TRUE(IsWeightShard(shard));
    EXPECT_TRUE(fs::exists(Path(shard))) << shard;
  }
  EXPECT_THAT(*ReadFile(Path(kWeightIndex)), HasSubstr("\"total_size\": 8288"));
  const absl::StatusOr<PublishedModel> model = Read();
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_TRUE(Bytes(*model) == whole);
  // As in the package transformers, model.safetensors goes before an index.
  Write(kWeightIndex, "{}");
  WriteWeights();
  EXPECT_TRUE(Read().ok());
}

TEST_F(WeightFilesTest, AnIndexMustFitItsFiles) {
  WriteWeights("a.safetensors");
  fs::remove(Path("model.safetensors"));
  const auto error = [&](const std::string& map) {
    Write(kWeightIndex, "{\"weight_map\": {" + map + "}}");
    return Error();
  };
  EXPECT_EQ(error(R"("transformer.wte.weight": "a.safetensors")"), "");
  EXPECT_THAT(error(""), HasSubstr("model.safetensors.index.json: weight_map is missing or empty"));
  EXPECT_THAT(error(R"("transformer.wte.weight": "b.safetensors")"), HasSubstr("b.safetensors: No such file"));
  EXPECT_THAT(error(R"("x": "a.safetensors")"), HasSubstr("'x' should be in " + Path("a.safetensors, which lacks it")));
  for (const char* const file : {"\"../weight_files/a.safetensors\"", "\"/a.safetensors\"", "\"a.bin\"", "1", "null"}) {
    EXPECT_THAT(error(absl::StrCat("\"x\": ", file)), HasSubstr(absl::StrCat("'x' is in ", file, "; wanted the name")));
  }
  WriteWeights("b.safetensors");
  EXPECT_THAT(error(R"("transformer.wte.weight": "a.safetensors", "transformer.wpe.weight": "b.safetensors")"),
              HasSubstr("is in " + Path("a.safetensors and in ") + Path("b.safetensors")));
  Write(kWeightIndex, "{");
  EXPECT_THAT(Error(), HasSubstr("model.safetensors.index.json: it is not JSON"));
}

TEST_F(WeightFilesTest, FilesOfOtherProgramsAreNamed) {
  for (const auto& [bytes, what] : {std::pair{absl::string_view("\x08\x08\x12\x07pytorch"), "an ONNX file"},
                                    {"PK\x03\x04", "a PyTorch file"},
                                    {"\x80\x02\x8a\x0al\xfc\x9c", "a PyTorch file"},
                                    {"\x89HDF\r\n\x1a\n", "a file of TensorFlow"}}) {
    Write("file", absl::StrCat(bytes, std::string(16, '\0')));
    const absl::Status status = ReadModel(Path("file")).status();
    EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat(Path("file"), " is ", what, ", which is not")));
  }
  EXPECT_THAT(std::string(ReadModel(Path("model.safetensors")).status().message()), HasSubstr("Wanted its folder"));
  Write("file", "GGUF and more than fifteen bytes");
  EXPECT_EQ(ReadModel(Path("file")).status().message(),
            Path("file") + " is a GGUF file; wanted a name that ends with .gguf");
  fs::remove(Path("model.safetensors"));
  EXPECT_EQ(Error(), "cannot open " + Path("model.safetensors") + ": No such file or directory");
  for (const char* const name : {"model.gguf", "model.onnx", "tf_model.h5", "flax_model.msgpack"}) {
    Write(name, "");
    EXPECT_THAT(Error(), HasSubstr(absl::StrCat(Path(name), " is a"))) << name;
    fs::remove(Path(name));
  }
  fs::remove(Path("config.json"));
  Write("model.gguf", "");
  EXPECT_THAT(Error(), HasSubstr("model.gguf is no valid GGUF file: the file ends at byte 0"));
  Write("other.gguf", "");
  EXPECT_THAT(Error(), HasSubstr("model.gguf is a GGUF file, which is a model by itself. Wanted this file"));
}

TEST_F(WeightFilesTest, ATensorOfAnyTypeMayBeLeftOut) {
  const TensorType mask = {kF32, {1, 1, 10, 10}};
  ASSERT_TRUE(weights_.Add("transformer.h.0.attn.bias", mask).ok());
  WriteWeights();
  MakeUnread("transformer.h.0.attn.bias");  // GPT-2's mask
  EXPECT_TRUE(Read().ok()) << Error();
  MakeUnread("transformer.wpe.weight");
  EXPECT_THAT(Error(), HasSubstr("does not fit the model: 'wpe.weight' is U32[10,8], which is not supported; wanted "
                                 "f32[10,8]"));
}

TEST_F(WeightFilesTest, ExtraTensorsAreLeftOutOnlyIfAskedFor) {
  ASSERT_TRUE(weights_.Add("transformer.score.weight", {kF32, {2, 8}}).ok());
  ASSERT_TRUE(weights_.Add("counts", {kF32, {3}}).ok());
  WriteWeights();
  MakeUnread("counts");
  EXPECT_THAT(Error(),
              HasSubstr("unexpected 'counts' U32[3]; unexpected 'score.weight' f32[2,8]; "
                        "`weft import --ignore-extra-tensors` and `weft train --ignore-extra-tensors` leave such "
                        "tensors out"));
  const absl::StatusOr<PublishedModel> model = Read(/*ignore=*/true);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(WeightsOf(*model).extra(), ElementsAre("'counts' U32[3]", "'score.weight' f32[2,8]"));
  EXPECT_EQ(WeightsOf(*model).Find("score.weight"), nullptr);
}

// transformers 5.24 takes a missing one of two tied weights from the other, whichever it is. If both are there and
// differ, it leaves them untied.
TEST_F(WeightFilesTest, ATiedHeadIsTakenFromEitherSide) {
  const auto whole = Bytes(*Read());
  const Tensor head = Add("lm_head.weight", "transformer.wte.weight");
  WriteWeights();
  EXPECT_TRUE(Bytes(*Read()) == whole);
  head.as<float>()[0] += 1;
  WriteWeights();
  absl::StatusOr<PublishedModel> model = Read();
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_FALSE(std::get<PublishedGpt>(*model).config.tied_head);
  EXPECT_EQ(WeightsOf(*model).Find("lm_head.weight")->as<float>()[0], head.as<float>()[0]);
  head.as<float>()[0] -= 1;
  ASSERT_TRUE(weights_.Apply({{"transformer.wte.weight", {}}}).ok());
  WriteWeights();
  model = Read();
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_TRUE(std::get<PublishedGpt>(*model).config.tied_head);
  EXPECT_TRUE(Bytes(*model) == whole);
}

TEST_F(WeightFilesTest, AConversionRemovesWhatAKilledOneLeft) {
  const std::string out = Path("out"), left = out + "/12345.tmp";
  for (const bool overwrite : {false, true}) {
    fs::create_directories(left + "/sub");
    const absl::StatusOr<ModelConversion> conversion =
        ModelConversion::Prepare({.model = folder_, .out = out, .overwrite = overwrite});
    ASSERT_TRUE(conversion.ok()) << conversion.status();
    {
      const absl::StatusOr<Descriptor> other = LockFolder(out);
      EXPECT_THAT(std::string(conversion->Write().message()), HasSubstr("is in use by another process"));
      EXPECT_TRUE(fs::exists(left));
    }
    ASSERT_TRUE(conversion->Write().ok());
    EXPECT_FALSE(fs::exists(left));
    EXPECT_TRUE(fs::exists(out + "/model.safetensors"));
  }
}

// A child process writes over another model of the same shapes, and is killed as soon as its first shard is there. Then
// no reader takes the files of both for a model.
TEST_F(WeightFilesTest, AKilledConversionLeavesNoMixtureOfTwoModels) {
  const std::string out = Path("out");
  const auto before = Bytes(*Read());
  const auto write = [&](absl::FunctionRef<void()> before_moves) {
    const absl::StatusOr<ModelConversion> conversion =
        ModelConversion::Prepare({.model = folder_, .out = out, .max_shard_size = 1000, .overwrite = true});
    ASSERT_TRUE(conversion.ok() && conversion->Write(before_moves).ok());
  };
  write([] {});
  fs::copy(out, out + "_before", fs::copy_options::recursive);
  weights_.Find("transformer.wte.weight")->as<float>()[1] = 7;
  weights_.Find("transformer.h.1.ln_1.weight")->as<float>()[1] = 7;
  WriteWeights();
  const auto after = Bytes(*Read());
  fs::path first;
  for (const fs::directory_entry& entry : fs::directory_iterator(out)) {
    if (absl::StartsWith(entry.path().filename().string(), "model-00001-of-")) first = entry.path();
  }
  ASSERT_FALSE(first.empty());
  bool seen = false;  // whether a child was killed while it moved files
  for (int i = 0; i < 200 && !seen; ++i) {
    fs::remove_all(out);
    fs::copy(out + "_before", out, fs::copy_options::recursive);
    const fs::file_time_type old = fs::last_write_time(first);
    const pid_t child = fork();
    if (child == 0) {
      write([&] {
        std::thread([&] {
          std::error_code error;
          while (fs::last_write_time(first, error) == old) continue;
          std::_Exit(0);
        }).detach();
      });
      std::this_thread::sleep_for(std::chrono::seconds(10));
      std::_Exit(1);
    }
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
    ASSERT_NE(fs::last_write_time(first), old);
    const absl::StatusOr<PublishedModel> left = ReadModel(out);
    seen = !left.ok();
    if (seen) {
      EXPECT_THAT(std::string(left.status().message()), HasSubstr("config.json"));
    } else {
      EXPECT_EQ(Bytes(*left) == before || Bytes(*left) == after, true);
    }
  }
  EXPECT_TRUE(seen);
}

TEST_F(WeightFilesTest, AConversionKeepsWhatBelongsToTheModelAndRefusesGarbage) {
  for (const char* const name : {"chat_template.jinja", "tokenizer_config.json"}) {
    Write(name, "{}");
  }
  const std::string out = Path("out");
  absl::StatusOr<ModelConversion> conversion =
      ModelConversion::Prepare({.model = folder_, .out = out, .max_shard_size = 3000});
  ASSERT_TRUE(conversion.ok()) << conversion.status();
  ASSERT_TRUE(conversion->Write().ok());
  EXPECT_TRUE(fs::exists(out + "/model-00001-of-00004.safetensors"));
  EXPECT_GT(conversion->StoredBytes(), 8288u);
  EXPECT_TRUE(fs::exists(out + "/chat_template.jinja"));
  // The end token of config.json is 0.
  EXPECT_THAT(*ReadFile(out + "/generation_config.json"), HasSubstr("\"eos_token_id\": 0"));
  // A model in one file leaves nothing of the shards.
  conversion = ModelConversion::Prepare({.model = folder_, .out = out, .overwrite = true});
  ASSERT_TRUE(conversion->Write().ok());
  EXPECT_FALSE(fs::exists(out + "/model-00001-of-00004.safetensors"));
  EXPECT_FALSE(fs::exists(out + "/" + kWeightIndex));
  weights_.Find("transformer.wte.weight")->as<float>()[1] = std::numeric_limits<float>::quiet_NaN();
  WriteWeights();
  EXPECT_THAT(std::string(ModelConversion::Prepare({.model = folder_, .out = out + "2"}).status().message()),
              HasSubstr("element 1 of 'wte.weight' f32[29,8] is NaN"));
}

TEST_F(WeightFilesTest, OfABlockThatIsNotFiniteTheFirstElementIsNamed) {
  Weights weights;
  const Tensor tensor = *weights.Add("w", {kQ8_0, {3, 100}});
  EXPECT_TRUE(CheckFinite("here", weights).ok());
  EncodeWeight({std::numeric_limits<float>::quiet_NaN()}, kQ8_0, tensor.data + 5 * BytesOf(kQ8_0, 1));
  EXPECT_EQ(CheckFinite("here", weights).message(), "here: element 132 of 'w' q8_0[3,100] is NaN");
}

TEST(ReadLlama2cTest, AModelIsNoDevice) {
  EXPECT_THAT(std::string(ReadModelOf<PublishedGpt>("/dev/zero").status().message()),
              HasSubstr("it is not a regular file"));
}

}  // namespace
}  // namespace weft
