// `weft fill-mask` prints the tokens that a BERT predicts for masked tokens, with their probabilities.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "weft/apps/commands.h"
#include "weft/apps/flags.h"
#include "weft/apps/streams.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/inference/encode/token_states.h"
#include "weft/text/data/lines.h"

namespace weft {
namespace {

struct FillMaskFlags : ModelFlags {
  int64_t top_k = 5;
  BertEncoderOptions encoder;
};

Hyperparameters Table(FillMaskFlags* flags) {
  BertEncoderOptions& encoder = flags->encoder;
  return {
      ModelRow(
          "a run of weft train bert, or a folder of weft quantize or Hugging Face of a BERT that guesses masked tokens",
          &flags->model),
      {"top-k", "number of tokens to print for each mask", &flags->top_k, {.low = 1, .group = "Output"}},
      {"truncate",
       "cut lines that are longer than the model's context, instead of failing; a line that would lose a mask fails",
       &encoder.truncate,
       {.group = "Data"}},
      BatchRow("maximum number of lines computed at once", &encoder.runtime.batch),
      WeightsRow(&encoder.runtime.weights),
      ThreadsRow(&encoder.runtime.threads),
  };
}

// Prints the candidates for one mask as a JSON array.
void Print(absl::Span<const MaskCandidate> candidates) {
  auto json = nlohmann::ordered_json::array();
  for (const MaskCandidate& each : candidates) {
    json.push_back(
        {{"score", each.score}, {"token", each.token}, {"token_str", each.text}, {"sequence", each.sequence}});
  }
  // A token's text may be a part of a character and so not UTF-8. JsonLine replaces such bytes by U+FFFD.
  std::printf("%s\n", JsonLine(json).c_str());
}

absl::Status FillMask(FillMaskFlags flags) {
  PrintMemoryNote(flags.model);
  WEFT_ASSIGN_OR_RETURN(const auto filler, UsageError(MaskFiller::Open(flags.model, flags.top_k, flags.encoder)));
  const auto encode = [&](absl::string_view line) { return filler->Encode(line); };
  const auto print = [&](const TextLines&, absl::Span<const TokenIds> texts) { return filler->Fill(texts, Print); };
  return AnswerLines(flags.files, kBatchesAtOnce * static_cast<size_t>(flags.encoder.runtime.batch), encode, print);
}

}  // namespace

Command FillMaskCommand(CLI::App* weft, const std::string& name) {
  return MakeCommand(
      weft, name,
      {"Prints the most likely tokens for each mask in each line of text. A mask is written as the model's mask token "
       "([MASK]). The output is a JSON array for each mask, of objects with score (the probability), token (its id), "
       "token_str and sequence (the line with the token in the mask's place).",
       "prints the most likely tokens for each mask in a text",
       {{"Prints the 5 most likely tokens.", "echo 'In the [MASK] was the word.' | weft fill-mask --model=runs/bert-1"},
        {"Prints the most likely token for each mask in a file.",
         "weft fill-mask --model=runs/bert-1 --top-k=1 masked.txt"}}},
      std::make_shared<FillMaskFlags>(), Table, FillMask, &FillMaskFlags::files);
}

}  // namespace weft
