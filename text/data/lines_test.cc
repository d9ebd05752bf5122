#include "weft/text/data/lines.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "weft/base/file.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Write(const std::string& name, const std::string& contents) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path, std::ios::binary) << contents;
  return path;
}

std::vector<std::string> AllLines(const std::vector<std::string>& paths) {
  LineReader reader(paths);
  std::vector<std::string> all;
  while (true) {
    const absl::StatusOr<TextLines> next = reader.Next(/*max_lines=*/1);
    EXPECT_TRUE(next.ok()) << next.status();
    if (!next.ok() || next->lines.empty()) return all;
    EXPECT_EQ(next->lines.size(), 1u);
    all.push_back(next->lines[0]);
  }
}

TEST(LineReaderTest, EveryKindOfLineBreakEndsALine) {
  EXPECT_THAT(AllLines({Write("unix.txt", "a\n\nb\n")}), ElementsAre("a", "", "b"));
  EXPECT_THAT(AllLines({Write("windows.txt", "a\r\n\r\nb\rc")}), ElementsAre("a", "", "b\rc"));
  EXPECT_THAT(AllLines({Write("break.txt", "\n")}), ElementsAre(""));
  EXPECT_THAT(AllLines({Write("empty.txt", "")}), IsEmpty());
}

TEST(LineReaderTest, AByteOrderMarkIsNoPartOfTheFirstLine) {
  const std::string marked = Write("marked.txt", "\xEF\xBB\xBFx\n\xEF\xBB\xBF\n");
  EXPECT_THAT(AllLines({marked, marked}), ElementsAre("x", "\xEF\xBB\xBF", "x", "\xEF\xBB\xBF"));
}

TEST(LineReaderTest, ABatchHasLinesOfOneFile) {
  const std::string a = Write("a.txt", "1\n2\n3"), empty = Write("empty.txt", ""), b = Write("b.txt", "4\n");
  LineReader reader({a, empty, b});
  absl::StatusOr<TextLines> next = reader.Next(/*max_lines=*/2);
  EXPECT_THAT(next->lines, ElementsAre("1", "2"));
  EXPECT_EQ(next->Location(1), a + ", line 2");
  next = reader.Next(/*max_lines=*/2);
  EXPECT_THAT(next->lines, ElementsAre("3"));
  EXPECT_EQ(next->Location(0), a + ", line 3");
  next = reader.Next(/*max_lines=*/2);
  EXPECT_THAT(next->lines, ElementsAre("4"));
  EXPECT_EQ(next->Location(0), b + ", line 1");
  EXPECT_THAT(reader.Next(/*max_lines=*/2)->lines, IsEmpty());
}

TEST(LineReaderTest, AMissingFileIsNamed) {
  LineReader reader({"missing.txt"});
  EXPECT_THAT(std::string(reader.Next(1).status().message()), HasSubstr("cannot open missing.txt"));
}

TEST(LineReaderTest, ALineOfStandardInputHasALimit) {
  const int file = open(Write("long.txt", "123\n12345\n").c_str(), O_RDONLY), saved = dup(STDIN_FILENO);
  ASSERT_EQ(dup2(file, STDIN_FILENO), STDIN_FILENO);
  const uint64_t limit = ReadLimit();
  SetReadLimit(4);
  LineReader reader({});
  EXPECT_THAT(reader.Next(/*max_lines=*/8)->lines, ElementsAre("123"));
  EXPECT_THAT(std::string(reader.Next(/*max_lines=*/8).status().message()), HasSubstr("standard input, line 2"));
  SetReadLimit(limit);
  dup2(saved, STDIN_FILENO);
  close(saved);
  close(file);
}

