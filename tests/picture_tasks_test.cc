// Tests `weft train vit --task=masked` and `--task=order` as a user calls them: the bits for any number of threads and
// micro-batches, a resumed run, a classifier that begins with the weights, the picture of puzzles, and errors.
#include <png.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "weft/tests/weft_program.h"

namespace weft {
namespace {

using Json = nlohmann::json;

bool Contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class PictureTasksTest : public WeftProgramTest, public testing::WithParamInterface<std::string> {
 protected:
  PictureTasksTest() { WriteTrainingData(); }

  CommandResult Run(const std::string& out, const Arguments& more) const {
    return Weft(SmallTraining("vit") + Arguments{"--task=" + GetParam(), "--steps=12", "--out=" + out} + more);
  }
};

INSTANTIATE_TEST_SUITE_P(Tasks, PictureTasksTest, testing::Values("masked", "order"),
                         [](const auto& info) { return info.param; });

TEST_P(PictureTasksTest, NeitherThreadsNorAResumeChangeABit) {
  const Arguments flags = {"--checkpoint-every=5", "--eval-every=4"};
  ASSERT_TRUE(Works(Run("one", flags + Arguments{"--threads=1"})));
  ASSERT_TRUE(Works(Run("two", flags + Arguments{"--threads=2"})));
  EXPECT_EQ(Differences(Results("one"), Results("two")), "");
  EXPECT_EQ(Read("one/puzzles.png"), Read("two/puzzles.png"));
  // A run as it would be if it had been killed after step 10.
  std::filesystem::copy(Path("one"), Path("resumed"), std::filesystem::copy_options::recursive);
  for (const char* name : {"checkpoints/12", "model.safetensors", "puzzles.png"}) {
    ASSERT_GT(std::filesystem::remove_all(Path(std::string("resumed/") + name)), 0u) << name;
  }
  const CommandResult resumed = Weft({"train", "vit", "--resume", "--out=resumed"});
  ASSERT_TRUE(Works(resumed));
  EXPECT_TRUE(Contains(resumed.err, "resumed after step 10")) << resumed.err;
  EXPECT_EQ(Differences(Results("one"), Results("resumed")), "");
  EXPECT_EQ(Read("one/puzzles.png"), Read("resumed/puzzles.png"));
}

TEST_P(PictureTasksTest, AStepHasTheSamePuzzlesInAnyNumberOfMicroBatches) {
  const Arguments flags = {"--learning-rate=0", "--min-learning-rate=0", "--dropout=0", "--eval-every=12",
                           "--log-every=1"};
  ASSERT_TRUE(Works(Run("whole", flags)));
  ASSERT_TRUE(Works(Run("parts", flags + Arguments{"--micro-batches=3"})));
  const auto losses = [&](const std::string& run) {
    std::vector<double> all;
    std::istringstream lines(Read(run + "/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const Json json = Json::parse(line);
      for (const char* key : {"train_loss", "val_loss"}) {
        if (json.contains(key) && json[key].is_number()) all.push_back(json[key].get<double>());
      }
    }
    return all;
  };
  const std::vector<double> whole = losses("whole"), parts = losses("parts");
  ASSERT_EQ(whole.size(), parts.size());
  ASSERT_GT(whole.size(), 2u);
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(whole[i], parts[i], 1e-5) << i;
}

TEST_P(PictureTasksTest, AClassifierBeginsWithTheWeights) {
  ASSERT_TRUE(Works(Run("first", {})));
  const CommandResult second = Weft(SmallTraining("vit") + Arguments{"--init=first", "--steps=1", "--out=second"});
  ASSERT_TRUE(Works(second));
  EXPECT_TRUE(Contains(second.err, "first does not have: classifier.bias, classifier.weight")) << second.err;
  EXPECT_EQ(Contains(second.err, "vit.embeddings.position_embeddings"), GetParam() == "order") << second.err;
  EXPECT_TRUE(Works(Weft({"classify", "--model=second", "pictures.csv"})));
  // And the other way round.
  const CommandResult third = Run("third", {"--init=second"});
  ASSERT_TRUE(Works(third));
  EXPECT_TRUE(Contains(third.err, GetParam() == "masked" ? "decoder.0.bias, decoder.0.weight" : "places.bias"));
}

TEST_P(PictureTasksTest, ARunWithoutAClassifierIsNotOpenedAsOne) {
  ASSERT_TRUE(Works(Run("run", {})));
  for (const char* command : {"classify", "evaluate"}) {
    EXPECT_TRUE(Fails(Weft({command, "--model=run", "pictures.csv"}), 2,
                      "run: the model was trained with --task=" + GetParam() + " and has no classifier"));
  }
  const CommandResult exported = Weft({"export", "--model=run", "--out=exported", "--layout=huggingface"});
  if (GetParam() == "order") {
    EXPECT_TRUE(Fails(exported, 2, "a ViT of the task order can't be written as huggingface"));
    return;
  }
  ASSERT_TRUE(Works(exported));
  const Json config = Json::parse(Read("exported/config.json"));
  EXPECT_EQ(config["architectures"], Json({"ViTForMaskedImageModeling"}));
  EXPECT_EQ(config["encoder_stride"], 2);
  EXPECT_FALSE(config.contains("id2label"));
  EXPECT_TRUE(Works(Run("again", {"--init=exported"})));
  EXPECT_TRUE(Fails(Weft({"classify", "--model=exported", "pictures.csv"}), 2, "has no classifier"));
}

TEST_P(PictureTasksTest, ThePictureOfPuzzlesHasThreeColumns) {
  const CommandResult result = Run("run", {});
  ASSERT_TRUE(Works(result));
  EXPECT_TRUE(Contains(result.out, "puzzles.png: ")) << result.out;
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  ASSERT_NE(png_image_begin_read_from_file(&image, Path("run/puzzles.png").c_str()), 0) << image.message;
  EXPECT_EQ(image.width, 3u * (112 + 4) + 4);
  EXPECT_EQ((image.height - 4) % (112 + 4), 0u);
  png_image_free(&image);
}

TEST_F(WeftProgramTest, PictureTasksNeedFittingOptions) {
  WriteTrainingData();
  const std::pair<Arguments, const char*> kBad[] = {
      {{"--task=masked", "--masked=0"}, "--masked"},
      {{"--task=masked", "--masked=1.5"}, "--masked"},
      {{"--task=masked", "--patch-size=3"}, "can't be cut into patches of patch_size 3"},
      {{"--task=order", "--patch-size=4"}, "order needs at least 2 patches, but a picture of 4 x 4 pixels is 1 patch"},
      {{"--task=colour"}, "--task"},
  };
  for (const auto& [flags, error] : kBad) {
    EXPECT_TRUE(Fails(Weft(SmallTraining("vit") + flags + Arguments{"--out=run"}), 2, error));
    EXPECT_FALSE(Exists("run"));
  }
}

}  // namespace
}  // namespace weft
