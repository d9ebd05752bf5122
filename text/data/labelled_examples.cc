// Each format has a function that appends the examples of one file.
#include "weft/text/data/labelled_examples.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "weft/base/decimal.h"
#include "weft/base/file.h"
#include "weft/base/status.h"
#include "weft/text/data/lines.h"
#include "weft/text/data/table.h"

namespace weft {
namespace {

using Options = LabelledDataOptions;

constexpr char kTextColumn[] = "text-column", kPairColumn[] = "text-pair-column", kLabelColumn[] = "label-column";

// Returns the column that an option chooses: its value `given`, or its default.
TableColumn Column(const char* option, const std::string& given, const char* otherwise) {
  return {option, given.empty() ? otherwise : given};
}

bool HasTableOptions(const Options& options) {
  return options.header || !options.text_column.empty() || !options.text_pair_column.empty() ||
         !options.label_column.empty();
}

// Returns the format of a file whose option is "auto".
absl::StatusOr<std::string> FormatOf(const std::string& path, const Options& options) {
  if (options.format != "auto") return options.format;
  const absl::string_view name = absl::StripSuffix(path, ".gz");
  const auto is = [&](absl::string_view extension) { return absl::EndsWithIgnoreCase(name, extension); };
  const bool json = is(".jsonl") || is(".ndjson") || is(".json");
  if (options.task == TextTask::kTokens) return std::string(json ? "jsonl" : "columns");
  if (HasTableOptions(options) || options.pairs()) return std::string(is(".csv") ? "csv" : json ? "jsonl" : "tsv");
  if (!is(".csv") && !json) return std::string("lines");
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> lines, ReadLines(path));
  if (absl::StrContains(lines[0], '\t')) return std::string("lines");
  return std::string(json ? "jsonl" : "csv");
}

absl::Status ReadLabelledLines(const std::string& path, LabelledExamples* to) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> lines, ReadLines(path));
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto bad = [&](const char* what) { return InvalidArgument(path, ", line ", i + 1, ": ", what); };
    const size_t tab = lines[i].rfind('\t');
    if (tab == std::string::npos) return bad("there is no tab, after which the label would stand");
    if (tab == 0) return bad("there is no text before the tab");
    if (tab + 1 == lines[i].size()) return bad("there is no label after the tab");
    to->examples.push_back({.texts = {lines[i].substr(0, tab)},
                            .labels = {lines[i].substr(tab + 1)},
                            .file = to->paths.size() - 1,
                            .line = i + 1});
  }
  return absl::OkStatus();
}

// Appends the examples of a table. `format`: its name, tsv, csv or jsonl.
absl::Status ReadTableOf(const std::string& path, absl::string_view format, const Options& options,
                         LabelledExamples* to) {
  const TableFormat kind = format == "csv"   ? TableFormat::kCsv
                           : format == "tsv" ? TableFormat::kTsv
                                             : TableFormat::kJsonLines;
  const bool json = kind == TableFormat::kJsonLines;
  std::vector<TableColumn> columns = {Column(kTextColumn, options.text_column, json ? "text" : "1")};
  if (options.pairs()) columns.push_back(Column(kPairColumn, options.text_pair_column, json ? "text_pair" : "2"));
  columns.push_back(Column(kLabelColumn, options.label_column, json ? "label" : "-1"));
  WEFT_ASSIGN_OR_RETURN(Table table, ReadTable(path, {kind, options.header}, columns));
  for (size_t i = 0; i < table.rows.size(); ++i) {
    std::vector<std::string>& row = table.rows[i];
    for (size_t column = 0; column < row.size(); ++column) {
      if (row[column].empty()) {
        return InvalidArgument(path, ", line ", table.lines[i], ": the column ", columns[column].name, " is empty");
      }
    }
    LabelledExample& example = to->examples.emplace_back();
    example.labels.push_back(std::move(row.back()));
    row.pop_back();
    example.texts = std::move(row);
    example.file = to->paths.size() - 1;
    example.line = table.lines[i];
  }
  return absl::OkStatus();
}

// Returns the list of texts or numbers that `object` has for `key`.
absl::StatusOr<std::vector<std::string>> ListOf(const nlohmann::ordered_json& object, const std::string& key) {
  WEFT_ASSIGN_OR_RETURN(const nlohmann::ordered_json list, ValueOf(object, key));
  if (!list.is_array()) return InvalidArgument("the value of \"", key, "\" is no list");
  std::vector<std::string> values;
  for (const auto& value : list) {
    values.push_back(value.is_string() ? value.get<std::string>() : value.dump());
    if (values.back().empty()) return InvalidArgument("an element of \"", key, "\" is empty");
  }
  return values;
}

