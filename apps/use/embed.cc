// `weft embed` prints sentence embeddings.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "weft/apps/commands.h"
#include "weft/apps/flags.h"
#include "weft/apps/streams.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/inference/encode/bert_encoder.h"
#include "weft/text/data/lines.h"

namespace weft {
namespace {

struct EmbedFlags : ModelFlags {
  std::string prompt_name;
  BertEncoderOptions encoder;
};

Hyperparameters Table(EmbedFlags* flags) {
  return {
      ModelRow("a folder with the config.json, model.safetensors and tokenizer of a BERT, or a run", &flags->model),
      TruncateRow(&flags->encoder.truncate),
      {"prompt-name",
       "name of the text in config_sentence_transformers.json that comes before each line; without it, the folder's "
       "default_prompt_name",
       &flags->prompt_name,
       {.group = "Data", .type = "NAME"}},
      SpecialTokensRow(&flags->encoder.special_tokens, "Data"),
      WeightsRow(&flags->encoder.runtime.weights),
      ThreadsRow(&flags->encoder.runtime.threads),
  };
}

absl::Status Embed(EmbedFlags flags) {
  PrintMemoryNote(flags.model);
  WEFT_ASSIGN_OR_RETURN(const auto encoder,
                        UsageError(OpenSentenceEncoder(flags.model, flags.encoder, flags.prompt_name)));
  return ForEachLine(flags.files, [&](absl::string_view line) -> absl::Status {
    WEFT_ASSIGN_OR_RETURN(const TokenIds ids, encoder->Tokens(line));
    WEFT_ASSIGN_OR_RETURN(const std::vector<float> embedding, Failure(encoder->Run(ids)));
    std::printf("%s\n", JsonArray(embedding).c_str());
    return absl::OkStatus();
  });
}

}  // namespace

Command EmbedCommand(CLI::App* weft, const std::string& name) {
  return MakeCommand(
      weft, name,
      {"Prints a sentence embedding, a JSON array of numbers whose squares sum to 1, for each line of text.",
       "prints a sentence embedding for each line of text",
       {{"Writes an embedding for each line of a file.", "weft embed --model=minilm sentences.txt > vectors.jsonl"},
        {"Prints the embedding of one sentence.", "echo 'A dog runs.' | weft embed --model=minilm"}}},
      std::make_shared<EmbedFlags>(), Table, Embed, &EmbedFlags::files);
}

}  // namespace weft
