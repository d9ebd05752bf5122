// WeftProgramTest is a fixture that runs the program `weft` as its users do. Each test has an empty folder of its own.
#ifndef WEFT_TESTS_WEFT_PROGRAM_H_
#define WEFT_TESTS_WEFT_PROGRAM_H_

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "weft/tests/subprocess.h"

namespace weft {

using Arguments = std::vector<std::string>;
Arguments operator+(Arguments a, const Arguments& b);
Arguments operator-(Arguments a, const std::string& word);  // without `word`

// The contents of a folder's files, by path relative to the folder.
using Files = std::map<std::string, std::string>;
// Returns the names of the files that differ or that only one side has, one name a line.
std::string Differences(const Files& a, const Files& b);

class WeftProgramTest : public testing::Test {
 protected:
  WeftProgramTest();

  // Runs `weft ARGUMENTS` in the test's folder, in which text.txt is a text of 27 different characters.
  CommandResult Weft(const Arguments& arguments, CommandOptions options = {}) const;
  // Runs `weft train gpt` with a tiny model on text.txt, which takes milliseconds. The flags `more` come last.
  CommandResult Train(const Arguments& more, CommandOptions options = {}) const;
  // Trains the run `name` and expects success.
  void MakeRun(const std::string& name, const Arguments& more = {}) const;

  // Writes small data for SmallTraining: sentence pairs in a.txt and b.txt, labelled.tsv, and pictures.csv.
  void WriteTrainingData() const;
  // Returns the arguments of `weft` that train a small model on that data: `name` is translate, bert (on text.txt),
  // classify or vit. A run takes at most a second.
  static Arguments SmallTraining(const std::string& name);

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  // Writes a folder with an untrained BERT: 6 tokens, 2 layers, width 8, 2 heads.
  void WriteBert(const std::string& folder, int64_t context = 20) const;
  // Writes a folder in the format of CTranslate2 with an untrained Transformer: 2 layers, width 8, the letters a to e.
  void WriteTransformer(const std::string& folder) const;
  bool Exists(const std::string& name) const;
  std::string Read(const std::string& name) const;
  void Write(const std::string& name, const std::string& contents) const;
  Files Snapshot(const std::string& name) const;
  // Returns the files of a run without the values that differ between equal runs: config.json, which has the number of
  // threads, and the times in metrics.jsonl.
  Files Results(const std::string& run) const;

  const Arguments kTinyModel = {"--layers=1", "--width=16", "--heads=2", "--context=8", "--batch=2"};
  const std::string folder_;

 private:
  const std::string program_;
};

// Returns `err`, what a command wrote to stderr, without the lines in which a training shows its progress.
std::string WithoutProgress(const std::string& err);
// Expects `exit_code`, and, beside progress, exactly one line on stderr, which begins with "weft" and contains
// `message`.
testing::AssertionResult Fails(const CommandResult& result, int exit_code, const std::string& message);
// Expects exit code 0, and nothing but progress on stderr.
testing::AssertionResult Works(const CommandResult& result);

}  // namespace weft

#endif  // WEFT_TESTS_WEFT_PROGRAM_H_
