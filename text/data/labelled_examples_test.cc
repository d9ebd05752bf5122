#include "weft/text/data/labelled_examples.h"

#include <fstream>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using testing::ElementsAre;

std::string Write(const std::string& name, const std::string& contents) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path, std::ios::binary) << contents;
  return path;
}

TEST(LabelledExamplesTest, TheOldFormatIsTheDefault) {
  for (const char* name : {"a.tsv", "a.txt", "a.csv", "a.jsonl"}) {
    const std::string path = Write(name, "a, good film\t10\r\na\tbad \"one\t9\n");
    const absl::StatusOr<LabelledExamples> data = ReadLabelledExamples(path, {});
    ASSERT_TRUE(data.ok()) << data.status();
    ASSERT_EQ(data->examples.size(), 2);
    EXPECT_THAT(data->examples[1].texts, ElementsAre("a\tbad \"one"));
    EXPECT_THAT(data->examples[1].labels, ElementsAre("9"));
    EXPECT_EQ(data->Location(1), path + ", line 2");
    EXPECT_THAT(LabelNames(*data), ElementsAre("9", "10"));
  }
}

TEST(LabelledExamplesTest, ReadsTextsAndLabels) {
  const absl::StatusOr<LabelledExamples> data =
      ReadLabelledExamples(Write("l.txt", "a good film\t10\r\na\tbad one\t9\n"), {});
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->examples[0].texts, ElementsAre("a good film"));
  EXPECT_THAT(data->examples[1].texts, ElementsAre("a\tbad one"));
  const std::vector<std::string> names = LabelNames(*data);
  EXPECT_THAT(names, ElementsAre("9", "10"));
  EXPECT_THAT(*LabelIds(*data, names), ElementsAre(ElementsAre(1), ElementsAre(0)));
}

TEST(LabelledExamplesTest, AByteOrderMarkIsNoPartOfTheFirstText) {
  const std::string contents = "\xEF\xBB\xBFgood\t1\r\n\xEF\xBB\xBF\t2\r\n";
  for (const char* name : {"m.txt", "m.tsv", "m.csv"}) {
    const LabelledExamples data = *ReadLabelledExamples(Write(name, contents), {});
    EXPECT_THAT(data.examples[0].texts, ElementsAre("good")) << name;
    EXPECT_THAT(data.examples[1].texts, ElementsAre("\xEF\xBB\xBF")) << name;  // a character like others
  }
}

TEST(LabelledExamplesTest, NamesThatAreNoNumbersGoByTheirBytes) {
  const LabelledExamples data = *ReadLabelledExamples(Write("l.txt", "a\tten\nb\t9\nc\tZ\nd\tten"), {});
  EXPECT_THAT(LabelNames(data), ElementsAre("9", "Z", "ten"));
}

TEST(LabelledExamplesTest, ReadsSeveralTablesByTheirExtensions) {
  const std::string csv = Write("b.csv", "category,text\nx,\"one, two\"\ny,\"three\nfour\"\n");
  const std::string jsonl = Write("b.jsonl", "{\"text\": \"five\", \"category\": \"z\"}\n");
  const std::string tsv = Write("b.tsv", "id\ttext\tcategory\n7\tsix\tx\n");
  const absl::StatusOr<LabelledExamples> data =
      ReadLabelledExamples(csv + "," + jsonl + "," + tsv, {.text_column = "text", .label_column = "category"});
  ASSERT_TRUE(data.ok()) << data.status();
  std::vector<std::string> texts;
  for (const LabelledExample& example : data->examples) texts.push_back(example.texts[0]);
  EXPECT_THAT(texts, ElementsAre("one, two", "three\nfour", "five", "six"));
  EXPECT_THAT(LabelNames(*data), ElementsAre("x", "y", "z"));
  EXPECT_EQ(data->Location(1), csv + ", line 3");
  EXPECT_EQ(data->Location(3), tsv + ", line 2");
}

TEST(LabelledExamplesTest, ReadsPairsAndNumbers) {
  const std::string path = Write("p.tsv", "one\ttwo\t2.5\nthree\tfour\t-1e1\n");
  const absl::StatusOr<LabelledExamples> pairs = ReadLabelledExamples(path, {.task = TextTask::kPair});
  ASSERT_TRUE(pairs.ok()) << pairs.status();
  EXPECT_THAT(pairs->examples[1].texts, ElementsAre("three", "four"));
  EXPECT_THAT(*LabelNumbers(*pairs), ElementsAre(2.5f, -10.f));
  EXPECT_THAT(ReadLabelledExamples(path, {.task = TextTask::kRegression, .text_pair_column = "2"})->examples[0].texts,
              ElementsAre("one", "two"));
  EXPECT_THAT(ReadLabelledExamples(path, {.task = TextTask::kRegression})->examples[0].texts, ElementsAre("one\ttwo"));
}

