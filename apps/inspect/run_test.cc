// The commands that look inside a training step take runs of all kinds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "weft/tests/weft_program.h"

namespace weft {
namespace {

using testing::HasSubstr;
using testing::Not;

class InspectRunTest : public WeftProgramTest {
 protected:
  void MakeRunOf(const std::string& kind) const {
    WriteTrainingData();
    const Arguments small = {"--steps=2", "--warmup-steps=1", "--eval-every=0", "--out=run"};
    if (kind == "gpt") return MakeRun("run", {"--steps=2", "--warmup-steps=1", "--eval-every=0", "--sample-length=0"});
    ASSERT_TRUE(Works(Weft(SmallTraining(kind) + small)));
  }
};

TEST_F(InspectRunTest, ABrokenRunIsNamed) {
  for (const std::string folder : {"empty", "broken", "published", "gpt2"}) {
    std::filesystem::create_directory(Path(folder));
    if (folder != "empty") Write(folder + "/config.json", folder == "published" ? R"({"model_type": "gpt2"})" : "{");
  }
  EXPECT_TRUE(Fails(Weft({"graph", "empty"}), 2, "empty/config.json: No such file or directory"));
  EXPECT_TRUE(Fails(Weft({"graph", "broken"}), 2, "broken/config.json: it is not JSON"));
  EXPECT_TRUE(Fails(Weft({"graph", "published"}), 2, "published holds no run of a training"));
  EXPECT_TRUE(Fails(Weft({"graph", "gpt2"}), 2, "gpt2/config.json: it is not JSON"));  // not the graph of this name
  EXPECT_TRUE(Fails(Weft({"graph", "text.txt"}), 2, "'text.txt': there is no such run folder"));
}

TEST_F(InspectRunTest, ASummaryIsOfTheRunAndItsFrozenWeights) {
  MakeRun("run", {"--groups=wte.*:frozen"});
  std::filesystem::copy(Path("run"), Path("gpt2"), std::filesystem::copy_options::recursive);
  const CommandResult summary = Weft({"summary", "--json", "run"});
  ASSERT_TRUE(Works(summary));
  const auto json = nlohmann::json::parse(summary.out);
  EXPECT_EQ(json["frozen"], 27 * 16);  // a row of width 16 for each character
  EXPECT_EQ(json["trained"].get<int64_t>() + 27 * 16, json["parameters"].get<int64_t>());
  EXPECT_EQ(Weft({"summary", "--json", "gpt2"}).out, summary.out);  // not of the graph of this name
}

TEST_F(InspectRunTest, StepsOfAllKindsOfRuns) {
  const struct {
    std::string kind, input, scope;
  } kRows[] = {{"gpt", "tokens : i32[2,8]", "gpt/h.0"},  // of MakeRun: a batch of 2 windows of 8 characters
               {"bert", "tokens : i32[4,24]", "bert/encoder.layer.0"},
               {"classify", "lengths : i32[4]", "bert/encoder.layer.0"},
               {"translate", "source_lengths : i32[8]", "decoder.layers.0"},
               {"vit", "images : f32[4,4,4,1]", "vit/"}};
  for (const auto& [kind, input, scope] : kRows) {
    SCOPED_TRACE(kind);
    MakeRunOf(kind);
    const Files before = Snapshot("run");
    const CommandResult graph = Weft({"graph", "run"});
    ASSERT_TRUE(Works(graph));
    EXPECT_THAT(graph.out, HasSubstr(input));
    EXPECT_THAT(graph.out, HasSubstr(scope));
    EXPECT_THAT(graph.out, HasSubstr("adamw"));
    const CommandResult folded = Weft({"graph", "run", "--format=json"});
    ASSERT_TRUE(Works(folded));
    std::map<std::string, double> flops;  // by phase
    const auto page = nlohmann::json::parse(folded.out);
    for (const auto& box : page.at("boxes")) {
      flops[box.at("phase")] += box.at("flops").get<double>();
    }
    EXPECT_GT(flops["backward"], flops["forward"]) << "each product has two in the backward pass";
    EXPECT_LT(flops["backward"], 4 * flops["forward"]);
    const CommandResult eval = Weft({"graph", "run", "--mode=eval", "--batch=3"});
    ASSERT_TRUE(Works(eval));
    EXPECT_THAT(eval.out, HasSubstr("[3"));
    EXPECT_THAT(eval.out, Not(HasSubstr("adamw")));
    EXPECT_TRUE(Works(Weft({"graph", "run", "--memory"})));
    EXPECT_TRUE(Works(Weft({"profile", "run", "--runs=1", "--overwrite"})));
    EXPECT_THAT(Read("trace.json"), HasSubstr("matmul"));
    if (kind == "vit") {
      EXPECT_TRUE(
          Fails(Weft({"graph", "run", "--context=9"}), 2, "context: train vit, whose run this is, has no such"));
    }
    if (kind == "translate") {
      EXPECT_TRUE(Works(Weft({"report", "--schedule", "run", "--runs=1", "--precision=bf16"})));
      const CommandResult simulated = Weft({"simulate", "run", "--workers=1,2", "--runs=1", "--json"});
      ASSERT_TRUE(Works(simulated));
      EXPECT_THAT(simulated.out, HasSubstr("{\"graph\":\"run\","));
    }
    EXPECT_EQ(Differences(before, Snapshot("run")), "") << "nothing is written";
    std::filesystem::remove_all(Path("run"));
  }
}

TEST_F(InspectRunTest, ARunIsPreferredToAGraphOfItsName) {
  MakeRunOf("gpt");
  std::filesystem::rename(Path("run"), Path("bert"));
  const CommandResult run = Weft({"graph", "bert"}), graph = Weft({"graph", "--graph=bert"});
  ASSERT_TRUE(Works(run));
  ASSERT_TRUE(Works(graph));
  EXPECT_THAT(run.out, HasSubstr("tokens : i32[2,8]"));
  EXPECT_THAT(graph.out, Not(HasSubstr("tokens : i32[2,8]")));
}

TEST_F(InspectRunTest, WrongChoices) {
  MakeRunOf("classify");
  for (const std::string command : {"graph", "profile", "simulate", "calibrate"}) {
    EXPECT_TRUE(Fails(Weft({command, "babygtp"}), 2, "'babygtp', did you mean 'babygpt'?"));
    EXPECT_TRUE(Fails(Weft({command, "run", "--graph=gpt2"}), 2, "--graph=gpt2: another graph is named, run"));
  }
  EXPECT_TRUE(Fails(Weft({"graph", "run", "--context=9", "--rope"}), 2, "unknown flag '--rope'"));
  Write("gpt.json", "{\"layers\": 1}");
  EXPECT_TRUE(Fails(Weft({"graph", "run", "--config=gpt.json"}), 2, "--config is of a GPT"));
  EXPECT_TRUE(Fails(Weft({"graph", "--step=2"}), 2, "--step is of a run"));
  EXPECT_TRUE(
      Fails(Weft({"profile", "towers", "--batch=3"}), 2, "--batch: the graph towers has a batch of fixed size"));
  EXPECT_TRUE(Fails(Weft({"simulate", "run", "--tasks=tasks.json"}), 2, "run is a training step beside --tasks"));
  std::filesystem::remove(Path("labelled.tsv"));
  EXPECT_TRUE(Fails(Weft({"profile", "run"}), 2, "labelled.tsv"));
}

}  // namespace
}  // namespace weft
