// `weft report` runs a training step and writes a page about its schedule.
#include <cstdio>
#include <memory>

#include "absl/strings/str_cat.h"
#include "weft/apps/commands.h"
#include "weft/apps/inspect/step_flags.h"
#include "weft/core/status.h"
#include "weft/lab/schedule_report.h"

namespace weft {
namespace {

struct ReportFlags : StepFlags {
  bool schedule = false;
};

Hyperparameters Table(ReportFlags* flags) {
  Hyperparameters table = StepTable(flags, "where to write the page, for a browser; -: standard output");
  table.insert(table.begin(), {"schedule",
                               "report how a training step is scheduled, the only report so far",
                               &flags->schedule,
                               {.required = true}});
  return table;
}

absl::Status Report(ReportFlags flags) {
  WEFT_RETURN_IF_ERROR(SetFromFlags(flags.given, Table(&flags)));
  if (!flags.schedule) return InvalidArgument("say what is to be reported: --schedule");
  WEFT_ASSIGN_OR_RETURN(const StepRun run, RunStep(flags));
  const TimedStep& step = run.step;
  const ReportOptions options = {
      .title = absl::StrCat("A training step of ", run.name, " in ", Name(step.precision()), " on ", step.threads(),
                            step.threads() == 1 ? " worker" : " workers"),
      .policy = &step.policy(),
      .workers = step.threads(),
      .calibration = run.calibration ? &*run.calibration : nullptr};
  WEFT_RETURN_IF_ERROR(WriteOut(flags.out, flags.overwrite, ScheduleReport(step.graph(), step.tiles(), options)));
  std::fprintf(SummaryStream(flags.out), "%s: %.2f ms on %d workers; the page is %s\n", run.name.c_str(),
               step.seconds() * 1e3, step.threads(), flags.out.c_str());
  return absl::OkStatus();
}

}  // namespace

Command ReportCommand(CLI::App* weft) {
  auto flags = std::make_shared<ReportFlags>();
  flags->out = "report.html";
  CLI::App* app = AddCommand(weft, "report", "Runs a training step and draws a page of how it was scheduled.");
  AddFlags(app, Table(flags.get()), &flags->given);
  AddRun(app, &flags->choice);
  return {"weft report",
          app,
          [flags] { return Report(*flags); },
          "draws how a training step was scheduled",
          {
              {"Writes report.html.", "weft report --schedule --graph=gpt2"},
              {"Writes a report on products in bf16.", "weft report --schedule --precision=bf16 --out=bf16.html"},
          }};
}

}  // namespace weft