// The format of the shared task of CoNLL-2003: four columns, of which the last is the name's tag.
TEST(LabelledExamplesTest, ReadsWordsInColumns) {
  const std::string conll = Write("c.txt",
                                  "-DOCSTART- -X- -X- O\n\nEU NNP B-NP B-ORG\nrejects VBZ B-VP O\n"
                                  "German JJ B-NP B-MISC\n\n\nPeter NNP B-NP B-PER\n\t\n-DOCSTART- -X- -X- O\n");
  absl::StatusOr<LabelledExamples> data = ReadLabelledExamples(conll, {.task = TextTask::kTokens});
  ASSERT_TRUE(data.ok()) << data.status();
  ASSERT_EQ(data->examples.size(), 2);
  EXPECT_THAT(data->examples[0].texts, ElementsAre("EU", "rejects", "German"));
  EXPECT_THAT(data->examples[0].labels, ElementsAre("B-ORG", "O", "B-MISC"));
  EXPECT_EQ(data->Location(0, 2), conll + ", line 5");
  EXPECT_THAT(LabelNames(*data), ElementsAre("B-MISC", "B-ORG", "B-PER", "O"));
  const std::vector<std::string> names = LabelNames(*data);
  EXPECT_THAT(*LabelIds(*data, names), ElementsAre(ElementsAre(1, 3, 0), ElementsAre(2)));
  data = ReadLabelledExamples(conll, {.task = TextTask::kTokens, .text_column = "2", .label_column = "3"});
  EXPECT_THAT(data->examples[0].texts, ElementsAre("NNP", "VBZ", "JJ"));
  EXPECT_THAT(data->examples[0].labels, ElementsAre("B-NP", "B-VP", "B-NP"));

  const std::string lists = Write("c.json", "{\"id\": 1, \"tokens\": [\"EU\", \"is\"], \"ner_tags\": [3, 0]}\n");
  data = ReadLabelledExamples(lists, {.task = TextTask::kTokens, .label_column = "ner_tags"});
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->examples[0].texts, ElementsAre("EU", "is"));
  EXPECT_THAT(data->examples[0].labels, ElementsAre("3", "0"));
}

TEST(LabelledExamplesTest, TakesEveryTenth) {
  std::string contents;
  for (int i = 1; i <= 25; ++i) contents += "text\t" + std::to_string(i) + "\n";
  LabelledExamples data = *ReadLabelledExamples(Write("t.tsv", contents), {});
  const LabelledExamples taken = TakeEveryTenth(&data);
  EXPECT_EQ(data.examples.size(), 23);
  EXPECT_THAT(*LabelNumbers(taken), ElementsAre(10, 20));
  EXPECT_TRUE(absl::EndsWith(taken.Location(1), "t.tsv, line 20"));
}

