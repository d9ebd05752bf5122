// Trains published Vision Transformers on PNG and JPEG files as a user does, and classifies with the results.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "weft/tests/weft_program.h"

namespace weft {
namespace {

using Json = nlohmann::json;

bool Contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// PNG and JPEG files in folders, on top of models of tests/published, whose classes have other names.
TEST_F(WeftProgramTest, ColourPicturesTrainAPublishedModel) {
  namespace fs = std::filesystem;
  const auto copy = [&](const std::string& from, const std::string& to) {
    fs::create_directories(fs::path(Path(to)).parent_path());
    fs::copy_file("tests/" + from, Path(to), fs::copy_options::overwrite_existing);
  };
  for (const char* file :
       {"cat/colour.png", "cat/plain.jpg", "cat/tall.png", "dog/small.png", "dog/palette.png", "dog/turned_6.jpg"}) {
    copy("pictures/" + std::string(file + 4), "data/" + std::string(file));
  }
  Write("list.tsv", "data/cat/tall.png\tcat\ndata/dog/small.png\tdog\n");
  const std::pair<std::string, std::string> kModels[] = {
      {"vit_colour", R"({"size": [8, 12], "image_mean": [0.4, 0.5, 0.6]})"},
      {"deit_teacher", R"({"do_resize": true, "size": 11, "crop_size": 8, "resample": 3})"}};
  for (const auto& [model, processor] : kModels) {
    SCOPED_TRACE(model);
    for (const char* file : {"/config.json", "/model.safetensors"}) copy("published/" + model + file, model + file);
    Write(model + "/preprocessor_config.json", processor);
    const std::string run = model + "_run", exported = model + "_exported";
    const CommandResult result = Weft({"train", "vit", "--init=" + model, "--data=data", "--steps=2", "--batch=2",
                                       "--shift=1", "--checkpoint-every=1", "--threads=1", "--out=" + run});
    ASSERT_TRUE(Works(result));
    EXPECT_TRUE(Contains(result.err, "classifier.weight")) << result.err;  // other classes
    EXPECT_FALSE(Contains(result.err, "embeddings")) << result.err;
    const Json config = Json::parse(Read(run + "/config.json"))["model"];
    EXPECT_EQ(config["id2label"], Json::parse(R"({"0": "cat", "1": "dog"})"));
    EXPECT_EQ(config["num_channels"], 3);
    EXPECT_EQ(Json::parse(Read(run + "/preprocessor_config.json")), Json::parse(processor));
    const CommandResult labels = Weft({"classify", "--model=" + run, "data/cat/plain.jpg", "list.tsv", "data/dog"});
    ASSERT_TRUE(Works(labels));
    EXPECT_EQ(std::count(labels.out.begin(), labels.out.end(), '\n'), 1 + 2 + 3) << labels.out;
    EXPECT_TRUE(Works(Weft({"evaluate", "--model=" + run, "data"})));
    EXPECT_TRUE(Works(Weft({"attention", "--model=" + run, "data/dog/small.png"})) == (model == "vit_colour"));

    ASSERT_TRUE(Works(Weft({"export", "--model=" + run, "--out=" + exported, "--layout=huggingface"})));
    const Json written = Json::parse(Read(exported + "/config.json"));
    EXPECT_EQ(written["architectures"], Json::parse(Read(model + "/config.json"))["architectures"]);
    EXPECT_EQ(Weft({"classify", "--model=" + exported, "data/cat/plain.jpg", "list.tsv", "data/dog"}).out, labels.out);

    EXPECT_TRUE(Works(Weft({"train", "vit", "--resume", "--steps=3", "--out=" + run})));
    const CommandResult again = Weft({"train", "vit", "--init=" + exported, "--data=list.tsv", "--validation=data",
                                      "--steps=1", "--out=" + model + "_again"});
    ASSERT_TRUE(Works(again));
    EXPECT_FALSE(Contains(again.err, "classifier.weight")) << again.err;  // the same classes
    EXPECT_TRUE(Fails(Weft({"train", "vit", "--init=" + model, "--data=data", "--task=masked", "--out=masked"}), 2,
                      "task: masked and order need pictures of 1 channel, but"));
  }
  // Without a model, pictures keep their size, which must be the same.
  EXPECT_TRUE(Fails(Weft({"train", "vit", "--data=data", "--out=new"}), 2, "pixels, but the pictures before have"));
  for (const char* file : {"cat/colour.png", "cat/plain.jpg", "dog/gamma.png"}) {
    copy("pictures/" + std::string(file + 4), "same/" + std::string(file));
  }
  EXPECT_TRUE(Fails(Weft({"train", "vit", "--data=same", "--out=new"}), 2, "both must be multiples of it"));
  ASSERT_TRUE(Works(Weft({"train", "vit", "--data=same", "--patch-size=1", "--layers=1", "--steps=2", "--batch=2",
                          "--checkpoint-every=1", "--out=new"})));
  EXPECT_EQ(Json::parse(Read("new/preprocessor_config.json"))["image_mean"], Json({0.5, 0.5, 0.5}));
  fs::copy(Path("new"), Path("resumed"), fs::copy_options::recursive);
  fs::remove_all(Path("resumed/checkpoints/2"));
  fs::remove(Path("resumed/model.safetensors"));
  ASSERT_TRUE(Works(Weft({"train", "vit", "--resume", "--out=resumed"})));
  EXPECT_EQ(Read("resumed/model.safetensors"), Read("new/model.safetensors"));
  EXPECT_TRUE(Works(Weft({"classify", "--model=new", "same/dog/gamma.png"})));
}

}  // namespace
}  // namespace weft
