// Each prompt has a TextStream, which holds back text that later tokens may change or that may begin the stop text.
#include "weft/inference/text_generation.h"

#include <utility>

#include "weft/core/status.h"
#include "weft/formats/weights.h"
#include "weft/text/text_stream.h"

namespace weft {

TextGenerator::TextGenerator(const TextGeneratorOptions& options, OpenedGpt gpt)
    : options_(options), gpt_(std::move(gpt)) {
  const SpecialTokens& special = gpt_.tokenizer->special_tokens();
  for (const auto& id : {special.end, special.begin}) {
    if (id.has_value()) options_.generate.stop.push_back(*id);
  }
}

absl::StatusOr<std::unique_ptr<TextGenerator>> TextGenerator::Open(const std::string& path,
                                                                   const TextGeneratorOptions& options) {
  WEFT_ASSIGN_OR_RETURN(OpenedGpt gpt, OpenGpt(path, options.tokenizer));
  auto generator = std::unique_ptr<TextGenerator>(new TextGenerator(options, std::move(gpt)));
  WEFT_RETURN_IF_ERROR(ProvideFiniteWeights(path, generator->gpt_.model.weights, &generator->parameters_));
  WEFT_ASSIGN_OR_RETURN(
      generator->generator_,
      Generator::Create(generator->gpt_.model.config, &generator->parameters_,
                        {.batch = options.batch, .threads = options.threads, .weights = options.weights}));
  return generator;
}

absl::StatusOr<std::vector<int32_t>> TextGenerator::Encode(absl::string_view prompt) const {
  WEFT_ASSIGN_OR_RETURN(std::vector<int32_t> ids, PromptTokens(*gpt_.tokenizer, prompt));
  const int64_t count = static_cast<int64_t>(ids.size()), context = gpt_.model.config.context;
  if (count <= context || options_.generate.truncate) return ids;
  return InvalidArgument("it has ", count, " tokens, but the model's context is ", context,
                         "; truncate would take its end");
}

std::string TextGenerator::TokenText(int32_t token) const {
  return gpt_.tokenizer->DecodeWithSpecial({token}).value_or("");
}

absl::Status TextGenerator::Continue(absl::Span<const std::vector<int32_t>> prompts, Sink sink) {
  std::vector<TextStream> streams;
  for (const std::vector<int32_t>& prompt : prompts) streams.emplace_back(*gpt_.tokenizer, prompt, options_.stop);
  absl::Status status;
  const auto take = [&](const GeneratedToken& generated) {
    const auto [i, token] = std::pair(generated.prompt, generated.token);
    // The token table may have more rows than the tokenizer has tokens. Tokens of such rows have no text.
    const bool known = token < gpt_.tokenizer->vocabulary_size();
    const absl::StatusOr<std::string> text = known ? streams[i].Add(token) : std::string();
    if (!text.ok()) {
      status = text.status();
      return false;
    }
    sink(i, *text, &generated);
    return !streams[i].stopped();
  };
  WEFT_RETURN_IF_ERROR(generator_->Generate(prompts, options_.generate, take).status());
  for (size_t i = 0; i < streams.size(); ++i) sink(i, streams[i].Finish(), nullptr);
  return status;
}

}  // namespace weft
