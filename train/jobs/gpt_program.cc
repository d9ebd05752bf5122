#include "weft/train/jobs/gpt_program.h"

#include "weft/models/gpt.h"
#include "weft/ops/ops.h"

namespace weft {

std::unique_ptr<GptProgram> RecordTraining(const GptOptions& options, int64_t rows) {
  auto program = std::make_unique<GptProgram>();
  Tape& tape = program->tape;
  const TensorType windows = {kI32, {rows > 0 ? rows : options.batch, options.model.context}};
  const InputBounds bounds = {.below = options.model.vocabulary};
  program->tokens = tape.Input("tokens", windows, bounds);
  program->targets = tape.Input("targets", windows, bounds);
  if (options.documents == "separate") program->documents = tape.Input("documents", windows);
  const LoraScope lora(&tape, options.lora);
  const Var logits = Gpt(options.model).Logits(program->tokens, /*cache=*/nullptr, program->documents);
  program->training = {.tape = &tape, .loss = CrossEntropy(logits, program->targets)};
  return program;
}

}  // namespace weft
