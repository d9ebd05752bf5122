// Opens the models of a server.
#include <utility>
#include <variant>

#include "weft/apps/serve/engine.h"
#include "weft/apps/use/generator_rows.h"
#include "weft/base/status.h"
#include "weft/formats/weights.h"

namespace weft {
namespace {

absl::Status AddGpt(TextGeneratorOptions options, ServedModel* served) {
  options.slide = false;
  WEFT_ASSIGN_OR_RETURN(OpenedGpt gpt, OpenForCommand(served->path, /*given=*/{}, /*beams=*/false, &options));
  served->kind = "gpt";
  served->context = gpt.model.config.context;
  served->tasks = {"completions", "attention"};
  WEFT_ASSIGN_OR_RETURN(served->chat, ReadChatTemplate(gpt.tokenizer_path, *gpt.tokenizer));
  if (served->chat) served->tasks.emplace_back("chat");
  WEFT_ASSIGN_OR_RETURN(served->generator, TextGenerator::Create(std::move(gpt), options));
  return absl::OkStatus();
}

absl::Status AddBert(const RuntimeOptions& runtime, ServedModel* served) {
  served->kind = "bert";
  served->tasks = {"embeddings", "attention"};
  WEFT_ASSIGN_OR_RETURN(served->encoder, OpenSentenceEncoder(served->path, {.runtime = runtime}));
  served->context = served->encoder->config().context;
  WEFT_ASSIGN_OR_RETURN(OpenedBert bert, OpenBert(served->path));
  auto head = TextHead::Create(std::move(bert), {.runtime = runtime});
  if (absl::IsUnimplemented(head.status())) return absl::OkStatus();
  if (!head.ok()) return head.status();
  served->head = *std::move(head);
  served->tasks.emplace_back("classify");
  return absl::OkStatus();
}

absl::Status AddTransformer(const RuntimeOptions& runtime, ServedModel* served) {
  served->kind = "transformer";
  served->tasks = {"translate", "attention"};
  WEFT_ASSIGN_OR_RETURN(OpenedTransformer opened, OpenTransformer(served->path));
  served->context = opened.model.config.context;
  served->search = opened.search;
  const LineTranslatorOptions options = {.search = opened.search, .runtime = runtime};
  WEFT_ASSIGN_OR_RETURN(served->translator, LineTranslator::Create(std::move(opened), options));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ServedModel>> OpenServedModel(const std::string& name, const std::string& path,
                                                             TextGeneratorOptions options) {
  auto served = std::make_unique<ServedModel>(ServedModel{.name = name, .path = path});
  const RuntimeOptions runtime = options.runtime;
  WEFT_ASSIGN_OR_RETURN(const PublishedModel model, ReadModel(path));
  if (std::holds_alternative<PublishedGpt>(model)) {
    WEFT_RETURN_IF_ERROR(AddGpt(std::move(options), served.get()));
  } else if (std::holds_alternative<PublishedBert>(model)) {
    WEFT_RETURN_IF_ERROR(AddBert(runtime, served.get()));
  } else if (std::holds_alternative<PublishedTransformer>(model)) {
    WEFT_RETURN_IF_ERROR(AddTransformer(runtime, served.get()));
  } else {
    return InvalidArgument(path, ": a server answers with a GPT, a BERT or an encoder-decoder, but this is a ViT");
  }
  return served;
}

}  // namespace weft
