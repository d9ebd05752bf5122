// `weft demo NAME` runs one of the demos of lab/demos, each of which shows an idea of the Transformer in numbers.
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "weft/apps/commands.h"
#include "weft/apps/flags.h"
#include "weft/apps/streams.h"
#include "weft/base/status.h"
#include "weft/lab/demos/demo.h"

namespace weft {
namespace {

struct DemoFlags {
  Demo demo;
  bool json = false, overwrite = false;
  std::string out;
  GivenFlags given;
};

Hyperparameters Table(DemoFlags* flags) {
  Hyperparameters table = flags->demo.flags;
  table.push_back({"json", "print a JSON object", &flags->json, {.group = "Output"}});
  table.push_back({"out",
                   "also draw the figures, to this file of SVG; -: standard output",
                   &flags->out,
                   {.is_path = true, .group = "Output"}});
  table.push_back({"overwrite", "replace the file of --out", &flags->overwrite, {.needs = "out", .group = "Output"}});
  return table;
}

absl::Status Run(const DemoFlags& flags) {
  if (!flags.out.empty()) WEFT_RETURN_IF_ERROR(CheckOut("out", flags.out, flags.overwrite));
  for (const Hyperparameter& flag : flags.demo.flags) {
    if (flag.rules.is_path) WEFT_RETURN_IF_ERROR(CheckNotOut(flag.flag, flag.text(), flags.out));
  }
  WEFT_ASSIGN_OR_RETURN(const DemoResult result, UsageError(flags.demo.run()));
  if (!flags.out.empty()) WEFT_RETURN_IF_ERROR(WriteOut(flags.out, flags.overwrite, result.picture));
  std::fputs((flags.json ? PrintJson(result) : PrintText(result)).c_str(), SummaryStream(flags.out));
  return absl::OkStatus();
}

}  // namespace

Command DemoCommand(CLI::App* weft, const std::string& name) {
  auto flags = std::make_shared<DemoFlags>();
  for (Demo& demo : AllDemos()) {
    if (name == absl::StrCat("demo ", demo.name)) flags->demo = std::move(demo);
  }
  WEFT_CHECK(!flags->demo.name.empty());
  return MakeCommand(weft, name,
                     {flags->demo.about,
                      flags->demo.summary,
                      {{"Prints the figures.", absl::StrCat("weft ", name, " ", flags->demo.example)},
                       {"Also draws them.", absl::StrCat("weft ", name, " --out=", flags->demo.name, ".svg")}}},
                     flags, Table, Run);
}

}  // namespace weft
