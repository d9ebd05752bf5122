// Opens a GPT with settings of generation in its files, as `weft generate` does.
#include "weft/apps/use/generator_rows.h"

#include <gtest/gtest.h>

#include "weft/inference/runtime/beam_search.h"
#include "weft/tests/weft_program.h"

namespace weft {
namespace {

class GeneratorRowsTest : public WeftProgramTest {};

// Without early_stopping, a search that the files ask for stops as in transformers. A search that only --beam asks for
// stops when --beam texts are finished.
TEST_F(GeneratorRowsTest, ABeamSearchStopsAsTheFilesSay) {
  MakeRun("run");
  const GivenFlags none = {}, beam = {{"beam", "3"}};
  const struct {
    const char* settings;
    const GivenFlags& given;
    BeamStop wanted;
  } rows[] = {
      {R"({"num_beams": 3})", none, BeamStop::kNoBetter},
      {R"({"num_beams": 3, "early_stopping": false})", none, BeamStop::kNoBetter},
      {R"({"num_beams": 3, "early_stopping": true})", none, BeamStop::kFull},
      {R"({"num_beams": 3, "early_stopping": "never"})", none, BeamStop::kNever},
      {"{}", beam, BeamStop::kFull},
      {R"({"early_stopping": false})", beam, BeamStop::kNoBetter},
      {R"({"early_stopping": "never"})", beam, BeamStop::kNever},
  };
  for (const auto& [settings, given, wanted] : rows) {
    SCOPED_TRACE(settings);
    Write("run/generation_config.json", settings);
    TextGeneratorOptions options = kUsualGeneration;
    if (given.contains("beam")) options.search.beam = 3;  // the command has read its flags
    const absl::StatusOr<OpenedGpt> gpt = OpenForCommand(Path("run"), given, /*beams=*/true, &options);
    ASSERT_TRUE(gpt.ok()) << gpt.status();
    EXPECT_EQ(options.search.beam, 3);
    EXPECT_EQ(options.search.stop, wanted);
  }
}

}  // namespace
}  // namespace weft
