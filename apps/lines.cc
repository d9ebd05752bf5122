#include "weft/apps/lines.h"

#include <cstdio>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "weft/apps/flags.h"
#include "weft/core/file.h"
#include "weft/core/status.h"

namespace weft {
namespace {

using Function = std::function<absl::Status(absl::string_view)>;

absl::Status OfStandardInput(const Function& line) {
  int64_t number = 0;
  for (std::string text; std::getline(std::cin, text);) {
    ++number;
    WEFT_RETURN_IF_ERROR(Failure(Annotate(line(text), absl::StrCat("standard input: line ", number))));
    std::fflush(stdout);
  }
  return std::cin.bad() ? absl::UnavailableError("standard input could not be read") : absl::OkStatus();
}

absl::Status OfFile(const std::string& path, const Function& line) {
  const absl::StatusOr<std::string> contents = ReadFile(path);
  if (!contents.ok()) return UsageError(contents.status());
  if (contents->empty()) return absl::OkStatus();
  int64_t number = 0;
  for (const absl::string_view text : absl::StrSplit(absl::StripSuffix(*contents, "\n"), '\n')) {
    ++number;
    WEFT_RETURN_IF_ERROR(Annotate(line(text), absl::StrCat(path, ": line ", number)));
  }
  return absl::OkStatus();
}

}  // namespace

void AddFiles(CLI::App* app, std::vector<std::string>* files) {
  app->add_option("files", *files, "texts; none: standard input")
      ->type_name("FILE")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

absl::Status ForEachLine(const std::vector<std::string>& files, const Function& line) {
  if (files.empty()) return OfStandardInput(line);
  for (const std::string& path : files) WEFT_RETURN_IF_ERROR(OfFile(path, line));
  return absl::OkStatus();
}

}  // namespace weft
