#include "weft/options/hyperparameters.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace weft {
namespace {

struct Options {
  int64_t steps = 10;
  uint64_t seed = 1;
  double learning_rate = 0.5;
  bool bias = true;
  std::string activation = "relu";
};

Hyperparameters Table(Options* options) {
  return {{"steps", "", &options->steps, {.low = 0, .high = 100}},
          {"seed", "", &options->seed},
          {"learning-rate", "", &options->learning_rate, {.low = 0}},
          {"bias", "", &options->bias},
          {"activation", "", &options->activation, {.choices = {"relu", "gelu"}}}};
}

TEST(HyperparametersTest, FlagsAndKeysSetTheSame) {
  Options by_flag, by_key;
  const char* kTexts[] = {"20", "18446744073709551615", "1e-3", "false", "gelu"};
  const Hyperparameters table = Table(&by_flag);
  for (size_t i = 0; i < table.size(); ++i) ASSERT_TRUE(SetFromText(kTexts[i], table[i]).ok()) << table[i].flag;
  const auto json = nlohmann::ordered_json::parse(
      R"({"steps":20,"seed":18446744073709551615,"learning_rate":1e-3,"bias":false,"activation":"gelu"})");
  ASSERT_TRUE(SetFromJson(json, Table(&by_key)).ok());
  EXPECT_EQ(ToJson(Table(&by_flag)), json);
  EXPECT_EQ(ToJson(Table(&by_key)), json);
}

enum class Kind { kPlain, kVeryPlain };
constexpr std::pair<const char*, Kind> kKinds[] = {{"plain", Kind::kPlain}, {"very-plain", Kind::kVeryPlain}};

TEST(HyperparametersTest, ChoicesSetEnumerations) {
  Kind kind = Kind::kPlain;
  const Hyperparameters table = {ChoiceRow<Kind>("kind", "", kKinds, &kind)};
  EXPECT_EQ(table[0].text(), "plain");
  ASSERT_TRUE(SetFromText("very_plain", table[0]).ok());
  EXPECT_EQ(kind, Kind::kVeryPlain);
  EXPECT_EQ(ToJson(table), nlohmann::ordered_json::parse(R"({"kind":"very-plain"})"));
  ASSERT_TRUE(SetFromJson(nlohmann::ordered_json::parse(R"({"kind":"plain"})"), table).ok());
  EXPECT_EQ(kind, Kind::kPlain);
  EXPECT_EQ(SetFromText("odd", table[0]).message(), "kind: 'odd' is not one of plain, very-plain");
  EXPECT_EQ(SetFromText("", table[0]).message(), "kind: it is empty");
}

TEST(HyperparametersTest, ZeroMayKeepTheValue) {
  int64_t width = 128;
  const Hyperparameters table = {{"width", "", &width, {.low = 1, .zero_keeps = true}}};
  ASSERT_TRUE(SetFromText("0", table[0]).ok());
  EXPECT_EQ(width, 128);
  ASSERT_TRUE(SetFromText("64", table[0]).ok());
  EXPECT_EQ(width, 64);
}

TEST(HyperparametersTest, NamesWhatIsWrong) {
  Options options;
  const Hyperparameters table = Table(&options);
  const struct {
    size_t row;
    const char *text, *error;
  } kFlags[] = {
      {0, "many", "steps: 'many' is not a whole number below 2^63"},
      {0, "1.5", "steps: '1.5' is not a whole number below 2^63"},
      {0, "2.0", "steps: '2.0' is not written as a whole number; write 2"},
      {0, "1e2", "steps: '1e2' is not written as a whole number; write 100"},
      {0, "1e30", "steps: '1e30' is not a whole number below 2^63"},
      {0, "101", "steps: 101 is not in 0 .. 100"},
      {0, "99999999999999999999", "steps: '99999999999999999999' is not a whole number below 2^63"},
      {1, "-1", "seed: '-1' is not a whole number from 0 to 2^64 - 1"},
      {2, "0x10", "learning-rate: '0x10' is not a number"},
      {2, "nan", "learning-rate: 'nan' is not a number"},
      {2, "-1", "learning-rate: -1 is less than 0"},
      {3, "maybe", "bias: 'maybe' is not true or false"},
      {4, "geluu", "activation: 'geluu' is not one of relu, gelu, did you mean 'gelu'?"},
  };
  for (const auto& row : kFlags) EXPECT_EQ(SetFromText(row.text, table[row.row]).message(), row.error);
  const struct {
    const char *json, *error;
  } kConfigs[] = {
      {"[]", "not a JSON object"},
      {R"({"step": 5})", "unknown key 'step', did you mean 'steps'?"},
      {R"({"steps": "5"})", "key 'steps': \"5\" is not of the right type"},
      {R"({"steps": true})", "key 'steps': 'true' is not a whole number below 2^63"},
      {R"({"steps": null})", "key 'steps': null is not of the right type"},
      {R"({"steps": -1})", "key 'steps': -1 is not in 0 .. 100"},
      {R"({"activation": 5})", "key 'activation': 5 is not a text"},
      {R"({"bias": 1})", "key 'bias': '1' is not true or false"},
  };
  for (const auto& row : kConfigs) {
    EXPECT_EQ(SetFromJson(nlohmann::ordered_json::parse(row.json), table).message(), row.error);
  }
  EXPECT_EQ(options.steps, 10);
}

TEST(HyperparametersTest, KeysMayHaveNamesOfOtherPrograms) {
  Options options;
  int64_t batch = 1;
  Hyperparameters table = Table(&options);
  table.push_back({"batch", "", &batch, {.low = 1}});
  const auto set = [&](const char* json) { return SetFromJson(nlohmann::ordered_json::parse(json), table); };
  ASSERT_TRUE(set(R"({"batch_size": 12, "max_iters": 30, "lr": 0.25, "use_bias": false})").ok());
  EXPECT_EQ(batch, 12);
  EXPECT_EQ(options.steps, 30);
  EXPECT_EQ(options.learning_rate, 0.25);
  EXPECT_FALSE(options.bias);
  EXPECT_TRUE(set(R"({"batch_size": 8, "batch": 8})").ok());
  const struct {
    const char *json, *error;
  } kErrors[] = {
      {R"({"batch_size": 0})", "key 'batch_size' (batch): 0 is less than 1"},
      {R"({"batch_size": "8"})", "key 'batch_size' (batch): \"8\" is not of the right type"},
      {R"({"batch": 8, "batch_size": 9})",
       "keys 'batch' and 'batch_size' are the same option with different values, 8 and 9"},
      {R"({"batch-size": 8})", "unknown key 'batch-size', did you mean 'batch'?"},
      {R"({"rate_learning": 1})", "unknown key 'rate_learning', did you mean 'learning_rate'?"},
      {R"({"hidden_size": 1})", "unknown key 'hidden_size'"},
  };
  for (const auto& row : kErrors) EXPECT_EQ(std::string(set(row.json).message()), row.error);
}

TEST(HyperparametersTest, AnOptionalValueMayBeUnset) {
  std::optional<double> rate, decay;
  std::optional<int64_t> steps;
  std::optional<bool> look_ahead;
  double otherwise = 0.5;
  const Hyperparameters table = {{"rate", "", &rate, {.low = 0, .unset = [&] { return otherwise; }}},
                                 {"decay", "", &decay},
                                 {"steps", "", &steps, {.low = 0}},
                                 {"look-ahead", "", &look_ahead}};
  EXPECT_EQ(ToJson(table).dump(), R"({"rate":0.5})");
  EXPECT_EQ(table[0].text(), "0.5");
  EXPECT_EQ(table[1].text(), "");
  otherwise = 0.25;
  EXPECT_EQ(ToJson(table).dump(), R"({"rate":0.25})");
  EXPECT_FALSE(rate.has_value());
  EXPECT_EQ(SetFromText("-1", table[0]).message(), "rate: -1 is less than 0");
  EXPECT_EQ(SetFromText("", table[2]).message(), "steps: '' is not a whole number below 2^63");
  EXPECT_FALSE(rate.has_value() || steps.has_value());
  const auto json = nlohmann::ordered_json::parse(R"({"rate":2.0,"decay":1.5,"steps":3,"look_ahead":false})");
  ASSERT_TRUE(SetFromJson(json, table).ok());
  EXPECT_EQ(ToJson(table), json);
  EXPECT_EQ(rate, 2);
  EXPECT_EQ(steps, 3);
  EXPECT_EQ(look_ahead, false);
  EXPECT_TRUE(table[3].is_switch());
  EXPECT_FALSE(table[2].is_switch());
}

TEST(HyperparametersTest, AnOptionMayNeedOthers) {
  int64_t rank = 0, parts = 1;
  double alpha = 16;
  bool save = false, quick = false;
  std::string schedule = "cosine", init, kind;
  std::optional<int64_t> vocabulary;
  const Hyperparameters table = {{"rank", "", &rank, {.low = 0}},
                                 {"parts", "", &parts, {.low = 1}},
                                 {"schedule", "", &schedule},
                                 {"init", "", &init},
                                 {"kind", "", &kind},
                                 {"save", "", &save},
                                 {"alpha", "", &alpha, {.needs = "rank"}},
                                 {"quick", "", &quick, {.needs = "parts or save"}},
                                 {"factor", "", &alpha, {.needs = "schedule=plateau|wsd"}},
                                 {"vocabulary", "", &vocabulary, {.needs = "kind=bpe or no kind, no init"}}};
  const struct {
    std::map<std::string, std::string> given;
    const char* error;  // "" if there is none
  } kCases[] = {
      {{{"alpha", "16"}}, "alpha: it needs --rank"},
      {{{"alpha", "16"}, {"rank", "0"}}, "alpha: it needs --rank"},
      {{{"alpha", "16"}, {"rank", "1"}}, ""},
      {{{"quick", "true"}}, "quick: it needs --parts or --save"},
      {{{"quick", "false"}}, ""},
      {{{"quick", "true"}, {"parts", "1"}}, "quick: it needs --parts or --save"},
      {{{"quick", "true"}, {"parts", "2"}}, ""},
      {{{"quick", "true"}, {"save", "true"}}, ""},
      {{{"factor", "1"}}, "factor: it needs --schedule=plateau or wsd"},
      {{{"factor", "1"}, {"schedule", "constant:5,wsd"}}, ""},
      {{{"vocabulary", "9"}}, ""},
      {{{"vocabulary", "9"}, {"kind", "bpe"}}, ""},
      {{{"vocabulary", "9"}, {"kind", "bytes"}}, "vocabulary: it needs --kind=bpe or no --kind"},
      {{{"vocabulary", "9"}, {"init", "a"}}, "vocabulary: it has no effect with --init"},
  };
  for (const auto& [given, error] : kCases) {
    rank = 0, parts = 1, schedule = "cosine", init = kind = "", save = quick = false;
    EXPECT_EQ(SetFromTexts(given, table).message(), error) << given.begin()->first;
  }
}

TEST(HyperparametersTest, BytesMayHaveAUnit) {
  uint64_t bytes = 0;
  const Hyperparameter row = {"memory-budget", "", &bytes, {.is_bytes = true}};
  const std::pair<const char*, uint64_t> kTexts[] = {
      {"0", 0}, {"12", 12}, {"3K", 3000}, {"500M", 500'000'000}, {"2G", 2'000'000'000}};
  for (const auto& [text, expected] : kTexts) {
    EXPECT_TRUE(SetFromText(text, row).ok()) << text;
    EXPECT_EQ(bytes, expected);
  }
  for (const char* text : {"", "M", "5X", "-1", "1.5G", "99999999999999999G"}) {
    EXPECT_EQ(SetFromText(text, row).message(),
              "memory-budget: '" + std::string(text) + "' is not a number of bytes, like 500000000, 500M or 2G");
  }
  EXPECT_EQ(bytes, 2'000'000'000);
  const Hyperparameter least = {"memory-budget", "", &bytes, {.low = 1024, .is_bytes = true}};
  EXPECT_EQ(SetFromText("1K", least).message(), "memory-budget: 1K is less than 1024");
}

TEST(HyperparametersTest, InGroupKeepsTheGroupsOfRowsThatHaveOne) {
  int64_t batch = 1, layers = 2;
  const Hyperparameters rows = InGroup("Data", {{"batch", "", &batch}, {"layers", "", &layers, {.group = "Model"}}});
  EXPECT_EQ(rows[0].rules.group, "Data");
  EXPECT_EQ(rows[1].rules.group, "Model");
}

}  // namespace
}  // namespace weft
