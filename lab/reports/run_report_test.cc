#include "weft/lab/reports/run_report.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/base/file.h"

namespace weft {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

json Data(const std::string& page) {
  constexpr char kOpen[] = "<script id=\"data\" type=\"application/json\">";
  const size_t begin = page.find(kOpen) + sizeof kOpen - 1, end = page.find("</script>", begin);
  return json::parse(page.substr(begin, end - begin));
}

class RunReportTest : public testing::Test {
 protected:
  // Makes a run and returns its folder.
  std::string MakeRun(const std::string& name, const std::string& metrics,
                      const std::string& config = R"({"command":"train gpt","steps":4,"seed":1})") const {
    std::filesystem::create_directories(folder_ + name);
    Write(name + "/config.json", config);
    Write(name + "/metrics.jsonl", metrics);
    return folder_ + name;
  }
  void Write(const std::string& name, const std::string& text) const { std::ofstream(folder_ + name) << text; }
  static RunReport Open(const std::vector<std::string>& folders) {
    absl::StatusOr<RunReport> report = RunReport::Open(folders);
    EXPECT_TRUE(report.ok()) << report.status();
    return *std::move(report);
  }

  const std::string folder_ =
      absl::StrCat(testing::TempDir(), "/", testing::UnitTest::GetInstance()->current_test_info()->name(), "/");
};

TEST_F(RunReportTest, HasTheFiguresOfAllSteps) {
  const std::string run = MakeRun("run",
                                  "{\"step\":0,\"tokens\":0,\"seconds\":0.5,\"val_loss\":4,\"val_accuracy\":0.25}\n"
                                  "{\"step\":1,\"tokens\":10,\"seconds\":1,\"train_loss\":3,\"learning_rate\":0.1}\n"
                                  "{\"step\":2,\"tokens\":10,\"seconds\":2,\"skipped\":1}\n"
                                  "{\"step\":3,\"tokens\":20,\"seconds\":3,\"train_loss\":2,\"learning_rate\":0.2}\n"
                                  "{\"step\":4,\"tok");
  const RunReport report = Open({run});
  EXPECT_EQ(report.steps(), 3);
  EXPECT_FALSE(report.going_on());
  const json data = Data(report.Page()), of_run = data.at("runs").at(0);
  EXPECT_EQ(of_run.at("name"), run);
  EXPECT_EQ(of_run.at("step"), 3);
  EXPECT_EQ(of_run.at("planned"), 4);
  EXPECT_EQ(of_run.at("skipped"), 1);
  EXPECT_EQ(of_run.at("unread"), 0) << "the last line is being written";
  EXPECT_EQ(of_run.at("tokens").at("values"), json({0, 10, 10, 20}));
  const json& figures = of_run.at("figures");
  EXPECT_EQ(figures.at("train_loss").at("steps"), json({1, 3}));
  EXPECT_EQ(figures.at("train_loss").at("values"), json({3, 2}));
  EXPECT_EQ(figures.at("train_loss").at("mean").at("values"), json({3, 2.5}));
  EXPECT_EQ(figures.at("val_accuracy").at("values"), json({0.25}));
  EXPECT_EQ(data.at("reload_seconds"), 0);
}

TEST_F(RunReportTest, FollowsARun) {
  const std::string run = MakeRun("run", "");
  RunReport report = Open({run});
  EXPECT_EQ(report.steps(), 0);
  EXPECT_FALSE(*report.Update());
  Write("run/metrics.jsonl", "{\"step\":1,\"train_loss\":3}\n{\"step\":2,\"train_loss\":2}\n");
  EXPECT_TRUE(*report.Update());
  EXPECT_EQ(report.steps(), 2);
  const absl::StatusOr<Descriptor> lock = LockFolder(run);
  EXPECT_TRUE(*report.Update());
  EXPECT_TRUE(report.going_on());
  Write("run/metrics.jsonl", "{\"step\":1,\"train_loss\":3}\n");  // resumed from a checkpoint of step 1
  EXPECT_TRUE(*report.Update());
  const json data = Data(report.Page(5));
  EXPECT_EQ(data.at("runs").at(0).at("figures").at("train_loss").at("steps"), json({1}));
  EXPECT_EQ(data.at("runs").at(0).at("running"), true);
  EXPECT_EQ(data.at("reload_seconds"), 5);
}

TEST_F(RunReportTest, OddLinesAreCountedOrLeftOut) {
  const std::string run =
      MakeRun("run",
              "{\"step\":1,\"train_loss\":null,\"grad_norm\":1e300}\n{\"step\":1,\"train_loss\":7}\nnonsense\n"
              "{\"train_loss\":7}\n{\"step\":-1}\n{\"step\":2,\"train_loss\":\"x\",\"grad_norm\":-1e300}\n");
  const json of_run = Data(Open({run}).Page()).at("runs").at(0);
  EXPECT_EQ(of_run.at("unread"), 4);
  EXPECT_FALSE(of_run.at("figures").contains("train_loss"));
  EXPECT_EQ(of_run.at("figures").at("grad_norm").at("values"), json({1e300, -1e300}));
}

TEST_F(RunReportTest, ComparesConfigurations) {
  const std::string a =
      MakeRun("a", "", R"({"command":"train gpt","seed":1,"model":{"width":8,"layers":2},"x":"<b>"})");
  const std::string b = MakeRun("b", "", R"({"command":"train gpt","seed":2,"model":{"width":8,"layers":3}})");
  const json both = Data(Open({a, b}).Page()).at("configuration");
  EXPECT_EQ(both.at("rows"), json::parse(R"([["model.layers","2","3"],["seed","1","2"],["x","<b>",null]])"));
  EXPECT_EQ(both.at("equal"), 2);
  EXPECT_EQ(Data(Open({a}).Page()).at("configuration").at("rows").size(), 5u);
}

TEST_F(RunReportTest, SamplesAndLayers) {
  const std::string run = MakeRun("run", "");
  std::string lines;
  for (int step = 0; step < 100; ++step) {
    absl::StrAppend(&lines, R"({"step":)", step, R"(,"sample":"text </script> )", step,
                    R"(","weights":[{"name":"w","low":-1,"high":1,"counts":[3,4]},{"name":"v","log10_update":-3.25}]})",
                    "\n");
  }
  Write("run/insights.jsonl", lines);
  const std::string page = Open({run}).Page();
  const json of_run = Data(page).at("runs").at(0);
  EXPECT_EQ(of_run.at("samples").at("of"), 100);
  EXPECT_EQ(of_run.at("samples").at("texts").size(), 40u);
  EXPECT_EQ(of_run.at("samples").at("texts").back(), json::parse(R"([99,"text </script> 99"])"));
  const json& layers = of_run.at("layers");
  EXPECT_EQ(layers.at("names"), json({"w", "v"}));
  EXPECT_EQ(layers.at("of"), 100);
  EXPECT_EQ(layers.at("steps").size(), 40u);
  EXPECT_EQ(layers.at("steps").back(), 99);
  EXPECT_EQ(layers.at("histograms").at(0).at(0), json::parse("[-1.0,1.0,[3,4]]"));
  EXPECT_EQ(layers.at("updates").at(0).at(0), nullptr);
  EXPECT_EQ(layers.at("updates").at(1).at(0), -3.25);
}

