#include "weft/apps/inspect/run_reports.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "absl/strings/str_cat.h"
#include "weft/apps/flags.h"
#include "weft/apps/inspect/step_flags.h"
#include "weft/apps/printable.h"
#include "weft/core/status.h"
#include "weft/lab/reports/run_report.h"
#include "weft/train/interrupt.h"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kReloadSeconds = 5;              // the page is read, so it should not change too often
constexpr std::chrono::seconds kPause(2);      // between two looks at the files
constexpr int kPausePerWork = 20;              // a report on long runs takes at most a twentieth of a core
constexpr std::chrono::milliseconds kNap(50);  // Ctrl-C ends the command within this time

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

}  // namespace

absl::Status ReportRuns(const std::vector<std::string>& folders, const RunReportFlags& flags) {
  if (flags.follow && flags.out == kStandardOutput) {
    return InvalidArgument("--follow writes the page again and again, so --out must be a file");
  }
  WEFT_RETURN_IF_ERROR(CheckOut("out", flags.out, flags.overwrite));
  WEFT_ASSIGN_OR_RETURN(RunReport report, UsageError(RunReport::Open(folders, flags.text)));
  const bool follows = flags.follow && report.going_on();
  WEFT_RETURN_IF_ERROR(WriteOut(flags.out, flags.overwrite, report.Page(follows ? kReloadSeconds : 0)));
  const std::string runs = folders.size() == 1 ? Printable(folders[0]) : absl::StrCat(folders.size(), " runs");
  if (follows) {
    std::printf("%s: training goes on; %s is written again every %d seconds until the training ends, or until Ctrl-C\n",
                runs.c_str(), Printable(flags.out).c_str(), static_cast<int>(kPause.count()));
    std::fflush(stdout);
    WEFT_RETURN_IF_ERROR(Follow(&report, flags.out));
  }
  const std::string steps = report.steps() == 0   ? "no training step is recorded yet"
                            : report.steps() == 1 ? "1 step"
                                                  : absl::StrCat(report.steps(), " steps");
  std::fprintf(SummaryStream(flags.out), "%s: %s; the page is %s\n", runs.c_str(), steps.c_str(),
               Printable(flags.out).c_str());
  return absl::OkStatus();
}

}  // namespace weft