// Without waiting for the rest of a line, a reader returns the lines that the other side of a pipe has finished.
TEST(LineReaderTest, StandardInputGivesTheLinesThatItHas) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int saved = dup(STDIN_FILENO);
  ASSERT_EQ(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
  const auto send = [&](const std::string& text) {
    ASSERT_EQ(write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  };
  LineReader reader({});
  send("a\nb\nc");
  const absl::StatusOr<TextLines> first = reader.Next(/*max_lines=*/8);
  EXPECT_THAT(first->lines, ElementsAre("a", "b"));
  EXPECT_EQ(first->Location(1), "standard input, line 2");
  send("d\n\nlast");
  EXPECT_THAT(reader.Next(/*max_lines=*/1)->lines, ElementsAre("cd"));
  close(ends[1]);
  const absl::StatusOr<TextLines> rest = reader.Next(/*max_lines=*/8);
  EXPECT_THAT(rest->lines, ElementsAre("", "last"));
  EXPECT_EQ(rest->Location(0), "standard input, line 4");
  EXPECT_THAT(reader.Next(/*max_lines=*/8)->lines, IsEmpty());
  dup2(saved, STDIN_FILENO);
  for (const int fd : {saved, ends[0]}) close(fd);
}

// Standard input that is a file for the lifetime of this object.
class InputFile {
 public:
  explicit InputFile(const std::string& path) : saved_(dup(STDIN_FILENO)) {
    const int file = open(path.c_str(), O_RDONLY);
    EXPECT_EQ(dup2(file, STDIN_FILENO), STDIN_FILENO);
    close(file);
  }
  ~InputFile() {
    dup2(saved_, STDIN_FILENO);
    close(saved_);
  }

 private:
  int saved_;
};

// If each block of bytes made the reader search the whole line again, 100 MB would take many seconds.
TEST(LineReaderTest, AVeryLongLineTakesLinearTime) {
  const InputFile input(Write("long.txt", std::string(100'000'000, 'a') + "\nb"));
  LineReader reader({});
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(reader.Next(/*max_lines=*/1)->lines[0].size(), 100'000'000);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(1500));
  EXPECT_THAT(reader.Next(/*max_lines=*/1)->lines, ElementsAre("b"));
}

TEST(LineReaderTest, ALineOfStandardInputHasABound) {
  const InputFile input("/dev/zero");
  const size_t before = ReadLimit();
  SetReadLimit(1'000'000);
  LineReader reader({});
  EXPECT_THAT(std::string(reader.Next(/*max_lines=*/8).status().message()),
              HasSubstr("standard input, line 1: it has more than 1000000 bytes, which is the limit max-bytes"));
  SetReadLimit(before);
}

TEST(EncodeLinesTest, GivesTheLinesBeforeTheOneThatCannotBeEncoded) {
  const std::string path = Write("texts.txt", "a\nab\nabc\n?\nabcd\n");
  std::vector<std::string> texts;
  std::vector<size_t> counts;
  const auto encode = [](absl::string_view line) -> absl::StatusOr<TokenIds> {
    if (line == "?") return absl::InvalidArgumentError("it is a question");
    return TokenIds(line.size(), 7);
  };
  const auto take = [&](const TextLines& lines, absl::Span<const TokenIds> ids) {
    counts.push_back(ids.size());
    for (size_t i = 0; i < ids.size(); ++i) {
      EXPECT_EQ(ids[i].size(), lines.lines[i].size());
      texts.push_back(lines.lines[i]);
    }
    return absl::OkStatus();
  };
  EXPECT_EQ(EncodeLines({path}, /*max_lines=*/2, encode, take),
            absl::InvalidArgumentError(path + ", line 4: it is a question"));
  EXPECT_THAT(texts, ElementsAre("a", "ab", "abc"));
  EXPECT_THAT(counts, ElementsAre(2, 1));

  const TextLines lines = {.path = "a.tsv", .lines = {"a", "?"}, .numbers = {3, 8}};
  EXPECT_EQ(EncodeAll(lines, encode).status(), absl::InvalidArgumentError("a.tsv, line 8: it is a question"));
  EXPECT_THAT(*EncodeAll({.path = "a.tsv", .lines = {"ab"}}, encode), ElementsAre(TokenIds{7, 7}));

  const auto fail = [](const TextLines&, absl::Span<const TokenIds>) { return absl::InternalError("full"); };
  EXPECT_EQ(EncodeLines({path}, /*max_lines=*/8, encode, fail), absl::InternalError("full"));
}

}  // namespace
}  // namespace weft
