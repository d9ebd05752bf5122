#include "weft/text/data/table.h"

#include <fstream>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using testing::ElementsAre;

std::string Write(const std::string& contents) {
  const std::string path = testing::TempDir() + "/table";
  std::ofstream(path, std::ios::binary) << contents;
  return path;
}

absl::StatusOr<Table> Read(const std::string& contents, TableFormat format, bool header,
                           const std::vector<std::string>& columns) {
  std::vector<TableColumn> all;
  for (const std::string& column : columns) all.push_back({"column", column});
  return ReadTable(Write(contents), {format, header}, all);
}

// Expected rows are those of Python 3.11: list(csv.reader(io.StringIO(text, newline=""), strict=True)).
TEST(TableTest, ReadsCsvAsRfc4180) {
  const absl::StatusOr<Table> table = Read(
      "\xEF\xBB\xBFtext,n,label\r\n"
      "plain,1,a\r\n"
      "\"with, comma\",2,b\r\n"
      "\"two\nlines\",3,c\n"
      "\n"
      "\"he said \"\"no\"\"\",4,\"\"\n"
      " spaces ,5,last",
      TableFormat::kCsv, true, {"text", "label"});
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_THAT(table->rows,
              ElementsAre(ElementsAre("plain", "a"), ElementsAre("with, comma", "b"), ElementsAre("two\nlines", "c"),
                          ElementsAre("he said \"no\"", ""), ElementsAre(" spaces ", "last")));
  EXPECT_THAT(table->lines, ElementsAre(2, 3, 4, 7, 8));
}

TEST(TableTest, TabsSeparateFieldsWhateverQuotesThereAre) {
  const absl::StatusOr<Table> table = Read("a \"b\tc\t1\r\nd\t\t2\n\ne\tf\t3\n", TableFormat::kTsv, false, {"-1", "1"});
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_THAT(table->rows, ElementsAre(ElementsAre("1", "a \"b"), ElementsAre("2", "d"), ElementsAre("3", "e")));
  EXPECT_THAT(table->lines, ElementsAre(1, 2, 4));
}

TEST(TableTest, ReadsKeysOfJsonLines) {
  const absl::StatusOr<Table> table =
      Read("{\"label\": 1, \"text\": \"a\\tb\"}\n{\"text\": \"c\", \"more\": [], \"label\": true}\n",
           TableFormat::kJsonLines, false, {"text", "label"});
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_THAT(table->rows, ElementsAre(ElementsAre("a\tb", "1"), ElementsAre("c", "true")));
}

TEST(TableTest, NamesFileAndLineOfWhatIsWrong) {
  constexpr TableFormat kTsv = TableFormat::kTsv, kCsv = TableFormat::kCsv, kJson = TableFormat::kJsonLines;
  const struct {
    std::string contents;
    TableFormat format;
    std::string column, error;
  } kCases[] = {
      {"a,b\n1,2\n1,2,3\n", kCsv, "a", "table, line 3: 3 columns, but line 1 has 2 columns"},
      {"a\tb\n1\n", kTsv, "a", "table, line 2: 1 columns, but line 1 has 2 columns"},
      {"a,b\n1,2\n", kCsv, "c", "table, line 1: there is no column 'c'; the columns are a, b"},
      {"a,b\n1,2\n", kCsv, "3", "table, line 1: there is no column 3; the columns are 1 to 2"},
      {"a,b\n1,2\n", kCsv, "-3", "table, line 1: there is no column -3"},
      {"a,b\n1,2\n", kCsv, "0", "table, line 1: there is no column 0"},
      {"a,b\n1,x\"y\"\n", kCsv, "a", "table, line 2: there is a quote within a field"},
      {"a,b\n1,\"x\"y\n", kCsv, "a", "table, line 2: a quoted field is followed by 'y'"},
      {"a,b\n1,2\n3,\"x\n\n", kCsv, "a", "table, line 3: a quoted field has no closing quote"},
      {"{\"b\": 1, \"c\": 2}\n", kJson, "a", "table, line 1: there is no key \"a\"; the keys are b, c"},
      {"{\"a\": 1}\n[1]\n", kJson, "a", "table, line 2: "},
      {"{\"a\": 1}\n{\"a\": null}\n", kJson, "a", "table, line 2: the value of \"a\" is null"},
      {"a\xff\n", kTsv, "a", "table: "},
  };
  for (const auto& [contents, format, column, error] : kCases) {
    const absl::Status status = Read(contents, format, true, {column}).status();
    EXPECT_TRUE(absl::StrContains(status.message(), error)) << status << "; wanted: " << error;
  }
}

}  // namespace
}  // namespace weft
