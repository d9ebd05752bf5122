// Runs bench/variants with a program that stands for `weft`, and each variant's flags with weft itself.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/tests/subprocess.h"

namespace weft {
namespace {

using testing::HasSubstr;
using testing::Not;

namespace fs = std::filesystem;

// A program in place of weft. Its run's validation loss is the seed, and 10 more without residual connections; without
// V it fails. It appends a line to the file `calls` for each run.
fs::path FakeWeft(const fs::path& folder) {
  const fs::path path = folder / "fake_weft";
  std::ofstream(path) << R"(#!/bin/sh
for word in "$@"; do
  case $word in
    --out=*) out=${word#--out=};;
    --seed=*) seed=${word#--seed=};;
    --steps=*) steps=${word#--steps=};;
    --ablate=residual) more=1;;
    --ablate=value) echo 'no value' >&2; exit 3;;
  esac
done
mkdir -p $out
echo "{\"step\": $steps, \"val_loss\": $more$seed.5}" > $out/metrics.jsonl
echo "$@" >> )" << (folder / "calls").string()
                      << "\n";
  fs::permissions(path, fs::perms::owner_all);
  return path;
}

fs::path NewFolder(const std::string& name) {
  const fs::path folder = fs::path(testing::TempDir()) / name;
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

CommandResult RunVariants(const std::string& words) {
  std::istringstream stream("bench/variants " + words);
  return RunCommand({std::istream_iterator<std::string>(stream), {}});
}

size_t Lines(const fs::path& path) {
  std::ifstream file(path);
  return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
}

TEST(VariantsTest, MeanDeviationAndDifference) {
  const fs::path folder = NewFolder("variants_means");
  const std::string words = "--tasks=shakespeare --data=data --weft=" + FakeWeft(folder).string() +
                            " --out=" + (folder / "runs").string() + " --seeds=";
  const CommandResult result = RunVariants(words + "3");
  EXPECT_EQ(result.exit_code, 1);  // One variant failed.
  EXPECT_THAT(result.out, HasSubstr("## shakespeare"));
  EXPECT_THAT(result.out, HasSubstr("| the reference |  | 2.5000 ± 1.0000 | +0.0000 |\n"));
  EXPECT_THAT(result.out, HasSubstr("| without residual | `--ablate=residual` | 12.5000 ± 1.0000 | +10.0000 |\n"));
  EXPECT_THAT(result.out, HasSubstr("| without V | `--ablate=value` | failed |  |\n"));
  EXPECT_THAT(result.err, HasSubstr("no value"));
  EXPECT_THAT(result.out, Not(HasSubstr("multi30k")));
  // A second call trains what is missing only.
  const size_t calls = Lines(folder / "calls");
  RunVariants(words + "3");
  EXPECT_EQ(Lines(folder / "calls"), calls);
  RunVariants(words + "4");
  EXPECT_EQ(Lines(folder / "calls"), calls + calls / 3);
  // Other steps are another measurement.
  RunVariants(words + "1 --steps=7");
  EXPECT_EQ(Lines(folder / "calls"), calls + 2 * (calls / 3));
}

TEST(VariantsTest, UsageErrors) {
  for (const char* flags :
       {"--tasks=chess --data=data", "--seeds=0 --data=data", "--steps=-1 --data=data", "--tusks"}) {
    const CommandResult result = RunVariants(flags);
    EXPECT_EQ(result.exit_code, 2) << flags << "\n" << result.err;
    EXPECT_EQ(result.out, "") << flags;
  }
  EXPECT_THAT(RunVariants("--tasks=chess --data=data").err, HasSubstr("'chess' is not one of shakespeare, multi30k"));
}

TEST(VariantsTest, WeftTakesTheFlagsOfEachVariant) {
  const fs::path folder = NewFolder("variants_flags");
  fs::create_directories(folder / "tinyshakespeare");
  std::ofstream text(folder / "tinyshakespeare" / "input.txt");
  for (int line = 0; line < 300; ++line) text << "This is line " << line << " of the text.\n";
  text.close();
  const CommandResult result = RunVariants(
      "--weft=apps/weft --tasks=shakespeare --seeds=1 --steps=1 --eval-batches=1 --data=" + folder.string() +
      " --out=" + (folder / "runs").string());
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("## shakespeare"));
}

}  // namespace
}  // namespace weft
