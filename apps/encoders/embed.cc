// `weft embed` prints sentence embeddings.
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/apps/commands.h"
#include "weft/apps/flags.h"
#include "weft/apps/lines.h"
#include "weft/core/json.h"
#include "weft/core/status.h"
#include "weft/formats/weights.h"
#include "weft/inference/bert_encoder.h"

namespace weft {
namespace {

struct EmbedFlags {
  std::string model;
  bool truncate = false;
  int64_t threads = 0;
  std::vector<std::string> files;
  GivenFlags given;
};

Hyperparameters Table(EmbedFlags* flags) {
  return {
      {"model", "a folder with the config.json, model.safetensors and tokenizer of a BERT, or a run", &flags->model},
      {"truncate", "cut lines that are longer than the model's context, instead of failing", &flags->truncate},
      {"threads", "number of threads; 0: one for each core", &flags->threads, {.low = 0, .high = 1024}},
  };
}

absl::StatusOr<std::unique_ptr<BertEncoder>> OpenEncoder(const EmbedFlags& flags) {
  WEFT_ASSIGN_OR_RETURN(OpenedBert bert, OpenBert(flags.model));
  WEFT_ASSIGN_OR_RETURN(const Pooling pooling, ReadPooling(flags.model, bert.model.config.width));
  return BertEncoder::Create(std::move(bert), {.truncate = flags.truncate, .threads = flags.threads},
                             [pooling](const Bert& model, Var tokens, Var lengths) {
                               const Var hidden = model.Encode(tokens, {.lengths = lengths});
                               return model.SentenceEmbedding(hidden, lengths, pooling);
                             });
}

absl::Status Embed(EmbedFlags flags) {
  WEFT_RETURN_IF_ERROR(SetFromFlags(flags.given, Table(&flags)));
  if (flags.model.empty()) return absl::InvalidArgumentError("--model=FOLDER is missing");
  const absl::StatusOr<std::unique_ptr<BertEncoder>> encoder = OpenEncoder(flags);
  if (!encoder.ok()) return UsageError(encoder.status());
  return ForEachLine(flags.files, [&](absl::string_view line) -> absl::Status {
    WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, (*encoder)->Tokens(line));
    const absl::StatusOr<std::vector<std::vector<float>>> embeddings = (*encoder)->Run({ids});
    if (!embeddings.ok()) return Failure(embeddings.status());
    std::printf("%s\n", JsonArray((*embeddings)[0]).c_str());
    return absl::OkStatus();
  });
}

}  // namespace

Command EmbedCommand(CLI::App* weft) {
  auto flags = std::make_shared<EmbedFlags>();
  CLI::App* app =
      AddCommand(weft, "embed",
                 "Prints a sentence embedding, a JSON array of numbers whose squares sum to 1, for each line of text.");
  AddFlags(app, Table(flags.get()), &flags->given);
  AddFiles(app, &flags->files);
  return {"weft embed", app, [flags] { return Embed(*flags); }};
}

}  // namespace weft
