// `weft report` writes a page on training runs, or on the schedule of a training step.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "weft/apps/commands.h"
#include "weft/apps/inspect/step_flags.h"
#include "weft/apps/streams.h"
#include "weft/base/status.h"
#include "weft/lab/reports/run_report.h"
#include "weft/lab/schedule_report.h"
#include "weft/train/loop/interrupt.h"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kReloadSeconds = 5;              // the page is read, so it should not change too often
constexpr std::chrono::seconds kPause(2);      // between two checks of the files
constexpr int kPausePerWork = 20;              // a report on long runs takes at most a twentieth of a core
constexpr std::chrono::milliseconds kNap(50);  // Ctrl-C ends the command within this time

struct ReportFlags : StepFlags {
  std::vector<std::string> runs;
  std::string text;     // the page shows its attention weights with each kept checkpoint; empty: none
  bool follow = false;  // writes the page again as the runs grow, until no training writes them or until Ctrl-C
  bool schedule = false;
};

Hyperparameters Table(ReportFlags* flags) {
  Hyperparameters table = StepTable(flags, "where to write the page, for a browser; -: standard output");
  for (Hyperparameter& row : table) {
    if (row.flag != "out" && row.flag != "overwrite") row.rules.needs = "schedule";
  }
  table.insert(table.begin(),
               {{"follow",
                 "write the page again as the runs grow, until their trainings end",
                 &flags->follow,
                 {.needs = "no schedule"}},
                {"text",
                 "a text whose attention weights the page shows with each kept checkpoint; ViT: a file of pictures",
                 &flags->text,
                 {.needs = "no schedule"}},
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

// Waits for `time`, or until `interrupt` ends the wait.
void Wait(Clock::duration time, const Interrupt& interrupt) {
  for (const auto end = Clock::now() + time; Clock::now() < end && !interrupt.requested();) {
    std::this_thread::sleep_for(kNap);
  }
}

// Writes the page until no training writes the runs, or until Ctrl-C. The last page does not load itself again.
absl::Status Follow(RunReport* report, const std::string& out) {
  const Interrupt interrupt;
  while (report->going_on() && !interrupt.requested()) {
    const auto begin = Clock::now();
    WEFT_ASSIGN_OR_RETURN(const bool changed, report->Update());
    if (changed && report->going_on()) {
      WEFT_RETURN_IF_ERROR(WriteOut(out, /*overwrite=*/true, report->Page(kReloadSeconds)));
    }
    if (report->going_on()) Wait(std::max<Clock::duration>(kPause, kPausePerWork * (Clock::now() - begin)), interrupt);
  }
  WEFT_RETURN_IF_ERROR(report->Update().status());
  return WriteOut(out, /*overwrite=*/true, report->Page());
}

// Reports on training runs.
absl::Status ReportRuns(const ReportFlags& flags) {
  if (flags.follow && flags.out == kStandardOutput) {
    return InvalidArgument("--follow writes the page again and again, so --out must be a file");
  }
  WEFT_RETURN_IF_ERROR(CheckOut("out", flags.out, flags.overwrite));
  WEFT_ASSIGN_OR_RETURN(RunReport report, UsageError(RunReport::Open(flags.runs, flags.text)));
  const bool follows = flags.follow && report.going_on();
  WEFT_RETURN_IF_ERROR(WriteOut(flags.out, flags.overwrite, report.Page(follows ? kReloadSeconds : 0)));
  const std::string names =
      flags.runs.size() == 1 ? Printable(flags.runs[0]) : absl::StrCat(flags.runs.size(), " runs");
  if (follows) {
    std::printf("%s: training goes on; %s is written again every %d seconds until the training ends, or until Ctrl-C\n",
                names.c_str(), Printable(flags.out).c_str(), static_cast<int>(kPause.count()));
    std::fflush(stdout);
    WEFT_RETURN_IF_ERROR(Follow(&report, flags.out));
  }
  const std::string steps = report.steps() == 0   ? "no training step is recorded yet"
                            : report.steps() == 1 ? "1 step"
                                                  : absl::StrCat(report.steps(), " steps");
  std::fprintf(SummaryStream(flags.out), "%s: %s; the page is %s\n", names.c_str(), steps.c_str(),
               Printable(flags.out).c_str());
  return absl::OkStatus();
}

absl::Status Report(ReportFlags flags) {
  if (flags.schedule) {
    if (flags.runs.size() > 1)
      return InvalidArgument("--schedule is of one run, but ", flags.runs.size(), " are named");
    if (!flags.runs.empty()) flags.choice.run = flags.runs[0];
    return ReportSchedule(flags);
  }
  if (flags.runs.empty()) {
    return InvalidArgument("name the runs to report on, as in `weft report runs/gpt-1`, or --schedule");
  }
  return ReportRuns(flags);
}

}  // namespace

Command ReportCommand(CLI::App* weft, const std::string& name) {
  auto flags = std::make_shared<ReportFlags>();
  flags->out = "report.html";
  Command command = MakeCommand(
      weft, name,
      {"Writes a page on training runs, or, with --schedule, on one training step.",
       "draws the course of training runs, or how a training step was scheduled",
       {{"Writes report.html with the losses of two runs.", "weft report runs/gpt-1 runs/gpt-2"},
        {"Keeps a page up to date while a training goes on.", "weft report runs/gpt-1 --follow --out=run.html"},
        {"Shows how a training step is scheduled.", "weft report --schedule --graph=gpt2 --out=step.html"}}},
      flags, Table, Report);
  command.app->add_option("run", flags->runs, "runs' folders; with --schedule, one run or a name as --graph takes it")
      ->type_name("RUN");
  return command;
}

}  // namespace weft
