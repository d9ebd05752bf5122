// Opens the models of a server.
#include <utility>
#include <variant>

#include "weft/apps/serve/engine.h"
#include "weft/apps/use/generator_rows.h"
#include "weft/base/status.h"
#include "weft/formats/weights.h"

namespace weft {
namespace {

// Each of these functions opens the parts of a served model of one family, or refuses the family.
absl::Status Add(const PublishedGpt&, TextGeneratorOptions options, ServedModel* served) {
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

absl::Status Add(const PublishedBert&, const TextGeneratorOptions& options, ServedModel* served) {
  served->kind = "bert";
  served->tasks = {"embeddings", "attention"};
  WEFT_ASSIGN_OR_RETURN(served->encoder, OpenSentenceEncoder(served->path, {.runtime = options.runtime}));
  served->context = served->encoder->config().context;
  WEFT_ASSIGN_OR_RETURN(OpenedBert bert, OpenBert(served->path));
  auto head = TextHead::Create(std::move(bert), {.runtime = options.runtime});
  if (absl::IsUnimplemented(head.status())) return absl::OkStatus();
  if (!head.ok()) return head.status();
  served->head = *std::move(head);
  served->tasks.emplace_back("classify");
  return absl::OkStatus();
}

absl::Status Add(const PublishedTransformer&, const TextGeneratorOptions& options, ServedModel* served) {
  served->kind = "transformer";
  served->tasks = {"translate", "attention"};
  WEFT_ASSIGN_OR_RETURN(OpenedTransformer opened, OpenTransformer(served->path));
  served->context = opened.model.config.context;
  served->search = opened.search;
  const LineTranslatorOptions how = {.search = opened.search, .runtime = options.runtime};
  WEFT_ASSIGN_OR_RETURN(served->translator, LineTranslator::Create(std::move(opened), how));
  return absl::OkStatus();
}

absl::Status Add(const PublishedVit&, const TextGeneratorOptions&, ServedModel* served) {
  return InvalidArgument(served->path,
                         ": a server answers with a GPT, a BERT or an encoder-decoder, but this is a ViT");
}

}  // namespace

absl::StatusOr<std::unique_ptr<ServedModel>> OpenServedModel(const std::string& name, const std::string& path,
                                                             const TextGeneratorOptions& options) {
  auto served = std::make_unique<ServedModel>(ServedModel{.name = name, .path = path});
  WEFT_ASSIGN_OR_RETURN(const PublishedModel model, ReadModel(path));
  WEFT_RETURN_IF_ERROR(std::visit([&](const auto& each) { return Add(each, options, served.get()); }, model));
  return served;
}

}  // namespace weft
