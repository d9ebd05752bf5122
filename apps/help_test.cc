#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/apps/flags.h"

namespace weft {
namespace {

struct Values {
  int64_t count = 12;
  uint64_t bytes = 0;
  double fraction = 0.5;
  bool on = true, off = false;
  std::string text, path = "trace.json", choice = "f32";
  std::optional<double> unset;
};

TEST(HelpTest, TypesFollowFromTheRules) {
  Values v;
  const struct {
    Hyperparameter row;
    const char* type;
  } rows[] = {
      {{"batch", "", &v.count, {.low = 1}}, "N>=1"},
      {{"batch", "", &v.count, {.low = 1, .high = 4096}}, "1..4096"},
      {{"batch", "", &v.count, {.low = 1, .high = 1e6}}, "N>=1"},
      {{"layers", "", &v.count, {.low = 1, .high = 10'000}}, "N>=1"},
      {{"width", "", &v.count, {.low = 1, .high = 16384}}, "1..16384"},
      {{"offset", "", &v.count}, "N"},
      {{"seed", "", &v.bytes}, "N"},
      {{"budget", "", &v.bytes, {.is_bytes = true}}, "BYTES"},
      {{"dropout", "", &v.fraction, {.low = 0, .high = 0.99}}, "0..0.99"},
      {{"decay", "", &v.unset, {.low = 0}}, "X>=0"},
      {{"ema", "", &v.fraction, {.low = 0, .high = 0.99999999}}, "0..1"},
      {{"rate", "", &v.fraction}, "X"},
      {{"bias", "", &v.on}, ""},
      {{"prompt", "", &v.text}, "TEXT"},
      {{"out", "", &v.path, {.is_path = true}}, "FILE"},
      {{"data", "", &v.path, {.is_path_list = true}}, "FILES"},
      {{"model", "", &v.path, {.is_path = true, .type = "MODEL"}}, "MODEL"},
      {{"precision", "", &v.choice, {.choices = {"f32", "bf16"}}}, "f32|bf16"},
  };
  for (const auto& [row, type] : rows) EXPECT_EQ(TypeName(row), type) << row.flag;
}

TEST(HelpTest, DefaultsAreShown) {
  Values v;
  EXPECT_EQ(FlagHelp({"batch", "windows", &v.count}), "windows (default: 12)");
  v.fraction = 2;
  EXPECT_EQ(FlagHelp({"alpha", "a factor", &v.fraction}), "a factor (default: 2)");
  EXPECT_EQ(FlagHelp({"out", "the file", &v.path}), "the file (default: trace.json)");
  EXPECT_EQ(FlagHelp({"data", "a text", &v.text, {.required = true}}), "Required: a text");
  EXPECT_EQ(FlagHelp({"bias", "a bias", &v.on}), "a bias (default: on; off: --no-bias)");
  EXPECT_EQ(FlagHelp({"resume", "continue", &v.off}), "continue");
  EXPECT_EQ(FlagHelp({"decay", "a rate", &v.unset}), "a rate");
}

TEST(HelpTest, ArgumentsThatMayBeMissingAreInBrackets) {
  std::string text;
  std::vector<std::string> texts;
  const auto usage = [](CLI::App* app) {
    app->set_help_flag("-h,--help", "print this help");
    const std::string help = Help(*app, {{app, nullptr, "", {}}});
    return help.substr(help.find("Usage: "), help.find("\n\nArguments") - help.find("Usage: "));
  };
  CLI::App optional("", "a"), needed("", "b"), many("", "c");
  optional.add_option("run", text, "a run")->type_name("RUN");
  needed.add_option("shell", text, "Required: the shell")->type_name("bash|zsh");
  AddWords(&many, "files", "files", &texts, "FILE");
  EXPECT_EQ(usage(&optional), "Usage: a [FLAG ...] [RUN]");
  EXPECT_EQ(usage(&needed), "Usage: b [FLAG ...] bash|zsh");
  EXPECT_EQ(usage(&many), "Usage: c [FLAG ...] [FILE ...]");
}

TEST(HelpTest, FlagsAreGroupedAndRequiredFlagsAreInTheUsage) {
  std::vector<Command> commands;
  CLI::App weft("Trains models.", "weft");
  weft.formatter_fn(
      [&commands](const CLI::App* app, const std::string&, CLI::AppFormatMode) { return Help(*app, commands); });
  weft.set_help_flag("-h,--help", "print this help");
  CLI::App* use = weft.add_subcommand("use", "Uses a model.");
  use->group("Use a model");
  std::string text;
  use->add_option("--threads", text, "number of threads (default: 0)")->type_name("N>=0")->group("Run");
  use->add_option("--model", text, "Required: a folder")->type_name("FOLDER")->group("Model");
  use->add_option("--hidden", text, "not shown")->group("");
  use->add_option("-p,--penalty-of-repetition,--penalty", text, std::string(70, 'x') + " is the help")
      ->type_name("X>=0")
      ->group("Sampling");
  commands.push_back({use, nullptr, "uses a model", {{"Uses it.", "weft use --model=run"}}});
  const std::string xs(70, 'x'), indent(28, ' ');
  EXPECT_EQ(use->help("weft"),
            "Uses a model.\n\nUsage: weft use --model=FOLDER [FLAG ...]\n\n"
            "Model:\n  --model FOLDER            Required: a folder\n\n"
            "Sampling:\n  -p, --penalty-of-repetition X>=0\n" +
                indent + xs + "\n" + indent +
                "is the help; also --penalty\n\n"
                "Run:\n  --threads N>=0            number of threads (default: 0)\n"
                "  -h, --help                print this help\n\n"
                "Examples:\n  # Uses it.\n  weft use --model=run\n");
  const std::string all = weft.help();
  EXPECT_NE(all.find("\nUse a model:\n  use                       uses a model\n"), std::string::npos) << all;
  EXPECT_NE(all.find("\nFirst examples:\n"), std::string::npos) << all;
}

}  // namespace
}  // namespace weft