absl::Status ReadWordLists(const std::string& path, const Options& options, LabelledExamples* to) {
  const TableColumn columns[] = {Column(kTextColumn, options.text_column, "tokens"),
                                 Column(kLabelColumn, options.label_column, "tags")};
  WEFT_RETURN_IF_ERROR(Annotate(CheckKeys(columns), path));
  const std::string &words = columns[0].name, &tags = columns[1].name;
  return ForEachJsonLine(path, [&](size_t line, const nlohmann::ordered_json& object) -> absl::Status {
    LabelledExample example = {.file = to->paths.size() - 1, .line = line};
    WEFT_ASSIGN_OR_RETURN(example.texts, ListOf(object, words));
    WEFT_ASSIGN_OR_RETURN(example.labels, ListOf(object, tags));
    if (example.texts.size() != example.labels.size()) {
      return InvalidArgument("\"", words, "\" has ", example.texts.size(), " elements, but \"", tags, "\" has ",
                             example.labels.size());
    }
    if (!example.texts.empty()) to->examples.push_back(std::move(example));
    return absl::OkStatus();
  });
}

absl::Status ReadWordColumns(const std::string& path, const Options& options, LabelledExamples* to) {
  const TableColumn columns[] = {Column(kTextColumn, options.text_column, "1"),
                                 Column(kLabelColumn, options.label_column, "-1")};
  WEFT_ASSIGN_OR_RETURN(Table table, ReadTable(path, {TableFormat::kWords}, columns));
  for (size_t i = 0; i < table.rows.size(); ++i) {
    std::string &word = table.rows[i][0], &label = table.rows[i][1];
    const size_t line = table.lines[i];
    if (word.empty() || label.empty()) {
      return InvalidArgument(path, ", line ", line, ": the word or its label is empty");
    }
    // A skipped line ends a sentence.
    const bool within = i > 0 && line == table.lines[i - 1] + 1;
    if (!within) to->examples.push_back({.file = to->paths.size() - 1, .line = line, .line_each = true});
    to->examples.back().texts.push_back(std::move(word));
    to->examples.back().labels.push_back(std::move(label));
  }
  return absl::OkStatus();
}

absl::Status ReadOneFile(const std::string& path, const Options& options, LabelledExamples* to) {
  to->paths.push_back(path);
  const size_t before = to->examples.size();
  WEFT_ASSIGN_OR_RETURN(const std::string format, FormatOf(path, options));
  const bool word_lists = format == "jsonl" && options.task == TextTask::kTokens;
  WEFT_RETURN_IF_ERROR(format == "lines"     ? ReadLabelledLines(path, to)
                       : format == "columns" ? ReadWordColumns(path, options, to)
                       : word_lists          ? ReadWordLists(path, options, to)
                                             : ReadTableOf(path, format, options, to));
  if (to->examples.size() > before) return absl::OkStatus();
  return InvalidArgument(path, ": there are no examples in it");
}

}  // namespace

Hyperparameters LabelledDataTable(LabelledDataOptions* options) {
  const Hyperparameter::Rules rules = {.may_change = true, .may_be_empty = true};
  return {
      {"format",
       "format of the data files; auto: by their extensions",
       &options->format,
       {.choices = {"auto", "lines", "tsv", "csv", "jsonl", "columns"}, .may_change = true}},
      {"header", "the first row of a TSV or CSV names the columns", &options->header, {.may_change = true}},
      {kTextColumn,
       "column of the text or word: a name of the header, a key of JSON lines, or a number; 1 is the first column, -1 "
       "the last; without it, the first, text or tokens",
       &options->text_column, rules},
      {kPairColumn, "column of the second text of a pair; without it, the second or text_pair",
       &options->text_pair_column, rules},
      {kLabelColumn, "column of the label; without it, the last, label or tags", &options->label_column, rules},
  };
}

