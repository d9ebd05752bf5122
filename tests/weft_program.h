// A fixture for tests of the program `weft` as its user calls it, in an empty folder of each test's own.
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

// The contents of a folder's files, by path from there.
using Files = std::map<std::string, std::string>;
// The names of the files that only one of the two has or that differ, one a line.
std::string Differences(const Files& a, const Files& b);

class WeftProgramTest : public testing::Test {
 protected:
  WeftProgramTest();

  // `weft ARGUMENTS` in the test's folder, where text.txt is a text of 27 different characters.
  CommandResult Weft(const Arguments& arguments, CommandOptions options = {}) const;
  // `weft train gpt` with a tiny model on text.txt; `more` flags come after its own. A run takes milliseconds.
  CommandResult Train(const Arguments& more, CommandOptions options = {}) const;
  // Trains the run `name`, and expects that to work.
  void MakeRun(const std::string& name, const Arguments& more = {}) const;

  // Small data for the trainings below: a.txt and b.txt of sentence pairs, labelled.tsv, pictures.csv.
  void WriteTrainingData() const;
  // `train NAME` with a small model on that data, for gpt and bert on text.txt: a run takes a second or less.
  static Arguments SmallTraining(const std::string& name);

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  // A folder with a BERT of 6 tokens, 2 layers of width 8 with 2 heads, as it is first made.
  void WriteBert(const std::string& folder, int64_t context = 20) const;
  // A folder as CTranslate2 has them, with a Transformer of 2 layers of width 8 and the letters a to e, untrained.
  void WriteTransformer(const std::string& folder) const;
  bool Exists(const std::string& name) const;
  std::string Read(const std::string& name) const;
  void Write(const std::string& name, const std::string& contents) const;
  Files Snapshot(const std::string& name) const;
  // What two equal runs have in common: all but config.json, which names the threads, and the times in metrics.jsonl.
  Files Results(const std::string& run) const;

  const Arguments kTinyModel = {"--layers=1", "--width=16", "--heads=2", "--context=8", "--batch=2"};
  const std::string folder_;

 private:
  const std::string program_;
};

// Exit code and message of a command that failed: it says what is wrong on stderr in a line that begins with its name.
testing::AssertionResult Fails(const CommandResult& result, int exit_code, const std::string& message);
testing::AssertionResult Works(const CommandResult& result);

}  // namespace weft

#endif  // WEFT_TESTS_WEFT_PROGRAM_H_