TEST(LabelledExamplesTest, NamesFileAndLineOfWhatIsWrong) {
  constexpr TextTask kTokens = TextTask::kTokens, kPair = TextTask::kPair;
  const struct {
    std::string contents;
    LabelledDataOptions options;
    std::string error;
  } kCases[] = {
      {"a\t1\nno label\n", {}, "e.tsv, line 2: there is no tab"},
      {"\t1\n", {}, "e.tsv, line 1: there is no text before the tab"},
      {"a\t\n", {}, "e.tsv, line 1: there is no label after the tab"},
      {"a\t1\n\n", {}, "e.tsv, line 2: there is no tab"},
      {"a\xff\t1\n", {}, "e.tsv: "},
      {"a\tb\t\n", {.task = kPair}, "e.tsv, line 1: the column -1 is empty"},
      {"a\n", {.task = kPair}, "e.tsv, line 1: there is no column 2; the columns are 1 to 1"},
      {"a\t1\nb\t2\t3\n", {.header = true}, "e.tsv, line 2: 3 columns, but line 1 has 2 columns"},
      {"a\tb\n1\t2\n", {.label_column = "label"}, "e.tsv, line 1: there is no column 'label'; the columns are a, b"},
      {"a\tb\n", {.label_column = "b"}, "e.tsv: there are no examples in it"},
      {"a O\nb X O\n", {.task = kTokens}, "e.tsv, line 2: 3 columns, but line 1 has 2 columns"},
      {"a\n", {.task = kTokens}, "e.tsv, line 1: there is one column; wanted a word and its label"},
      {"a O\n", {.task = kTokens, .label_column = "3"}, "e.tsv, line 1: there is no column 3"},
      {"a\t\tb\n", {.task = kTokens, .text_column = "2"}, "e.tsv, line 1: the word or its label is empty"},
      {"a\tb\n", {.task = kPair, .format = "lines"}, "format: lines has no pairs"},
      {"a\tb\n", {.format = "lines", .header = true}, "format: lines has no columns"},
      {"a\tb\n", {.format = "columns"}, "format: columns has labelled words"},
      {"a\tb\n", {.task = kTokens, .format = "csv"}, "format: csv has no labelled words"},
      {"a\tb\n", {.task = kTokens, .header = true}, "header: the files of the task tokens have none"},
      {"{}\n", {.format = "jsonl", .header = true}, "header: JSON lines have keys"},
      {"a\tb\n", {.task = kTokens, .text_pair_column = "2"}, "text-pair-column: the task tokens takes no pairs"},
      {"{\"tokens\": [\"a\"], \"tags\": []}\n",
       {.task = kTokens, .format = "jsonl"},
       "e.tsv, line 1: \"tokens\" has 1 elements, but \"tags\" has 0"},
      {"a\t1\n",
       {.task = kPair},
       "e.tsv, line 1: text-pair-column is 2 and label-column is -1, which are both column 2 of 2; wanted different"},
      {"a\t1\n", {.text_column = "2"}, "text-column is 2 and label-column is -1, which are both column 2 of 2"},
      {"a\tb\t1\n", {.task = kPair, .text_column = "2"}, "text-column is 2 and text-pair-column is 2, which are both"},
      {"a,b\n1,2\n",
       {.format = "csv", .text_column = "b"},
       "text-column is b and label-column is -1, which are both column 2 of 2"},
      {"a,a,b\n1,2,3\n", {.format = "csv", .text_column = "a"}, "line 1: two columns are called 'a'"},
      {"{\"a\": 1}\n",
       {.format = "jsonl", .text_column = "a", .label_column = "a"},
       "e.tsv: text-column is a and label-column is a, which are both the key \"a\""},
      {"{\"a\": 1}\n",
       {.task = kTokens, .format = "jsonl", .text_column = "tags"},
       "e.tsv: text-column is tags and label-column is tags, which are both the key"},
      {"a O\n",
       {.task = kTokens, .label_column = "1"},
       "line 1: text-column is 1 and label-column is 1, which are both"},
      {"{\"tokens\": \"a\"}\n", {.task = kTokens, .format = "jsonl"}, "e.tsv, line 1: the value of \"tokens\" is no"},
  };
  for (const auto& [contents, options, error] : kCases) {
    const absl::Status status = ReadLabelledExamples(Write("e.tsv", contents), options).status();
    EXPECT_TRUE(absl::StrContains(status.message(), error)) << status << "; wanted: " << error;
  }
  const LabelledExamples words = *ReadLabelledExamples(Write("w.txt", "a O\nb X\n"), {.task = kTokens});
  absl::Status status = LabelIds(words, {"O", "B"}).status();
  EXPECT_TRUE(absl::StrContains(status.message(), "w.txt, line 2: the label 'X' is none of the 2: O, B")) << status;
  const LabelledExamples texts = *ReadLabelledExamples(Write("l.tsv", "a\t1\nb\t3\n"), {});
  status = LabelIds(texts, {"1", "2"}).status();
  EXPECT_TRUE(absl::StrContains(status.message(), "l.tsv, line 2: the label '3' is none of the 2: 1, 2")) << status;
  for (const std::string number : {"x", "1,5", "nan", "inf", "0x10"}) {
    const LabelledExamples data = *ReadLabelledExamples(Write("n.tsv", "a\t1\nb\t" + number + "\n"), {});
    status = LabelNumbers(data).status();
    EXPECT_TRUE(absl::StrContains(status.message(), "n.tsv, line 2: the label '" + number + "' is not a finite"))
        << status;
  }
}

}  // namespace
}  // namespace weft