absl::Status Validate(const LabelledDataOptions& options) {
  const bool tokens = options.task == TextTask::kTokens;
  const std::string& format = options.format;
  if (format == "lines" && HasTableOptions(options)) return InvalidArgument("format: lines has no columns; wanted tsv");
  if (format == "lines" && options.pairs()) return InvalidArgument("format: lines has no pairs; wanted tsv");
  if (format == "columns" && !tokens) {
    return InvalidArgument("format: columns has labelled words, which only the task tokens takes");
  }
  if (format == "jsonl" && options.header) return InvalidArgument("header: JSON lines have keys, and no header");
  if (!tokens) return absl::OkStatus();
  if (options.header) return InvalidArgument("header: the files of the task tokens have none");
  if (format != "auto" && format != "columns" && format != "jsonl") {
    return InvalidArgument("format: ", format, " has no labelled words; the task tokens takes columns or jsonl");
  }
  if (!options.text_pair_column.empty()) {
    return InvalidArgument("text-pair-column: the task tokens takes no pairs of texts");
  }
  return absl::OkStatus();
}

std::string LabelledExamples::Location(size_t example, size_t word) const {
  const LabelledExample& at = examples[example];
  return absl::StrCat(paths[at.file], ", line ", at.line + (at.line_each ? word : 0));
}

absl::StatusOr<LabelledExamples> ReadLabelledExamples(absl::Span<const std::string> paths, const Options& options) {
  WEFT_RETURN_IF_ERROR(Validate(options));
  LabelledExamples data;
  for (const std::string& path : paths) WEFT_RETURN_IF_ERROR(ReadOneFile(path, options, &data));
  return data;
}

absl::StatusOr<LabelledExamples> ReadLabelledExamples(const std::string& paths, const Options& options) {
  if (Exists(paths)) return ReadLabelledExamples(absl::MakeConstSpan(&paths, 1), options);
  const std::vector<std::string> all = absl::StrSplit(paths, ',', absl::SkipEmpty());
  return ReadLabelledExamples(absl::MakeConstSpan(all), options);
}

LabelledExamples TakeEveryTenth(LabelledExamples* examples) {
  LabelledExamples taken = {.paths = examples->paths};
  std::vector<LabelledExample> kept;
  for (size_t i = 0; i < examples->examples.size(); ++i) {
    (i % 10 == 9 ? taken.examples : kept).push_back(std::move(examples->examples[i]));
  }
  examples->examples = std::move(kept);
  return taken;
}

std::vector<std::string> LabelNames(const LabelledExamples& examples) {
  std::set<std::string> different;
  for (const LabelledExample& example : examples.examples) {
    different.insert(example.labels.begin(), example.labels.end());
  }
  std::vector<std::string> names(different.begin(), different.end());
  std::vector<std::pair<int64_t, std::string>> numbers;
  for (const std::string& name : names) {
    int64_t number;
    if (!absl::SimpleAtoi(name, &number)) return names;
    numbers.emplace_back(number, name);
  }
  std::sort(numbers.begin(), numbers.end());
  for (size_t i = 0; i < names.size(); ++i) names[i] = numbers[i].second;
  return names;
}

absl::StatusOr<std::vector<std::vector<int32_t>>> LabelIds(const LabelledExamples& examples,
                                                           absl::Span<const std::string> names) {
  absl::flat_hash_map<std::string, int32_t> ids;
  for (const std::string& name : names) ids.emplace(name, static_cast<int32_t>(ids.size()));
  std::vector<std::vector<int32_t>> result(examples.examples.size());
  for (size_t i = 0; i < result.size(); ++i) {
    for (const std::string& label : examples.examples[i].labels) {
      const auto found = ids.find(label);
      if (found == ids.end()) {
        return InvalidArgument(examples.Location(i, result[i].size()), ": the label '", label, "' is none of the ",
                               names.size(), ": ", absl::StrJoin(names.subspan(0, 20), ", "),
                               names.size() > 20 ? ", ..." : "");
      }
      result[i].push_back(found->second);
    }
  }
  return result;
}

absl::StatusOr<std::vector<float>> LabelNumbers(const LabelledExamples& examples) {
  std::vector<float> numbers;
  for (size_t i = 0; i < examples.examples.size(); ++i) {
    const std::string& label = examples.examples[i].labels[0];
    float number = 0;
    if (!ParseDecimal(label, &number)) {
      return InvalidArgument(examples.Location(i), ": the label '", label, "' is not a finite decimal number");
    }
    numbers.push_back(number);
  }
  return numbers;
}

}  // namespace weft
