#include "weft/apps/flags.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "weft/base/status.h"

namespace weft {
namespace {

TEST(FlagsTest, ErrorsOfTheLibraryNameFlags) {
  CLI::App app;
  double top_p = 1;
  std::string data;
  GivenFlags given;
  AddFlags(&app, {{"top-p", "", &top_p}, {"data", "", &data}}, &given);
  const struct {
    const char *message, *shown;
  } kCases[] = {
      {"data: no file was given", "--data: no file was given"},
      {"top_p is 2, wanted a number in (0, 1]", "--top-p is 2, wanted a number in (0, 1]"},
      {"top_p: it is 2", "--top-p: it is 2"},
      {"data is missing", "data is missing"},  // an ordinary word
      {"min_p is 2", "min_p is 2"},            // no flag of this command
      {"data", "data"},
  };
  for (const auto& [message, shown] : kCases) {
    EXPECT_EQ(WithFlag(InvalidArgument(message), app, {{"data", "--data"}}).message(), shown);
  }
  EXPECT_EQ(WithFlag(InvalidArgument("top_p is 2"), app, {{"top-p", "--sampling-topp"}}).message(),
            "--sampling-topp (--top-p) is 2");
}

}  // namespace
}  // namespace weft
