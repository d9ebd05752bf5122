#include "weft/lab/demos/demo.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/types/span.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/core/parameters.h"
#include "weft/graph/compile/compile.h"
#include "weft/graph/run/runner.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

std::string Text(const DemoCell& cell) {
  if (const double* number = std::get_if<double>(&cell)) return absl::StrFormat("%.4g", *number);
  if (const int64_t* number = std::get_if<int64_t>(&cell)) return absl::StrCat(*number);
  return std::get<std::string>(cell);
}

// Returns a row of cells. Texts are aligned on the left, and numbers on the right.
std::string Line(const std::vector<std::string>& cells, const std::vector<size_t>& widths,
                 const std::vector<bool>& is_text) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    const std::string space(widths[i] - CountCharacters(cells[i]), ' ');
    absl::StrAppend(&line, i == 0 ? "" : "  ", is_text[i] ? cells[i] : space, is_text[i] ? space : cells[i]);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string Print(const DemoTable& table) {
  const size_t columns = table.columns.size();
  std::vector<std::vector<std::string>> lines = {table.columns};
  std::vector<bool> is_text(columns, false);
  for (const std::vector<DemoCell>& row : table.rows) {
    lines.emplace_back();
    for (size_t i = 0; i < columns; ++i) {
      lines.back().push_back(Text(row[i]));
      if (std::holds_alternative<std::string>(row[i])) is_text[i] = true;
    }
  }
  std::vector<size_t> widths(columns, 0);
  for (const std::vector<std::string>& line : lines) {
    for (size_t i = 0; i < columns; ++i) widths[i] = std::max(widths[i], CountCharacters(line[i]));
  }
  std::string text = table.title + "\n";
  for (const std::vector<std::string>& line : lines) text += Line(line, widths, is_text);
  return text;
}

template <class T>
Numbers ToNumbers(absl::Span<const T> values) {
  return {values.begin(), values.end()};
}

}  // namespace

absl::StatusOr<std::vector<Numbers>> EvaluateOnce(const Tape& tape, const VarList& fetch, uint64_t seed) {
  WEFT_ASSIGN_OR_RETURN(const Graph graph, Compile(tape, {.fetch = fetch}));
  Parameters parameters({.seed = seed});
  Runner runner(graph, &parameters);
  WEFT_ASSIGN_OR_RETURN(const Outputs out, runner.Run({}));
  std::vector<Numbers> values;
  for (const Var& var : fetch) {
    values.push_back(var.dtype() == kF64 ? ToNumbers(out[var].span<const double>())
                                         : ToNumbers(out[var].span<const float>()));
  }
  return values;
}

std::string PrintText(const DemoResult& result) {
  std::string text;
  for (const DemoTable& table : result.tables) absl::StrAppend(&text, text.empty() ? "" : "\n", Print(table));
  return text;
}

std::string PrintJson(const DemoResult& result) {
  nlohmann::ordered_json all = nlohmann::ordered_json::object();
  for (const DemoTable& table : result.tables) {
    nlohmann::ordered_json& rows = all[table.name] = nlohmann::ordered_json::array();
    for (const std::vector<DemoCell>& cells : table.rows) {
      nlohmann::ordered_json row;
      for (size_t i = 0; i < cells.size(); ++i) {
        std::visit([&](const auto& x) { row[absl::StrReplaceAll(table.columns[i], {{" ", "_"}})] = x; }, cells[i]);
      }
      rows.push_back(std::move(row));
    }
  }
  return JsonLine(all) + "\n";
}

}  // namespace weft
