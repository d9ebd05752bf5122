// `weft report` writes a page on training runs, or on the schedule of a training step.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "weft/apps/commands.h"
#include "weft/apps/inspect/run_reports.h"
#include "weft/apps/inspect/step_flags.h"
#include "weft/apps/printable.h"
#include "weft/core/status.h"
#include "weft/lab/schedule_report.h"

namespace weft {
namespace {

struct ReportFlags : StepFlags {
  std::vector<std::string> runs;
  std::string text;
  bool schedule = false, follow = false;
};

Hyperparameters Table(ReportFlags* flags) {
  Hyperparameters table = StepTable(flags, "where to write the page, for a browser; -: standard output");
  table.insert(
      table.begin(),
      {{"follow", "write the page again as the runs grow, until their trainings end", &flags->follow},
       {"text", "a text whose attention weights the page shows with each kept checkpoint; ViT: a file of pictures",
        &flags->text},
       {"schedule", "report how a training step is scheduled, of one run or of --graph", &flags->schedule}});
  return table;
}

absl::Status ReportSchedule(const ReportFlags& flags) {
  WEFT_ASSIGN_OR_RETURN(const StepRun run, RunStep(flags));
  const TimedStep& step = run.step;
  const ReportOptions options = {
      .title = absl::StrCat("A training step of ", run.name, " in ", Name(step.precision()), " on ", step.threads(),
                            step.threads() == 1 ? " worker" : " workers"),
      .policy = &step.policy(),
      .workers = step.threads(),
      .calibration = run.calibration ? &*run.calibration : nullptr};
  WEFT_RETURN_IF_ERROR(WriteOut(flags.out, flags.overwrite, ScheduleReport(step.graph(), step.tiles(), options)));
  std::fprintf(SummaryStream(flags.out), "%s: %.2f ms on %d workers; the page is %s\n", Printable(run.name).c_str(),
               step.seconds() * 1e3, step.threads(), Printable(flags.out).c_str());
  return absl::OkStatus();
}

absl::Status Report(ReportFlags flags) {
  WEFT_RETURN_IF_ERROR(SetFromFlags(flags.given, Table(&flags)));
  if (flags.schedule) {
    if (flags.follow) return InvalidArgument("--follow is of a report on runs, not of --schedule");
    if (!flags.text.empty()) return InvalidArgument("--text is of a report on runs, not of --schedule");
    if (flags.runs.size() > 1)
      return InvalidArgument("--schedule is of one run, but ", flags.runs.size(), " are named");
    if (!flags.runs.empty()) flags.choice.run = flags.runs[0];
    return ReportSchedule(flags);
  }
  if (flags.runs.empty()) {
    return InvalidArgument("name the runs to report on, as in `weft report runs/gpt-1`, or --schedule");
  }
  for (const auto& [flag, value] : flags.given) {
    if (flag == "out" || flag == "overwrite" || flag == "follow" || flag == "text" || flag == "schedule") continue;
    return InvalidArgument("--", flag, " is of a report with --schedule");
  }
  return ReportRuns(flags.runs,
                    {.out = flags.out, .overwrite = flags.overwrite, .follow = flags.follow, .text = flags.text});
}

}  // namespace

Command ReportCommand(CLI::App* weft) {
  auto flags = std::make_shared<ReportFlags>();
  flags->out = "report.html";
  CLI::App* app =
      AddCommand(weft, "report", "Writes a page on training runs, or, with --schedule, on one training step.");
  AddFlags(app, Table(flags.get()), &flags->given);
  app->add_option("run", flags->runs, "runs' folders; with --schedule, one run or a name as --graph takes it")
      ->type_name("RUN");
  return {"weft report",
          app,
          [flags] { return Report(*flags); },
          "draws the course of training runs, or how a training step was scheduled",
          {
              {"Writes report.html with the losses of two runs.", "weft report runs/gpt-1 runs/gpt-2"},
              {"Keeps a page up to date while a training goes on.", "weft report runs/gpt-1 --follow --out=run.html"},
              {"Shows how a training step is scheduled.", "weft report --schedule --graph=gpt2 --out=step.html"},
          }};
}

}  // namespace weft
