#include "weft/bench/command_line.h"

#include <cstdio>
#include <exception>

namespace weft {

void SetUp(CLI::App* app) {
  app->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)->always_capture_default();
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
  } catch (const std::exception& error) {  // of the standard library: out of memory
    std::fprintf(stderr, "%s: %s\n", name, error.what());
  }
  return 1;
}

}  // namespace weft
