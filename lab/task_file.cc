#include "weft/lab/task_file.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "weft/core/status.h"

namespace weft {
namespace {

constexpr size_t kMostTasks = 100'000'000;

// "seconds" or "bytes" of a task: at least 0, and 0 where `needed` is false and it is not there; else -1.
double Number(const nlohmann::json& task, const char* key, bool needed) {
  const auto it = task.find(key);
  if (it == task.end()) return needed ? -1 : 0;
  if (!it->is_number()) return -1;
  const double value = it->get<double>();
  return std::isfinite(value) ? value : -1;
}

}  // namespace

Schedule TaskList::schedule() const {
  ScheduleBuilder builder;
  for (const TaskCost& cost : costs) builder.AddTask(cost.seconds);
  for (const auto& [before, after] : edges) builder.AddEdge(before, after);
  return std::move(builder).Build();
}

absl::StatusOr<TaskList> ParseTasks(const std::string& text, const std::string& from) {
  const auto wrong = [&](const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat(from, " is not a file of tasks: ", what...));
  };
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return wrong("it is not JSON");
  if (!json.is_object() || json.value("weft_tasks", nlohmann::json()) != 1) return wrong("\"weft_tasks\" is not 1");
  const auto tasks = json.find("tasks"), edges = json.find("edges");
  if (tasks == json.end() || !tasks->is_array() || tasks->empty())
    return wrong("\"tasks\" is not a list of at least one");
  if (tasks->size() > kMostTasks) return wrong("it has more than ", kMostTasks, " tasks");
  if (edges == json.end() || !edges->is_array()) return wrong("\"edges\" is not a list");
  TaskList list;
  for (const nlohmann::json& task : *tasks) {
    const size_t i = list.costs.size();
    if (!task.is_object()) return wrong("task ", i, " is not an object");
    const TaskCost cost = {.seconds = Number(task, "seconds", true), .bytes = Number(task, "bytes", false)};
    if (cost.seconds < 0 || cost.bytes < 0) {
      return wrong("task ", i, " needs \"seconds\", and if it has \"bytes\" those, of at least 0, but is ",
                   task.dump());
    }
    const auto name = task.find("name");
    if (name != task.end() && !name->is_string()) return wrong("the name of task ", i, " is not a text");
    list.names.push_back(name != task.end() ? name->get<std::string>() : "");
    list.costs.push_back(cost);
  }
  for (const nlohmann::json& edge : *edges) {
    const size_t i = list.edges.size();
    const bool pair =
        edge.is_array() && edge.size() == 2 && edge[0].is_number_unsigned() && edge[1].is_number_unsigned();
    if (!pair) return wrong("edge ", i, " is not a pair of tasks' numbers");
    const uint64_t before = edge[0].get<uint64_t>(), after = edge[1].get<uint64_t>();
    if (before >= after || after >= list.costs.size()) {
      return wrong("edge ", i, " leads from ", before, " to ", after, ", but must lead to a later one of the ",
                   list.costs.size(), " tasks");
    }
    list.edges.push_back({static_cast<uint32_t>(before), static_cast<uint32_t>(after)});
  }
  return list;
}

std::string PrintTasks(const TaskList& list) {
  nlohmann::ordered_json tasks = nlohmann::ordered_json::array();
  for (size_t t = 0; t < list.costs.size(); ++t) {
    tasks.push_back({{"name", list.names[t]}, {"seconds", list.costs[t].seconds}, {"bytes", list.costs[t].bytes}});
  }
  const nlohmann::ordered_json json = {{"weft_tasks", 1}, {"tasks", std::move(tasks)}, {"edges", list.edges}};
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

TaskList ListTasks(const Schedule& schedule, absl::Span<const std::string> names, absl::Span<const TaskCost> costs) {
  WEFT_CHECK(names.size() == schedule.task_count && costs.size() == schedule.task_count);
  TaskList list;
  std::vector<uint32_t> number(schedule.size());
  for (uint32_t task : SerialOrder(schedule)) {
    number[task] = static_cast<uint32_t>(list.costs.size());
    const bool join = task >= schedule.task_count;
    list.names.push_back(join ? "join" : names[task]);
    list.costs.push_back(join ? TaskCost{} : costs[task]);
  }
  for (uint32_t task = 0; task < schedule.size(); ++task) {
    for (uint32_t i = schedule.first_successor[task]; i < schedule.first_successor[task + 1]; ++i) {
      list.edges.push_back({number[task], number[schedule.successors[i] & ~Schedule::kAlone]});
    }
  }
  return list;
}

}  // namespace weft
