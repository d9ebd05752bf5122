#include "weft/bench/schedule/schedule_row.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

Json OrNull(const std::optional<double>& value, double scale) { return value ? Json(*value * scale) : Json(nullptr); }

// Returns `value` as an integer if it is one. A median count may not be: with an even number of turns, it can lie
// between two integers.
Json Count(double value) {
  const auto whole = static_cast<uint64_t>(value);
  return static_cast<double>(whole) == value ? Json(whole) : Json(value);
}

Json ToJson(const ScheduleRow& row) {
  const double worker_seconds = row.threads * row.makespan, per_node = 1.0 / std::max(row.nodes, 1u);
  return {{"graph", row.graph},
          {"nodes", row.nodes},
          {"work_us", row.work_us},
          {"threads", row.threads},
          {"policy", row.policy},
          {"ns_per_node", row.makespan * per_node * 1e9},
          {"makespan_us", row.makespan * 1e6},
          {"best_us", row.best * 1e6},
          {"utilization", OrNull(row.busy, 1 / worker_seconds)},
          {"executed", Count(row.executed)},
          {"speedup", row.speedup},
          {"idle_us", row.busy ? Json((worker_seconds - *row.busy) * 1e6) : Json(nullptr)},
          {"steals", row.steals ? Count(*row.steals) : Json(nullptr)},
          {"first_node_us", OrNull(row.first_node, 1e6)},
          {"bound_work_us", OrNull(row.bound_work, 1e6)},
          {"bound_path_us", OrNull(row.bound_path, 1e6)},
          {"build_ns_per_node", OrNull(row.build, per_node * 1e9)}};
}

std::string Cell(const Json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string Line(const std::vector<std::string>& cells) { return absl::StrCat(absl::StrJoin(cells, ","), "\n"); }

// A column of the table.
struct Column {
  const char* name;
  int width;
  int digits;  // after the point
  Json (*value)(const Json& row);
};

Json HigherBound(const Json& row) {
  if (row["bound_work_us"].is_null()) return nullptr;
  return std::max(row["bound_work_us"].get<double>(), row["bound_path_us"].get<double>());
}

constexpr Column kColumns[] = {
    {"graph", -11, 0, [](const Json& row) { return row["graph"]; }},
    {"nodes", 8, 0, [](const Json& row) { return row["nodes"]; }},
    {"policy", -22, 0, [](const Json& row) { return row["policy"]; }},
    {"threads", 7, 0, [](const Json& row) { return row["threads"]; }},
    {"work_us", 7, 1, [](const Json& row) { return row["work_us"]; }},
    {"ns/node", 9, 1, [](const Json& row) { return row["ns_per_node"]; }},
    {"makespan_us", 12, 2, [](const Json& row) { return row["makespan_us"]; }},
    {"best_us", 12, 2, [](const Json& row) { return row["best_us"]; }},
    {"speedup", 7, 2, [](const Json& row) { return row["speedup"]; }},
    {"busy", 5, 3, [](const Json& row) { return row["utilization"]; }},
    {"steals", 7, 0, [](const Json& row) { return row["steals"]; }},
    {"first_us", 8, 2, [](const Json& row) { return row["first_node_us"]; }},
    {"bound_us", 10, 1, HigherBound},
    {"build_ns", 8, 1, [](const Json& row) { return row["build_ns_per_node"]; }},
};

std::string TableCell(const Column& column, const Json& value) {
  const std::string text = value.is_null()     ? "-"
                           : value.is_string() ? value.get<std::string>()
                                               : absl::StrFormat("%.*f", column.digits, value.get<double>());
  return absl::StrFormat("%*s", column.width, text);
}

std::string TableLine(const std::vector<std::string>& cells) { return absl::StrCat(absl::StrJoin(cells, " "), "\n"); }

}  // namespace

std::string Header(RowFormat format) {
  if (format == RowFormat::kJson) return "";
  std::vector<std::string> cells;
  if (format == RowFormat::kTable) {
    for (const Column& column : kColumns) cells.push_back(TableCell(column, column.name));
    return TableLine(cells);
  }
  const Json json = ToJson({});
  for (const auto& [name, value] : json.items()) cells.push_back(name);
  return Line(cells);
}

std::string Print(const ScheduleRow& row, RowFormat format) {
  const Json json = ToJson(row);
  if (format == RowFormat::kJson) return json.dump() + "\n";
  std::vector<std::string> cells;
  if (format == RowFormat::kTable) {
    for (const Column& column : kColumns) cells.push_back(TableCell(column, column.value(json)));
    return TableLine(cells);
  }
  for (const auto& [name, value] : json.items()) cells.push_back(Cell(value));
  return Line(cells);
}

}  // namespace weft
