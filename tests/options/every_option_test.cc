// Trains five steps with each option of each model, from the command line and from a configuration file. A run that is
// killed after the third step goes on to the same weights.
#include <cctype>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "weft/options/hyperparameters.h"
#include "weft/tests/options/option_values.h"
#include "weft/tests/weft_program.h"
#include "weft/train/jobs/job.h"
#include "weft/train/jobs/job_list.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Settings = std::map<std::string, std::string>;  // values by flag

// Returns the options of a training that takes milliseconds.
Settings SmallSettings(const std::string& training) {
  Settings settings = {{"steps", "5"},         {"checkpoint-every", "3"},
                       {"eval-every", "0"},    {"learning-rate", "0.01"},
                       {"warmup-steps", "1"},  {"threads", "1"},
                       {"heads", "2"},         {"width", "16"},
                       {"feed-forward", "32"}, {"batch", "2"}};
  const std::map<std::string, Settings> more = {
      {"gpt",
       {{"data", "text.txt"}, {"layers", "2"}, {"context", "16"}, {"eval-batches", "1"}, {"sample-length", "0"}}},
      {"bert",
       {{"data", "text.txt"},
        {"layers", "2"},
        {"context", "16"},
        {"eval-batches", "1"},
        {"vocabulary", "300"},
        {"next-sentence", "true"}}},
      {"translate",
       {{"source", "a.txt"},
        {"target", "b.txt"},
        {"vocabulary", "300"},
        {"encoder-layers", "2"},
        {"decoder-layers", "2"}}},
      {"classify", {{"data", "labelled.tsv"}, {"layers", "2"}, {"vocabulary", "300"}}},
      {"vit", {{"data", "pictures.csv"}, {"layers", "2"}, {"patch-size", "2"}}},
  };
  settings.insert(more.at(training).begin(), more.at(training).end());
  return settings;
}

Settings With(Settings settings, const std::string& options) {
  for (const absl::string_view option : absl::StrSplit(options, ' ', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(option, absl::MaxSplits('=', 1));
    settings[parts.first] = parts.second;
  }
  return settings;
}

bool IsOfInitialWeights(absl::string_view flag) { return flag == "init" || flag == "ignore-extra-tensors"; }

struct Case {
  std::string training;
  OptionValue option;
};

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  for (const std::string& training : JobNames()) {
    const std::unique_ptr<TrainingJob> job = MakeJob(training);  // the rows point into it
    for (const Hyperparameter& row : job->source().Table()) {
      for (const OptionValue& value : OptionValues()) {
        if (value.flag == row.flag && value.IsFor(training)) cases.push_back({training, value});
      }
    }
  }
  return cases;
}

