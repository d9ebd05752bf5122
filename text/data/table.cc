#include "weft/text/data/table.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/text/data/lines.h"

namespace weft {
namespace {

using Fields = std::vector<std::string>;

// Reads the records of a CSV one after the other.
class CsvReader {
 public:
  explicit CsvReader(absl::string_view text) : text_(text) {}

  size_t line() const { return line_; }  // at which the next record begins
  bool done() const { return at_ == text_.size(); }

  // Reads a record, which may have several lines. An empty line gives no fields.
  absl::StatusOr<Fields> Next() {
    Fields fields;
    if (SkipLineEnd()) return fields;
    while (true) {
      WEFT_ASSIGN_OR_RETURN(fields.emplace_back(), at_ < text_.size() && text_[at_] == '"' ? Quoted() : Plain());
      if (done() || SkipLineEnd()) return fields;
      if (text_[at_] != ',') {
        return InvalidArgument("a quoted field is followed by '", text_.substr(at_, 1), "' instead of a comma");
      }
      ++at_;
    }
  }

 private:
  bool SkipLineEnd() {
    const absl::string_view rest = text_.substr(at_);
    const size_t length = absl::StartsWith(rest, "\r\n") ? 2 : absl::StartsWith(rest, "\n") ? 1 : 0;
    at_ += length;
    line_ += length > 0 ? 1 : 0;
    return length > 0;
  }

  absl::StatusOr<std::string> Plain() {
    const size_t end = std::min(text_.find_first_of(",\n\"", at_), text_.size());
    if (end < text_.size() && text_[end] == '"') {
      return InvalidArgument("there is a quote within a field that does not begin with one");
    }
    absl::string_view field = text_.substr(at_, end - at_);
    if (end < text_.size() && text_[end] == '\n') absl::ConsumeSuffix(&field, "\r");
    at_ += field.size();
    return std::string(field);
  }

  absl::StatusOr<std::string> Quoted() {
    std::string field;
    while (true) {
      const size_t begin = at_ + 1, end = text_.find('"', begin);
      if (end == absl::string_view::npos) return InvalidArgument("a quoted field has no closing quote");
      const absl::string_view part = text_.substr(begin, end - begin);
      absl::StrAppend(&field, part);
      for (const char c : part) line_ += c == '\n' ? 1 : 0;
      at_ = end + 1;
      if (at_ == text_.size() || text_[at_] != '"') return field;
      field += '"';  // a doubled quote
    }
  }

  const absl::string_view text_;
  size_t at_ = 0, line_ = 1;
};

bool IsNumber(absl::string_view column) {
  int64_t number;
  return absl::SimpleAtoi(column, &number);
}

absl::StatusOr<size_t> FindColumn(absl::string_view column, size_t count, absl::Span<const std::string> names) {
  int64_t number = 0;
  const auto size = static_cast<int64_t>(count);
  if (absl::SimpleAtoi(column, &number)) {
    if (number >= 1 && number <= size) return static_cast<size_t>(number - 1);
    if (number <= -1 && number >= -size) return static_cast<size_t>(size + number);
    return InvalidArgument("there is no column ", number, "; the columns are 1 to ", count);
  }
  const auto found = std::find(names.begin(), names.end(), column);
  if (found == names.end()) {
    return InvalidArgument("there is no column '", column, "'; the columns are ", absl::StrJoin(names, ", "));
  }
  if (std::find(found + 1, names.end(), column) != names.end()) {
    return InvalidArgument("two columns are called '", column, "'; give the number of one");
  }
  return static_cast<size_t>(found - names.begin());
}

// Returns InvalidArgument if two of `columns` have the same one of `places`: a label would be an input, too.
absl::Status CheckDifferent(absl::Span<const TableColumn> columns, absl::Span<const std::string> places) {
  for (size_t i = 0; i < columns.size(); ++i) {
    for (size_t j = i + 1; j < columns.size(); ++j) {
      if (places[i] != places[j]) continue;
      return InvalidArgument(columns[i].option, " is ", columns[i].name, " and ", columns[j].option, " is ",
                             columns[j].name, ", which are both ", places[i], "; wanted different columns");
    }
  }
  return absl::OkStatus();
}

// Adds rows of fields to a table. The first row decides the number of fields and the indices of the columns.
class TableBuilder {
 public:
  TableBuilder(bool header, absl::Span<const TableColumn> columns) : header_(header), columns_(columns) {}

  absl::Status Add(size_t line, Fields fields) {
    if (indices_.empty()) {
      WEFT_RETURN_IF_ERROR(FindColumns(fields));
      first_line_ = line;
      if (header_) return absl::OkStatus();
    }
    if (fields.size() != count_) {
      return InvalidArgument(fields.size(), " columns, but line ", first_line_, " has ", count_, " columns");
    }
    Fields& row = table_.rows.emplace_back();
    for (const size_t index : indices_) row.push_back(fields[index]);
    table_.lines.push_back(line);
    return absl::OkStatus();
  }

  bool empty() const { return indices_.empty(); }
  Table Take() && { return std::move(table_); }

