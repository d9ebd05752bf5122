// Runs `weft demo` as a user does, and checks the files that it writes.
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "weft/tests/weft_program.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

class DemosTest : public WeftProgramTest {};

TEST_F(DemosTest, DrawsAFile) {
  const CommandResult plain = Weft({"demo", "masks"});
  const CommandResult result = Weft({"demo", "masks", "--out=masks.svg"});
  EXPECT_TRUE(Works(result));
  EXPECT_EQ(result.out, plain.out);
  const std::string picture = Read("masks.svg");
  EXPECT_EQ(picture.rfind("<svg ", 0), 0);
  EXPECT_TRUE(
      Fails(Weft({"demo", "masks", "--out=masks.svg"}), 2, "--out: masks.svg is there: --overwrite replaces it"));
  Write("masks.svg", "old");
  EXPECT_TRUE(Works(Weft({"demo", "masks", "--out=masks.svg", "--overwrite"})));
  EXPECT_EQ(Read("masks.svg"), picture);
  const CommandResult stream = Weft({"demo", "masks", "--out=-"});  // the picture alone is on standard output
  EXPECT_EQ(stream.out, picture);
  EXPECT_EQ(stream.err, plain.out);
  EXPECT_FALSE(Exists("-"));
}

TEST_F(DemosTest, ReplacesOnlyFiles) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  Write("target.svg", "old");
  fs::create_symlink("target.svg", Path("link"));
  for (const std::string out : {"pipe", "link", "."}) {
    EXPECT_TRUE(Fails(Weft({"demo", "masks", "--overwrite", "--out=" + out}), 2, "--out: " + out + " is not a file"));
  }
  EXPECT_TRUE(fs::is_fifo(Path("pipe")));
  EXPECT_TRUE(fs::is_symlink(Path("link")));
  EXPECT_EQ(Read("target.svg"), "old");
  EXPECT_TRUE(Fails(Weft({"demo", "masks", "--out=nowhere/a.svg"}), 2, "--out: there is no folder "));
  const std::string input = R"({"q": [[1]], "k": [[1]], "v": [[1]]})";
  Write("m.json", input);
  EXPECT_TRUE(Fails(Weft({"demo", "attention", "--matrices=m.json", "--out=./m.json", "--overwrite"}), 2,
                    "--matrices and --out are the same, "));
  EXPECT_EQ(Read("m.json"), input);
}

TEST_F(DemosTest, ErrorsNameTheFlag) {
  Write("m.json", R"({"q": [[1]], "k": [[1]], "v": [[1]]})");
  EXPECT_TRUE(Fails(Weft({"demo", "attention", "--matrices=m.json", "--heads=2"}), 2,
                    "weft demo attention: --heads: 2 heads do not divide the 1 columns of q"));
}

}  // namespace
}  // namespace weft
