// Reads PNG and JPEG files and compares a model's inputs and logits with those of transformers. draw.py wrote the files
// and the numbers.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/base/file.h"
#include "weft/formats/image_processor.h"
#include "weft/formats/images.h"
#include "weft/inference/encode/classifier.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

using testing::ElementsAre;
using testing::HasSubstr;
using Json = nlohmann::ordered_json;

constexpr char kFolder[] = "tests/pictures/";

std::string Bytes(const std::string& path) { return ReadFile(path).value_or(""); }

// Returns a new folder with the model of tests/published and a preprocessor_config.json.
std::string ModelWith(const std::string& name, const std::string& config) {
  static int folders = 0;
  const std::string folder = absl::StrCat(testing::TempDir(), "/", name, ++folders);
  fs::create_directories(folder);
  for (const char* file : {"/config.json", "/model.safetensors"}) {
    fs::copy_file(absl::StrCat("tests/published/", name, file), folder + file, fs::copy_options::overwrite_existing);
  }
  EXPECT_TRUE(WriteFile(folder + "/preprocessor_config.json", {config}).ok());
  return folder;
}

TEST(PicturesTest, InputsAndLogitsAreThoseOfTransformers) {
  const Json cases = Json::parse(Bytes(absl::StrCat(kFolder, "cases.json")));
  ASSERT_GT(cases.size(), 30u);
  for (const Json& row : cases) {
    SCOPED_TRACE(row["picture"].dump() + row["config"].dump());
    const auto classifier = PictureClassifier::Open(ModelWith(row["model"], row["config"].dump()), {.batch = 1});
    ASSERT_TRUE(classifier.ok()) << classifier.status();
    const VitConfig& config = (*classifier)->config();
    const ImageProcessor& processor = (*classifier)->processor();
    const absl::StatusOr<Images> images = ReadUnlabelledImages(kFolder + row["picture"].get<std::string>(),
                                                               config.image_height, config.image_width, processor);
    ASSERT_TRUE(images.ok()) << images.status();
    const std::vector<double> pixels = row["pixels"], logits = row["logits"];
    ASSERT_EQ(images->pixels.size(), row["count"]);
    for (size_t i = 0; i < pixels.size(); ++i) {
      const size_t at = i * images->pixels.size() / pixels.size();
      EXPECT_NEAR(processor(images->pixels[at], at), pixels[i], 1e-5 * std::max(1.0, std::abs(pixels[i]))) << at;
    }
    const auto got = (*classifier)->Run(*images);
    ASSERT_TRUE(got.ok()) << got.status();
    for (size_t i = 0; i < logits.size(); ++i)
      EXPECT_NEAR((*got)[0][i], logits[i], 1e-5 * std::max(1.0, std::abs(logits[i])));
  }
}

TEST(PicturesTest, EveryKeyIsFollowedOrRefused) {
  const std::pair<const char*, const char*> kRefused[] = {
      {R"({"resample": 0})", "preprocessor_config.json: resample is 0, which is not supported; wanted 1"},
      {R"({"resample": null})", "resample is null"},
      {R"({"size": {"max_height": 8, "max_width": 8}})", "size is {"},
      {R"({"size": {"shortest_edge": 8, "longest_edge": 9}})", "size is {"},
      {R"({"size": 0})", "size is 0"},
      {R"({"size": [8, 70000]})", "size is [8,70000]"},
      {R"({"do_center_crop": true, "crop_size": {"shortest_edge": 8}})", "crop_size is {"},
      {R"({"do_center_crop": true, "crop_size": null})", "crop_size is null"},
      {R"({"image_mean": [0.5, 0.5]})", "image_mean is [0.5,0.5]"},
      {R"({"image_std": [0.5, 0, 0.5]})", "image_std is [0.5,0,0.5]"},
      {R"({"rescale_factor": "1/255"})", "rescale_factor is"},
      {R"({"do_resize": 1})", "do_resize is 1"},
      {R"({"do_pad": true})", "do_pad is true"},
      {R"({"data_format": "channels_last"})", "data_format is"},
      {R"({"image_processor_type": "CLIPImageProcessor"})", "image_processor_type is \"CLIPImageProcessor\""},
      {R"({"auto_map": {"AutoImageProcessor": "code.Own"}})", "'auto_map' is"},
      {R"({"do_flip": true})", "'do_flip' is true"}};
  for (const auto& [config, error] : kRefused) {
    const absl::Status status = PictureClassifier::Open(ModelWith("vit_colour", config), {}).status();
    EXPECT_THAT(std::string(status.message()), HasSubstr(error)) << config;
  }
}

