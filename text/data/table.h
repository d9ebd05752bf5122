// ReadTable reads columns of a table: TSV, CSV as in RFC 4180, words as in CoNLL, or JSON lines. The file may be
// gzip-compressed.
//
//   WEFT_ASSIGN_OR_RETURN(const Table table, ReadTable("train.csv", {.format = TableFormat::kCsv, .header = true},
//                                                      {{"text-column", "text"}, {"label-column", "category"}}));
//   table.rows[0]   // {"a text", "its category"}
//   table.lines[0]  // 2: the row's line in the file
#ifndef WEFT_TEXT_DATA_TABLE_H_
#define WEFT_TEXT_DATA_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace weft {

enum class TableFormat : uint8_t {
  kTsv,        // a row a line; tabs separate fields, and quotes have no meaning
  kCsv,        // commas separate fields; a field in double quotes may have commas, line ends and doubled quotes
  kWords,      // a word and its labels a line, as in CoNLL; tabs or else spaces separate fields; lines that begin with
               // -DOCSTART- are skipped
  kJsonLines,  // a JSON object a line; its keys are the columns' names
};

struct TableOptions {
  TableFormat format = TableFormat::kTsv;
  bool header = false;  // TSV and CSV: the first row has the columns' names, even if all columns are numbers
};

// A column to read, and the option that chose it, which errors name.
struct TableColumn {
  const char* option;
  std::string name;  // a name of the header, a key, or a number
};

struct Table {
  std::vector<std::vector<std::string>> rows;  // the chosen columns of each row
  std::vector<size_t> lines;                   // the line at which each row begins, from 1
};

// Reads the columns `columns` of a table. In TSV and CSV, a column is a name of the header, or a number: 1 is the first
// column, and -1 the last. Words have no header. In JSON lines, a column is a key; a number or a truth value becomes
// its JSON text. Returns InvalidArgument, with file and line, if rows differ in their number of fields, if a column or
// key is missing, if two of `columns` are the same one, or if a quote or an object is malformed. Empty lines are
// skipped.
absl::StatusOr<Table> ReadTable(const std::string& path, const TableOptions& options,
                                absl::Span<const TableColumn> columns);

// Returns InvalidArgument if two of `columns` have the same key.
absl::Status CheckKeys(absl::Span<const TableColumn> columns);

// Calls `take` with the number and the object of each line of JSON lines. Adds "FILE, line 7" to an error of `take`.
absl::Status ForEachJsonLine(const std::string& path,
                             absl::FunctionRef<absl::Status(size_t line, const nlohmann::ordered_json& object)> take);
// Returns the value of `key`, or InvalidArgument with the keys that `object` has.
absl::StatusOr<nlohmann::ordered_json> ValueOf(const nlohmann::ordered_json& object, const std::string& key);

}  // namespace weft

#endif  // WEFT_TEXT_DATA_TABLE_H_
