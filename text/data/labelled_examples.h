// ReadLabelledExamples reads the data of classifiers: labelled texts, pairs of texts, or sentences of labelled words.
//
//   LabelledDataOptions options = {.text_column = "text", .label_column = "category"};
//   WEFT_ASSIGN_OR_RETURN(const LabelledExamples data, ReadLabelledExamples("a.csv,b.jsonl", options));
//   data.examples[0].texts    // {"a text"}
//   data.examples[0].labels   // {"its category"}
//   data.Location(0)          // "a.csv, line 2"
#ifndef WEFT_TEXT_DATA_LABELLED_EXAMPLES_H_
#define WEFT_TEXT_DATA_LABELLED_EXAMPLES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/options/hyperparameters.h"
#include "weft/text/data/text_task.h"

namespace weft {

struct LabelledDataOptions {
  TextTask task = TextTask::kSequence;
  std::string format = "auto";  // auto, lines, tsv, csv, jsonl or columns
  bool header = false;          // the first row of a TSV or CSV has the columns' names
  // Names or numbers of columns (text/data/table.h), or keys of JSON lines; "": the format's default.
  std::string text_column, text_pair_column, label_column;

  // Reports whether examples are pairs of texts.
  bool pairs() const { return task == TextTask::kPair || !text_pair_column.empty(); }
};
// Returns the rows format, header, text-column, text-pair-column and label-column of a table of hyperparameters.
Hyperparameters LabelledDataTable(LabelledDataOptions* options);
// Returns InvalidArgument if options contradict each other.
absl::Status Validate(const LabelledDataOptions& options);

struct LabelledExample {
  std::vector<std::string> texts;   // the text; or both texts of a pair; or the words of a sentence
  std::vector<std::string> labels;  // the label; or the label of each word
  size_t file = 0;                  // index of LabelledExamples::paths
  size_t line = 0;                  // from 1
  bool line_each = false;           // each further word is on the next line
};

struct LabelledExamples {
  std::vector<std::string> paths;
  std::vector<LabelledExample> examples;

  // Returns "FILE, line 7" for an example, or for one of its words.
  std::string Location(size_t example, size_t word = 0) const;
};

// Reads files. The formats are:
//   lines     a text, a tab and its label; the label follows the last tab
//   tsv, csv  tables (text/data/table.h); by default, the first column is the text, the second the second text of
//             a pair, and the last the label; a column that is given by its name implies `header`
//   jsonl     JSON lines; by default with the keys text, text_pair and label, or tokens and tags, two lists
//   columns   a word a line and an empty line after each sentence, as in CoNLL; tabs or spaces separate columns, of
//             which the first is the word and the last its label; lines that begin with -DOCSTART- are skipped
//   auto      by the file's extension, without .gz: csv, jsonl, ndjson or json; otherwise columns for the task tokens,
//             tsv for pairs or if a column or the header is given, and lines for anything else. A file whose first line
//             has a tab is "lines" whatever its extension, if no column or header is given.
// Returns InvalidArgument, with file and line, if a text or label is missing.
absl::StatusOr<LabelledExamples> ReadLabelledExamples(absl::Span<const std::string> paths,
                                                      const LabelledDataOptions& options);
// Reads a file, or several whose paths commas separate.
absl::StatusOr<LabelledExamples> ReadLabelledExamples(const std::string& paths, const LabelledDataOptions& options);

// Moves every tenth example of `examples` to the result.
LabelledExamples TakeEveryTenth(LabelledExamples* examples);

// Returns the distinct labels of all examples, sorted by value if all are whole numbers, else by their bytes.
std::vector<std::string> LabelNames(const LabelledExamples& examples);
// Returns for each example the indices of its labels in `names`. If `names` lacks a label, returns InvalidArgument.
absl::StatusOr<std::vector<std::vector<int32_t>>> LabelIds(const LabelledExamples& examples,
                                                           absl::Span<const std::string> names);
// Returns the labels as numbers. Returns InvalidArgument, with file and line, if a label is not a finite number.
absl::StatusOr<std::vector<float>> LabelNumbers(const LabelledExamples& examples);

}  // namespace weft

#endif  // WEFT_TEXT_DATA_LABELLED_EXAMPLES_H_