TEST(PicturesTest, OtherPicturesAreRefused) {
  ImageProcessor grey = {.channels = 1}, cropped;
  cropped.crop_height = cropped.crop_width = 20;
  const std::tuple<std::string, const ImageProcessor*, const char*> kRefused[] = {
      {"deep.png", nullptr, "deep.png: a PNG file of 16 bits a channel; wanted 8 or less"},
      {"cmyk.jpg", nullptr, "cmyk.jpg: "},
      {"colour.png", &grey, "colour.png: it is in colour, but the model takes pictures of 1 channel"},
      {"colour.png", &cropped, "colour.png: 23 x 17 pixels are less than crop_size, 20 x 20"}};
  for (const auto& [name, processor, error] : kRefused) {
    const absl::StatusOr<Images> images =
        ReadUnlabelledImages(kFolder + name, 8, 8, processor == nullptr ? ImageProcessor() : *processor);
    EXPECT_THAT(std::string(images.status().message()), HasSubstr(error)) << name;
  }
  EXPECT_TRUE(ReadUnlabelledImages(absl::StrCat(kFolder, "grey.png"), 8, 8, grey).ok());
  // A header may claim any size.
  std::string huge = Bytes(absl::StrCat(kFolder, "colour.png"));
  huge.replace(16, 4, "\x01\x01\x01\x01");
  EXPECT_FALSE(ImageProcessor().Read("huge.png", huge).ok());
}

// A damaged file is an error or a picture of the size that it names.
TEST(PicturesTest, DamagedFilesAreErrors) {
  for (const char* name : {"colour.png", "palette.png", "turned_5.png", "turned_6.jpg", "grey.jpg"}) {
    const std::string whole = Bytes(absl::StrCat(kFolder, name));
    ASSERT_FALSE(whole.empty()) << name;
    int cut = 0;
    for (size_t at = 0; at < whole.size(); ++at) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ 0x55);
      for (const std::string& bytes : {changed, whole.substr(0, at)}) {
        const absl::StatusOr<RgbPicture> picture = ImageProcessor().Read(name, bytes);
        if (!picture.ok()) continue;
        EXPECT_EQ(static_cast<int64_t>(picture->pixels.size()), 3 * picture->height * picture->width) << at;
        cut += bytes.size() < whole.size() ? 1 : 0;
      }
    }
    EXPECT_LE(cut, 12) << name;  // PNG's last chunk and JPEG's end marker tell nothing that is needed
  }
}

TEST(PicturesTest, FoldersAndListsHaveLabels) {
  const std::string folder = testing::TempDir() + "/classes";
  for (const auto& [name, from] : {std::pair("cat/b.png", "colour.png"), std::pair("cat/a.jpg", "plain.jpg"),
                                   std::pair("dog/c.png", "gamma.png")}) {
    fs::create_directories(fs::path(folder) / fs::path(name).parent_path());
    fs::copy_file(kFolder + std::string(from), fs::path(folder) / name, fs::copy_options::overwrite_existing);
  }
  const absl::StatusOr<Images> images = ReadImages(folder);
  ASSERT_TRUE(images.ok()) << images.status();
  EXPECT_THAT(images->classes, ElementsAre("cat", "dog"));
  EXPECT_THAT(images->labels, ElementsAre(0, 0, 1));
  EXPECT_EQ(images->size(), 3);
  EXPECT_EQ(images->channels, 3);
  EXPECT_EQ(std::vector<float>((*images)[1].begin(), (*images)[1].end()),
            std::vector<float>((*images)[2].begin(), (*images)[2].end()));

  const std::string list = folder + "/list.tsv";
  ASSERT_TRUE(WriteFile(list, {"dog/c.png\tdog\ncat/a.jpg\tcat\n"}).ok());
  const std::vector<std::string> classes = {"dog", "cat", "cow"};
  const absl::StatusOr<Images> listed = ReadImages(list, "", {}, classes);
  ASSERT_TRUE(listed.ok()) << listed.status();
  EXPECT_THAT(listed->labels, ElementsAre(0, 1));
  EXPECT_EQ(listed->classes, classes);
  EXPECT_EQ(ReadUnlabelledImages(list, 0, 0)->size(), 2);
  EXPECT_THAT(std::string(ReadImages(list, "", {}, {classes.data(), 1}).status().message()),
              HasSubstr("list.tsv, line 2: the label 'cat' is none of the 1: dog"));
  EXPECT_THAT(std::string(ReadImages(folder).status().message()), HasSubstr("list.tsv: it is in no folder of a class"));
  ASSERT_TRUE(WriteFile(list, {"cat/none.png\tcat\n"}).ok());
  EXPECT_THAT(std::string(ReadImages(list).status().message()), HasSubstr("none.png"));
  ASSERT_TRUE(WriteFile(list, {"dog/c.png\tdog\n../classes/list.tsv\tdog\n"}).ok());
  EXPECT_THAT(std::string(ReadImages(list).status().message()), HasSubstr("it is neither a PNG nor a JPEG file"));
  fs::copy_file(absl::StrCat(kFolder, "small.png"), folder + "/dog/d.png", fs::copy_options::overwrite_existing);
  fs::remove(list);
  EXPECT_THAT(std::string(ReadImages(folder).status().message()),
              HasSubstr("d.png has 8 x 12 pixels, but the pictures before have 23 x 17"));
}

}  // namespace
}  // namespace weft