std::string Metrics(int steps) {
  std::string metrics;
  for (int step = 1; step <= steps; ++step) {
    absl::StrAppend(&metrics, R"({"step":)", step, R"(,"tokens":)", step * 768, R"(,"seconds":)", step * 0.0123,
                    R"(,"train_loss":)", 3 + 0.000123 * (step * 7919L % 1000), R"(,"learning_rate":)", 1.0 / step,
                    R"(,"grad_norm":)", 1 + 0.00321 * (step * 104'729L % 1000), R"(,"tokens_per_second":)",
                    60'000.123 + step % 977, "}\n");
  }
  return metrics;
}

TEST_F(RunReportTest, ManyStepsGiveASmallPage) {
  const std::string page = Open({MakeRun("long", Metrics(100'000))}).Page();
  EXPECT_LT(page.size(), 1'000'000u);
  EXPECT_EQ(Data(page).at("runs").at(0).at("figures").at("train_loss").at("of"), 100'000);
  const std::vector<std::string> many(24, MakeRun("run", Metrics(5'000)));
  EXPECT_LT(Open(many).Page().size(), 3'000'000u);
}

TEST_F(RunReportTest, NamesAreTextAndNothingIsFetched) {
  const std::string run = MakeRun("<img src=x onerror=alert(1)>\"'\x01\xff", "");
  const std::string page = Open({run}).Page();
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(Data(page).at("runs").at(0).at("name").get<std::string>(),
              HasSubstr("<img src=x onerror=alert(1)>\"'\x01"));
  const std::string plain = Open({MakeRun("plain", "")}).Page();
  for (const char* remote : {"http:", "https:", "src=", "href=", "@import", "url(", "fetch(", "innerHTML"}) {
    EXPECT_THAT(plain, Not(HasSubstr(remote)));
  }
}

TEST_F(RunReportTest, FoldersThatAreNoRuns) {
  const auto error = [](std::vector<std::string> folders) {
    return std::string(RunReport::Open(folders).status().message());
  };
  EXPECT_THAT(error({folder_ + "none"}), HasSubstr("none: there is no such run"));
  std::filesystem::create_directories(folder_ + "empty");
  EXPECT_THAT(error({folder_ + "empty"}),
              HasSubstr("empty: this is no run of a training, or the training has not begun"));
  EXPECT_THAT(error({MakeRun("model", "", R"({"model_type":"gpt2"})")}), HasSubstr("no command 'train ...'"));
  EXPECT_THAT(error({MakeRun("damaged", "", "{")}), HasSubstr("damaged/config.json: it is not JSON"));
  EXPECT_THAT(error(std::vector<std::string>(25, "x")), HasSubstr("at most 24 runs, not 25"));
}

}  // namespace
}  // namespace weft