std::string NameOf(const Case& each) {
  std::string name = absl::StrCat(each.training, "_", each.option.flag, "_", each.option.value);
  if (!each.option.with.empty()) absl::StrAppend(&name, "_with_", each.option.with);
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

void PrintTo(const Case& each, std::ostream* out) { *out << NameOf(each); }

class EveryOptionTest : public WeftProgramTest, public testing::WithParamInterface<Case> {
 protected:
  EveryOptionTest() { WriteTrainingData(); }

  // Trains with `settings` as flags.
  void TrainByFlags(const Settings& settings, const std::string& out) const {
    Arguments arguments = {"train", GetParam().training, "--out=" + out};
    for (const auto& [flag, value] : settings) arguments.push_back(absl::StrCat("--", flag, "=", value));
    ASSERT_TRUE(Works(Weft(arguments)));
  }

  // Trains with `settings` in a configuration file. All options of the model are keys of "model", except those of the
  // initial weights.
  void TrainByConfig(const Settings& settings, const std::string& out) const {
    const std::unique_ptr<TrainingJob> job = MakeJob(GetParam().training);
    std::set<std::string> of_model;
    for (const Hyperparameter& row : job->source().Table()) {
      if (!IsOfInitialWeights(row.flag)) of_model.insert(row.flag);
    }
    Json config;
    for (const Hyperparameter& row : job->Table()) {
      const auto found = settings.find(row.flag);
      if (found == settings.end()) continue;
      ASSERT_TRUE(SetFromText(found->second, row).ok()) << row.flag;
      (of_model.contains(row.flag) ? config["model"] : config)[row.key()] = row.json();
    }
    Write(out + ".json", config.dump());
    ASSERT_TRUE(Works(Weft({"train", GetParam().training, "--config=" + out + ".json", "--out=" + out})));
  }

  // Makes `copy` the run `run` as it would be if it had been killed after step 3, and continues it.
  void ResumeAfterStep3(const std::string& run, const std::string& copy) const {
    fs::copy(Path(run), Path(copy), fs::copy_options::recursive);
    ASSERT_TRUE(fs::remove_all(Path(copy + "/checkpoints/5")) > 0);
    ASSERT_TRUE(fs::remove(Path(copy + "/model.safetensors")));
    const CommandResult result = Weft({"train", GetParam().training, "--resume", "--out=" + copy});
    ASSERT_TRUE(Works(result));
    ASSERT_TRUE(absl::StrContains(result.err, "resumed after step 3")) << result.err;
  }

  // Returns the value of the option in a run's config.json.
  Json WantedValue() const {
    const std::unique_ptr<TrainingJob> job = MakeJob(GetParam().training);
    for (const Hyperparameter& row : job->source().Table()) {
      if (row.flag != GetParam().option.flag) continue;
      const std::string& value = GetParam().option.value;
      EXPECT_TRUE(SetFromText(row.rules.is_path ? Path(value) : value, row).ok());
      return row.json();
    }
    return Json();
  }
};

INSTANTIATE_TEST_SUITE_P(Options, EveryOptionTest, testing::ValuesIn(AllCases()),
                         [](const auto& info) { return NameOf(info.param); });

TEST_P(EveryOptionTest, TrainsFromFlagsAndAConfigurationAndResumes) {
  const auto& [training, option] = GetParam();
  const Settings settings = With(SmallSettings(training), option.with);
  Settings changed = settings;
  changed[option.flag] = option.value;
  if (IsOfInitialWeights(option.flag)) {
    changed["init"] = "default";
    changed.erase("vocabulary");  // the initial weights come with a tokenizer
  }

  static auto* const kWeightsWithout = new std::map<std::pair<std::string, std::string>, std::string>;
  std::string& without = (*kWeightsWithout)[{training, option.with}];
  if (without.empty() || IsOfInitialWeights(option.flag)) {  // the initial weights are those of this run
    ASSERT_NO_FATAL_FAILURE(TrainByFlags(settings, "default"));
    without = Read("default/model.safetensors");
  }
  ASSERT_NO_FATAL_FAILURE(TrainByFlags(changed, "flags"));
  EXPECT_EQ(Json::parse(Read("flags/config.json"))[absl::StrReplaceAll(option.flag, {{"-", "_"}})], WantedValue());
  EXPECT_EQ(Read("flags/model.safetensors") == without, option.same_weights)
      << "whether the option leaves the weights as they are without it";

  ASSERT_NO_FATAL_FAILURE(TrainByConfig(changed, "config"));
  EXPECT_EQ(Differences(Results("flags"), Results("config")), "");
  EXPECT_EQ(Read("flags/config.json"), Read("config/config.json"));

  ASSERT_NO_FATAL_FAILURE(ResumeAfterStep3("flags", "resumed"));
  EXPECT_EQ(Differences(Results("flags"), Results("resumed")), "");
}

TEST(OptionValuesTest, EveryOptionOfEveryModelHasAValue) {
  std::set<std::string> flags;
  for (const std::string& training : JobNames()) {
    const std::unique_ptr<TrainingJob> job = MakeJob(training);  // the rows point into it
    for (const Hyperparameter& row : job->source().Table()) {
      flags.insert(row.flag);
      std::set<std::string> values;
      for (const OptionValue& each : OptionValues()) {
        if (each.flag == row.flag && each.IsFor(training)) values.insert(each.value);
      }
      EXPECT_FALSE(values.empty()) << "tests/options/option_values.cc: add a value for --" << row.flag << " of "
                                   << training;
      for (const std::string& choice : row.rules.choices) {
        EXPECT_TRUE(choice == row.text() || values.contains(choice))
            << "tests/options/option_values.cc: add " << choice << " for --" << row.flag << " of " << training;
      }
    }
  }
  for (const OptionValue& each : OptionValues()) EXPECT_TRUE(flags.contains(each.flag)) << each.flag;
}

}  // namespace
}  // namespace weft
