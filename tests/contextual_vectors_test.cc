// Runs the commands and the program of docs/contextual_vectors.md, and compares their output with the page.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "weft/tests/weft_program.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

struct Block {
  std::string kind, text;  // `kind` is the word after the ```
};

std::vector<Block> BlocksOf(const std::string& path) {
  std::ifstream file(path);
  std::vector<Block> blocks;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("```", 0) == 0) {
      inside = !inside;
      if (inside) blocks.push_back({line.substr(3), ""});
    } else if (inside) {
      blocks.back().text += line + "\n";
    }
  }
  return blocks;
}

std::optional<double> Number(const std::string& word) {
  char* end = nullptr;
  const double value = std::strtod(word.c_str(), &end);
  return end == word.c_str() + word.size() ? std::optional<double>(value) : std::nullopt;
}

// Expects the same words. The third decimal of a number may differ by one, because CPUs differ in rounding.
testing::AssertionResult Alike(const std::string& got, const std::string& wanted) {
  std::istringstream ours(got), theirs(wanted);
  for (std::string a, b; static_cast<bool>(ours >> a) | static_cast<bool>(theirs >> b);) {
    const std::optional<double> x = Number(a), y = Number(b);
    if (a != b && !(x && y && std::abs(*x - *y) < 0.0015)) {
      return testing::AssertionFailure() << "'" << a << "' instead of '" << b << "' in\n" << got;
    }
    a.clear();
    b.clear();
  }
  return testing::AssertionSuccess();
}

class ContextualVectorsTest : public WeftProgramTest {};

TEST_F(ContextualVectorsTest, ThePageShowsWhatIsPrinted) {
  const char* minilm = std::getenv("WEFT_MINILM");
  if (minilm == nullptr) GTEST_SKIP() << "WEFT_MINILM is not set";
  const std::string programs = fs::absolute("apps").string();
  std::string printed;
  int compared = 0;
  for (const Block& block : BlocksOf("docs/contextual_vectors.md")) {
    if (block.kind == "text output") {
      EXPECT_TRUE(Alike(printed, block.text));
      ++compared;
      continue;
    }
    CommandResult result;
    if (block.kind == "sh run") {
      result = RunCommand({"sh", "-c", "PATH=" + programs + ":$PATH\n" + block.text}, {.folder = folder_});
    } else if (block.kind == "cpp") {
      result = RunCommand({"tests/contextual_vectors_program", minilm});
    } else {
      if (block.kind.rfind("text ", 0) == 0) Write(block.kind.substr(5), block.text);
      continue;
    }
    EXPECT_TRUE(Works(result)) << block.text;
    printed = result.out;
  }
  EXPECT_EQ(compared, 4);
}

}  // namespace
}  // namespace weft
