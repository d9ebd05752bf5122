// `weft report RUN...` writes a page on finished runs and on runs that go on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "weft/tests/subprocess.h"
#include "weft/tests/weft_program.h"

namespace weft {
namespace {

using testing::HasSubstr;

class RunReportsTest : public WeftProgramTest {};

TEST_F(RunReportsTest, OneRunAndTwo) {
  MakeRun("a", {"--steps=3", "--warmup-steps=1", "--eval-every=1"});
  MakeRun("b", {"--steps=2", "--warmup-steps=1", "--seed=7"});
  const Files before = Snapshot("a");
  const CommandResult one = Weft({"report", "a"});
  ASSERT_TRUE(Works(one));
  EXPECT_EQ(one.out, "a: 3 steps; the page is report.html\n");
  EXPECT_THAT(Read("report.html"), HasSubstr("\"val_loss\":{\"steps\":[0,1,2,3]"));
  EXPECT_EQ(Differences(before, Snapshot("a")), "") << "nothing is written";
  EXPECT_TRUE(Fails(Weft({"report", "a"}), 2, "--out: report.html is there: --overwrite replaces it"));
  ASSERT_TRUE(Works(Weft({"report", "a", "b/", "--overwrite"})));
  EXPECT_THAT(Read("report.html"), HasSubstr("[\"seed\",\"1\",\"7\"]"));
  const CommandResult piped = Weft({"report", "a", "b", "--out=-"});
  EXPECT_EQ(piped.out.substr(0, 15), "<!DOCTYPE html>");
  EXPECT_EQ(piped.err, "2 runs: 5 steps; the page is -\n");
}

TEST_F(RunReportsTest, InsightsOfEachEvaluation) {
  const Arguments insights = {"--insights", "--eval-every=2", "--schedule=constant", "--warmup-steps=0"};
  MakeRun("whole", insights + Arguments{"--steps=4"});
  MakeRun("resumed", insights + Arguments{"--steps=2"});
  ASSERT_TRUE(Works(Weft({"train", "gpt", "--out=resumed", "--resume", "--steps=4"})));
  EXPECT_EQ(Read("whole/insights.jsonl"), Read("resumed/insights.jsonl"));
  MakeRun("plain", {"--eval-every=2", "--schedule=constant", "--warmup-steps=0", "--steps=4"});
  EXPECT_EQ(Read("whole/model.safetensors"), Read("plain/model.safetensors")) << "insights change no weight";
  EXPECT_FALSE(Exists("plain/insights.jsonl"));
  ASSERT_TRUE(Works(Weft({"report", "whole"})));
  EXPECT_THAT(Read("report.html"), HasSubstr("\"samples\":{\"texts\":[[0,"));
  EXPECT_THAT(Read("report.html"), HasSubstr("\"steps\":[0,2,4]"));
  EXPECT_THAT(Read("report.html"), HasSubstr("\"names\":[\"h.0.attn.c_attn.bias\""));
}

TEST_F(RunReportsTest, TranslationsOfValidationSentencesAsSamples) {
  WriteTrainingData();
  const Arguments training = SmallTraining("translate") + Arguments{"--steps=4", "--eval-every=2"};
  ASSERT_TRUE(Works(Weft(training + Arguments{"--insights", "--out=t"})));
  ASSERT_TRUE(Works(Weft(training + Arguments{"--out=plain"})));
  EXPECT_EQ(Read("t/model.safetensors"), Read("plain/model.safetensors")) << "samples change no weight";
  const std::string lines = Read("t/insights.jsonl");
  EXPECT_THAT(lines, HasSubstr("{\"step\":0,\"sample\":\"source: "));
  EXPECT_THAT(lines, HasSubstr("{\"step\":4,\"sample\":\"source: "));
  EXPECT_THAT(lines, HasSubstr("\\nreference: "));
  EXPECT_THAT(lines, HasSubstr("\\ntranslation: "));
  ASSERT_TRUE(Works(Weft({"report", "t"})));
  EXPECT_THAT(Read("report.html"), HasSubstr("\"samples\":{\"texts\":[[0,\"source: "));
}

TEST_F(RunReportsTest, AttentionWithEachKeptCheckpoint) {
  MakeRun("a", {"--steps=4", "--warmup-steps=1", "--checkpoint-every=1", "--keep=3"});
  MakeRun("b", {"--steps=4", "--warmup-steps=1"});
  ASSERT_TRUE(Works(Weft({"report", "a", "b", "--text=line of a text", "--out=two.html"})));
  const std::string page = Read("two.html");
  for (const int step : {2, 3, 4}) EXPECT_THAT(page, HasSubstr(absl::StrCat("\"step\":", step, "}"))) << step;
  EXPECT_THAT(page, HasSubstr("\"attention\":{\"text\":\"line of a text\",\"problem\":\"\",\"of\":3,"));
  EXPECT_THAT(page, HasSubstr("\"attention\":{\"text\":\"line of a text\",\"problem\":\"\",\"of\":1,"));
  EXPECT_THAT(page, HasSubstr("\"allTargets\":8,")) << "text beyond the context is cut";
  ASSERT_TRUE(Works(Weft({"report", "a", "--text=<img src=x onerror=alert(1)>", "--out=markup.html"})));
  EXPECT_THAT(Read("markup.html"), HasSubstr("onerror=alert(1)"));
  EXPECT_EQ(Read("markup.html").find("<img"), std::string::npos);
  // A character that the tokenizer lacks is no reason to have no page.
  ASSERT_TRUE(Works(Weft({"report", "a", "--text=\u4e2d", "--out=unknown.html"})));
  EXPECT_THAT(Read("unknown.html"), HasSubstr("\"of\":0,\"checkpoints\":[]"));
  ASSERT_TRUE(Works(Weft({"report", "a", "--out=none.html"})));
  EXPECT_EQ(Read("none.html").find("\"attention\":"), std::string::npos);
}

TEST_F(RunReportsTest, AttentionOfManyRunsGivesASmallPage) {
  MakeRun("a", {"--steps=2", "--warmup-steps=0", "--checkpoint-every=1", "--layers=12", "--heads=12", "--width=24",
                "--context=64"});
  const Arguments runs(24, "a");
  ASSERT_TRUE(Works(
      Weft(Arguments{"report", "--text=line 10 of a text, with words and line 11 of a text, with words"} + runs)));
  EXPECT_LT(Read("report.html").size(), 3'000'000u);
  EXPECT_THAT(Read("report.html"), HasSubstr("\"allTargets\":6"));
}

TEST_F(RunReportsTest, ARunWithoutSteps) {
  Write("config.json", "{\"command\": \"train gpt\"}");
  const CommandResult result = Weft({"report", ".", "--follow"});
  ASSERT_TRUE(Works(result));
  EXPECT_EQ(result.out, ".: no training step is recorded yet; the page is report.html\n");
}

TEST_F(RunReportsTest, FollowsATrainingUntilItEnds) {
  const std::string script = absl::StrCat(
      "weft=$0; \"$weft\" train gpt --data=text.txt --layers=1 --width=16 --heads=2 --context=8 --batch=2 --out=run ",
      "--steps=1000000 --eval-every=0 --quiet & training=$!\n", "until [ -s run/metrics.jsonl ]; do sleep 0.1; done\n",
      "\"$weft\" report run --follow > out.txt & report=$!\n", "until [ -s report.html ]; do sleep 0.1; done\n",
      "cp report.html during.html\n", "sleep 0.3; kill -TERM $training\n", "wait $training; echo \"training $?\"\n",
      "wait $report; echo \"report $?\"\n");
  const std::string program = std::filesystem::absolute("apps/weft").string();
  const CommandResult result = RunCommand({"bash", "-c", script, program}, {.folder = folder_});
  EXPECT_EQ(result.out, "training 1\nreport 0\n") << result.err;
  EXPECT_THAT(Read("out.txt"), HasSubstr("run: training goes on; report.html is written again every 2 seconds"));
  EXPECT_THAT(Read("out.txt"), HasSubstr(" steps; the page is report.html\n"));
  EXPECT_THAT(Read("during.html"), HasSubstr("\"reload_seconds\":5"));
  EXPECT_THAT(Read("report.html"), HasSubstr("\"reload_seconds\":0"));
  EXPECT_THAT(Read("report.html"), HasSubstr("\"running\":false"));
}

TEST_F(RunReportsTest, WrongRunsAndFlags) {
  EXPECT_TRUE(Fails(Weft({"report"}), 2, "name the runs to report on"));
  EXPECT_TRUE(Fails(Weft({"report", "runs/none"}), 2, "runs/none: there is no such run"));
  EXPECT_TRUE(Fails(Weft({"report", "."}), 2, ".: this is no run of a training"));
  Write("config.json", "{\"command\": \"train gpt\"}");
  EXPECT_TRUE(Fails(Weft({"report", ".", "--threads=2"}), 2, "--threads: it needs --schedule"));
  EXPECT_TRUE(Fails(Weft({"report", ".", "--follow", "--out=-"}), 2, "--out must be a file"));
  EXPECT_TRUE(Fails(Weft({"report", "--schedule", "--follow"}), 2, "--follow: it has no effect with --schedule"));
  EXPECT_TRUE(Fails(Weft({"report", "--schedule", "--text=a"}), 2, "--text: it has no effect with --schedule"));
  EXPECT_TRUE(Fails(Weft({"report", "--schedule", ".", "."}), 2, "--schedule is of one run, but 2 are named"));
  EXPECT_FALSE(Exists("report.html"));
}

}  // namespace
}  // namespace weft
