#include "weft/bench/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "weft/base/status.h"

namespace weft {
namespace {

// Adds a flag that takes a list of values. `parse` converts one word to a value, and returns "" or an error message.
template <class T>
void AddList(CLI::App* app, const std::string& name, const std::string& description, const std::string& type,
             std::vector<T>* values, const std::function<std::string(const std::string& word, T* value)>& parse) {
  const auto set = [=](const std::string& text) {
    values->clear();
    const std::vector<std::string> words = absl::StrSplit(text, ',');
    for (const std::string& word : words) {
      const std::string error = parse(word, &values->emplace_back());
      if (!error.empty()) throw CLI::ValidationError(name, absl::StrCat("'", word, "' ", error));
    }
  };
  app->add_option_function<std::string>(name, set, description)
      ->type_name(absl::StrCat(type, ",..."))
      ->default_str(absl::StrJoin(*values, ","));
}

}  // namespace

void SetUp(CLI::App* app) {
  app->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)->always_capture_default();
}

void AddWholeNumbers(CLI::App* app, const std::string& name, const std::string& description,
                     std::vector<int64_t>* values, int64_t low, int64_t high) {
  AddList<int64_t>(app, name, description, "INT", values, [=](const std::string& word, int64_t* value) -> std::string {
    if (absl::SimpleAtoi(word, value) && *value >= low && *value <= high) return "";
    return absl::StrCat("is not a whole number from ", low, " to ", high);
  });
}

void AddNumbers(CLI::App* app, const std::string& name, const std::string& description, std::vector<double>* values,
                double low, double high) {
  AddList<double>(app, name, description, "FLOAT", values, [=](const std::string& word, double* value) -> std::string {
    if (absl::SimpleAtod(word, value) && *value >= low && *value <= high) return "";
    return absl::StrCat("is not a number from ", low, " to ", high);
  });
}

void AddNames(CLI::App* app, const std::string& name, const std::string& description, std::vector<std::string>* values,
              const std::vector<std::string>& known) {
  const std::string all = absl::StrCat("{", absl::StrJoin(known, ","), "}");
  AddList<std::string>(app, name, description, all, values, [=](const std::string& word, std::string* value) {
    *value = word;
    if (std::count(known.begin(), known.end(), word) > 0) return std::string();
    const std::string nearest = DidYouMean(word, known);
    return absl::StrCat("is not one of ", absl::StrJoin(known, ", "), nearest);
  });
}

void AddProbe(CLI::App* app, bool* wanted) {
  app->add_flag("--probe", *wanted,
                "measure the machine for 0.3 s before and after each round, and leave out rounds below full speed");
}

Rounds MakeRounds(int count, bool probe, int threads) {
  if (!probe) return Rounds(count);
  return Rounds(count, [of_threads = std::make_shared<SpeedProbe>(threads)] { return of_threads->Measure(); });
}

int RunProgram(CLI::App* app, int argc, char** argv, const std::function<int()>& run) {
  const char* const name = app->get_name().c_str();
  try {
    app->parse(argc, argv);
    const int code = run();
    if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return code;
    std::fprintf(stderr, "%s: standard output could not be written\n", name);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app->exit(error);  // --help
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return 2;
  } catch (const std::exception& error) {  // from the standard library, such as std::bad_alloc
    std::fprintf(stderr, "%s: %s\n", name, error.what());
  }
  return 1;
}

}  // namespace weft
