// Runs a chapter of the tour as a reader does, and compares each output with the page. The first argument is the page.
// Its fenced blocks:
//
//   ```sh     lines of bash, run in one folder for the whole page, with `weft` in PATH and the files *.json of the
//             tour. If a line names a variable such as $WEFT_MINILM that is not set, the block and its output are
//             skipped, and in the end the test is, too.
//   ```cpp    a program, which tools/docs.bzl takes from the page; it runs in the same folder. If a comment names a
//             variable such as $WEFT_DATA that is not set, the program is skipped like a block of sh
//   ```text   the standard output of the block above, compared by SameOutput
//   ```calc   calculations, checked by Arithmetic
//   ```       a diagram or a formula, which is not checked
//
// A picture of the page that a block draws must be the committed one. Each number with decimals in a paragraph must
// stand in a checked block, too, though perhaps with more digits.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "weft/base/file.h"
#include "weft/tests/tour/arithmetic.h"
#include "weft/tests/tour/same_output.h"
#include "weft/tests/weft_program.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

std::string page_path;  // NOLINT(runtime/string): the first argument

struct Block {
  std::string kind, text;  // `kind` is the text after the ```
  int line = 0;
};

struct Page {
  std::vector<Block> blocks;
  std::string prose;  // the lines outside of blocks, without code, links' targets and section numbers
  std::vector<std::string> pictures;
};

Page ReadPage() {
  Page page;
  const absl::StatusOr<std::string> text = ReadFile(page_path);
  EXPECT_TRUE(text.ok()) << text.status();
  std::istringstream lines(text.value_or(""));
  bool inside = false;
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (absl::StartsWith(line, "```")) {
      inside = !inside;
      if (inside) page.blocks.push_back({line.substr(3), "", number});
    } else if (inside) {
      page.blocks.back().text += line + "\n";
    } else {
      page.prose += line + "\n";
    }
  }
  const std::regex picture("!\\[[^\\]]*\\]\\(([^)]*)\\)");
  for (std::sregex_iterator it(page.prose.begin(), page.prose.end(), picture), end; it != end; ++it) {
    page.pictures.push_back(it->str(1));
  }
  page.prose = std::regex_replace(page.prose, std::regex("`[^`]*`|\\]\\([^)]*\\)|[Ss]ections? [0-9.]+"), "");
  return page;
}

// Returns the numbers of a text, without commas between thousands.
std::vector<std::string> NumbersOf(std::string text) {
  text = std::regex_replace(text, std::regex("([0-9]),([0-9]{3})"), "$1$2");
  static const std::regex number("[0-9]+(\\.[0-9]+)?(e[-+]?[0-9]+)?");
  return {std::sregex_token_iterator(text.begin(), text.end(), number), {}};
}

// Returns a variable of the block that is not set, or "".
std::string MissingVariable(const std::string& text) {
  const std::regex variable("\\$\\{?(WEFT_[A-Z]+)");
  for (std::sregex_iterator it(text.begin(), text.end(), variable), end; it != end; ++it) {
    if (std::getenv(it->str(1).c_str()) == nullptr) return it->str(1);
  }
  return "";
}

// Returns the files and folders that a block's commands write.
std::set<std::string> WrittenBy(const std::string& text) {
  const std::regex output("(?:> ?|--out=)\"?([A-Za-z0-9_.-]+)");
  return {std::sregex_token_iterator(text.begin(), text.end(), output, 1), {}};
}

class ChapterTest : public WeftProgramTest {
 protected:
  CommandResult Run(const Block& block) const {
    if (block.kind == "cpp") {
      const std::string program = absl::StrCat("tests/tour/", fs::path(page_path).stem().string(), "_program");
      return RunCommand({fs::absolute(program).string()}, {.folder = folder_});
    }
    const std::string lines = absl::StrCat("set -eo pipefail\nPATH=", fs::absolute("apps").string(), ":$PATH\n");
    return RunCommand({"bash", "-c", lines + block.text}, {.folder = folder_});
  }
  void CheckPicture(const std::string& path) const {
    const std::string name = fs::path(path).filename().string();
    const fs::path committed = fs::path(page_path).parent_path() / path;
    const absl::StatusOr<std::string> shown = ReadFile(committed.string());
    EXPECT_TRUE(shown.ok()) << shown.status();
    if (shown.ok() && Exists(name)) {
      EXPECT_TRUE(SameOutput(Read(name), *shown)) << name;
    }
    EXPECT_TRUE(Exists(name) || !absl::EndsWith(name, ".svg")) << "no command of the page draws " << name;
  }
};

TEST_F(ChapterTest, DoesWhatThePageShows) {
  const Page page = ReadPage();
  for (const fs::directory_entry& file : fs::directory_iterator(fs::path(page_path).parent_path())) {
    if (file.path().extension() == ".json") fs::copy_file(file.path(), Path(file.path().filename().string()));
  }
  Arithmetic arithmetic;
  CommandResult last;
  bool runs = false, compares = false;  // whether `last` is a result, and whether the next block may show it
  std::string missing;
  std::set<std::string> absent;  // files that blocks without their variable did not write
  std::vector<std::string> numbers;
  for (const Block& block : page.blocks) {
    SCOPED_TRACE(absl::StrCat(page_path, ", line ", block.line));
    const bool may_compare = std::exchange(compares, false);
    if (block.kind.empty()) continue;
    for (std::string& number : NumbersOf(block.text)) numbers.push_back(std::move(number));
    if (block.kind == "sh" || block.kind == "cpp") {
      const std::string variable = MissingVariable(block.text);
      if (!variable.empty()) missing = variable;
      std::set<std::string> written = WrittenBy(block.text);
      runs = variable.empty() && std::all_of(absent.begin(), absent.end(), [&](const std::string& file) {
               return written.contains(file) || !absl::StrContains(block.text, file);
             });
      if (!runs) absent.merge(written);
      compares = true;
      if (!runs) continue;
      last = Run(block);
      EXPECT_EQ(last.exit_code, 0) << block.text << last.out << last.err;
    } else if (block.kind == "text") {
      EXPECT_TRUE(may_compare) << "no command prints this";
      if (may_compare && runs) {
        EXPECT_TRUE(SameOutput(last.out, block.text)) << last.err;
      }
    } else if (block.kind == "calc") {
      std::istringstream lines(block.text);
      for (std::string line; std::getline(lines, line);) {
        if (!line.empty()) {
          EXPECT_EQ(arithmetic.Check(line), "") << line;
        }
      }
    } else {
      ADD_FAILURE() << "a block of an unknown kind: " << block.kind;
    }
  }
  for (const std::string& number : NumbersOf(page.prose)) {
    if (number.find('.') == std::string::npos) continue;
    bool found = false;
    for (const std::string& checked : numbers) found |= Rounds(number, std::atof(checked.c_str()));
    EXPECT_TRUE(found) << number << " stands in no checked block";
  }
  for (const std::string& picture : page.pictures) CheckPicture(picture);
  if (!missing.empty() && !HasFailure()) GTEST_SKIP() << missing << " is not set, so some commands did not run";
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc < 2) return 2;
  weft::page_path = argv[1];
  return RUN_ALL_TESTS();
}
