// Opens the models of a server.
#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "weft/apps/serve/engine.h"
#include "weft/apps/use/generator_rows.h"
#include "weft/base/status.h"
#include "weft/formats/model_formats.h"
#include "weft/formats/weights.h"

namespace weft {
namespace {

// Each of these functions opens the parts of a served model of one family.
absl::Status AddGpt(const TextGeneratorOptions& given, ServedModel* served) {
  TextGeneratorOptions options = given;
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

absl::Status AddBert(const TextGeneratorOptions& options, ServedModel* served) {
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

absl::Status AddTransformer(const TextGeneratorOptions& options, ServedModel* served) {
  served->kind = "transformer";
  served->tasks = {"translate", "attention"};
  TranslationOptions translation = {.options = {.runtime = options.runtime}};
  WEFT_ASSIGN_OR_RETURN(served->translator, OpenTranslator(served->path, /*given=*/{}, &translation));
  served->context = served->translator->context();
  served->search = translation.options.search;
  return absl::OkStatus();
}

constexpr std::pair<const ModelFamily*, absl::Status (*)(const TextGeneratorOptions&, ServedModel*)> kFamilies[] = {
    {&PublishedGpt::kFamily, AddGpt},
    {&PublishedBert::kFamily, AddBert},
    {&PublishedTransformer::kFamily, AddTransformer}};

}  // namespace

absl::StatusOr<std::unique_ptr<ServedModel>> OpenServedModel(const std::string& name, const std::string& path,
                                                             const TextGeneratorOptions& options) {
  auto served = std::make_unique<ServedModel>(ServedModel{.name = name, .path = path});
  WEFT_ASSIGN_OR_RETURN(const ModelFamily* const family, FindFamily(path));
  const auto row = absl::c_find_if(kFamilies, [&](const auto& each) { return each.first == family; });
  if (row == std::end(kFamilies)) {
    return InvalidArgument(path, ": a server answers with a GPT, a BERT or an encoder-decoder, but this is ",
                           family->name);
  }
  WEFT_RETURN_IF_ERROR(row->second(options, served.get()));
  return served;
}

}  // namespace weft