 private:
  absl::Status FindColumns(const Fields& first) {
    count_ = first.size();
    std::vector<std::string> places;
    for (const TableColumn& column : columns_) {
      WEFT_ASSIGN_OR_RETURN(const size_t index, FindColumn(column.name, count_, header_ ? first : Fields()));
      indices_.push_back(index);
      places.push_back(absl::StrCat("column ", index + 1, " of ", count_));
    }
    return CheckDifferent(columns_, places);
  }

  const bool header_;
  const absl::Span<const TableColumn> columns_;
  Table table_;
  std::vector<size_t> indices_;  // of `columns_`
  size_t count_ = 0, first_line_ = 0;
};

// Calls `take` with the number and the text of each line that is not empty. Adds "FILE, line 7" to an error of `take`.
absl::Status ForEachLine(const std::string& path,
                         absl::FunctionRef<absl::Status(size_t number, absl::string_view line)> take) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> lines, ReadLines(path));
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    const absl::Status taken = take(i + 1, lines[i]);
    if (!taken.ok()) return Annotate(taken, absl::StrCat(path, ", line ", i + 1));
  }
  return absl::OkStatus();
}

absl::Status ReadCsv(const std::string& path, TableBuilder* builder) {
  WEFT_ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  CsvReader reader(absl::StripPrefix(text, kByteOrderMark));
  while (!reader.done()) {
    const size_t line = reader.line();
    absl::StatusOr<Fields> fields = reader.Next();
    const absl::Status added = !fields.ok()      ? fields.status()
                               : fields->empty() ? absl::OkStatus()
                                                 : builder->Add(line, *std::move(fields));
    if (!added.ok()) return Annotate(added, absl::StrCat(path, ", line ", line));
  }
  return absl::OkStatus();
}

absl::Status ReadTsv(const std::string& path, TableBuilder* builder) {
  return ForEachLine(
      path, [&](size_t number, absl::string_view line) { return builder->Add(number, absl::StrSplit(line, '\t')); });
}

absl::Status ReadWords(const std::string& path, TableBuilder* builder) {
  return ForEachLine(path, [&](size_t number, absl::string_view line) -> absl::Status {
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || absl::StartsWith(line, "-DOCSTART-")) return absl::OkStatus();
    Fields fields = absl::StrContains(line, '\t') ? Fields(absl::StrSplit(line, '\t'))
                                                  : Fields(absl::StrSplit(line, ' ', absl::SkipEmpty()));
    if (builder->empty() && fields.size() < 2) {
      return InvalidArgument("there is one column; wanted a word and its label");
    }
    return builder->Add(number, std::move(fields));
  });
}

absl::StatusOr<Table> ReadJsonLines(const std::string& path, absl::Span<const TableColumn> columns) {
  WEFT_RETURN_IF_ERROR(Annotate(CheckKeys(columns), path));
  Table table;
  WEFT_RETURN_IF_ERROR(ForEachJsonLine(path, [&](size_t line, const nlohmann::ordered_json& object) -> absl::Status {
    Fields row;
    for (const auto& [option, key] : columns) {
      WEFT_ASSIGN_OR_RETURN(const nlohmann::ordered_json value, ValueOf(object, key));
      if (value.is_structured() || value.is_null()) {
        return InvalidArgument("the value of \"", key, "\" is ", value.dump(), ", wanted a text or a number");
      }
      row.push_back(value.is_string() ? value.get<std::string>() : value.dump());
    }
    table.rows.push_back(std::move(row));
    table.lines.push_back(line);
    return absl::OkStatus();
  }));
  return table;
}

}  // namespace

absl::Status CheckKeys(absl::Span<const TableColumn> columns) {
  std::vector<std::string> places;
  for (const TableColumn& column : columns) places.push_back(absl::StrCat("the key \"", column.name, "\""));
  return CheckDifferent(columns, places);
}

absl::Status ForEachJsonLine(const std::string& path,
                             absl::FunctionRef<absl::Status(size_t line, const nlohmann::ordered_json& object)> take) {
  return ForEachLine(path, [&](size_t number, absl::string_view line) -> absl::Status {
    WEFT_ASSIGN_OR_RETURN(const nlohmann::ordered_json json, ParseJsonObject(line));
    return take(number, json);
  });
}

absl::StatusOr<nlohmann::ordered_json> ValueOf(const nlohmann::ordered_json& object, const std::string& key) {
  const auto found = object.find(key);
  if (found != object.end()) return *found;
  std::vector<std::string> keys;
  for (const auto& [name, value] : object.items()) keys.push_back(name);
  return InvalidArgument("there is no key \"", key, "\"; the keys are ", absl::StrJoin(keys, ", "));
}

absl::StatusOr<Table> ReadTable(const std::string& path, const TableOptions& options,
                                absl::Span<const TableColumn> columns) {
  if (options.format == TableFormat::kJsonLines) return ReadJsonLines(path, columns);
  const bool named = !absl::c_all_of(columns, [](const TableColumn& column) { return IsNumber(column.name); });
  const bool words = options.format == TableFormat::kWords;
  TableBuilder builder(!words && (options.header || named), columns);
  const auto read = words ? ReadWords : options.format == TableFormat::kCsv ? ReadCsv : ReadTsv;
  WEFT_RETURN_IF_ERROR(read(path, &builder));
  return std::move(builder).Take();
}

}  // namespace weft
