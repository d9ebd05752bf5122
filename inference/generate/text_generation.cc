// Each prompt has a TextStream, which holds back text that later tokens may change or that may begin the stop text.
#include "weft/inference/generate/text_generation.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "weft/base/status.h"
#include "weft/formats/weights.h"
#include "weft/text/tokenizers/text_stream.h"

namespace weft {
namespace {

constexpr char kLine[] = "{}";  // stands for the person's line in ChatOptions::turn

// Returns InvalidArgument unless both tokenizers have the same number of tokens, with the same texts.
absl::Status CheckSameTokens(const Tokenizer& tokenizer, const Tokenizer& draft, const std::string& path) {
  const int32_t tokens = tokenizer.vocabulary_size(), others = draft.vocabulary_size();
  if (tokens != others) {
    return InvalidArgument("draft-model: ", path, " has a tokenizer of ", others, " tokens, but the model's has ",
                           tokens, "; wanted a model with the same tokens");
  }
  for (int32_t id = 0; id < tokens; ++id) {
    const std::string text = tokenizer.TokenText(id), other = draft.TokenText(id);
    if (text == other) continue;
    return InvalidArgument("draft-model: ", path, " has '", other, "' as token ", id, ", but the model has '", text,
                           "'; wanted a model with the same tokens");
  }
  return absl::OkStatus();
}

// Gives `sink` a token, with the text that later tokens can't change any more. Returns whether the text continues.
template <class Sink>
absl::StatusOr<bool> Give(GeneratedToken generated, const Sink& sink, TextStream* stream) {
  WEFT_ASSIGN_OR_RETURN(generated.text, stream->Add(generated.token));
  generated.withheld = stream->withheld();
  return sink(generated) && !stream->stopped();
}

}  // namespace

absl::StatusOr<std::unique_ptr<TextGenerator>> TextGenerator::Create(OpenedGpt gpt,
                                                                     const TextGeneratorOptions& options) {
  auto generator = std::unique_ptr<TextGenerator>(new TextGenerator(options, std::move(gpt)));
  const OpenedGpt& opened = generator->gpt_;
  opened.tokenizer->ReadSpecial(options.special_tokens);
  GenerateOptions& generate = generator->options_.generate;
  std::vector<int32_t> ends = opened.settings.end;
  if (options.end_tokens) {
    WEFT_ASSIGN_OR_RETURN(ends, EndTokens(*opened.tokenizer, *options.end_tokens));
  }
  generate.stop.insert(generate.stop.end(), ends.begin(), ends.end());
  generate.slide = options.slide.value_or(!opened.settings.published);
  generate.vocabulary = opened.tokenizer->vocabulary_size();
  WEFT_RETURN_IF_ERROR(ValidateLogitBias(generate.sampling, generate.vocabulary));
  WEFT_RETURN_IF_ERROR(ProvideFiniteWeights(opened.path, opened.model.weights, &generator->parameters_));
  const GptConfig& config = opened.model.config;
  const int64_t beam = options.search.beam;
  const GeneratorOptions how = {
      .runtime = options.runtime,
      .pages = beam > 0 ? config.context + beam * std::min(generate.length, config.context) : 0,
      .keep = true,
      .search = options.search};
  WEFT_ASSIGN_OR_RETURN(generator->generator_, Generator::Create(config, &generator->parameters_, how));
  if (beam == 0 && !options.draft_model.empty()) WEFT_RETURN_IF_ERROR(generator->OpenDraft());
  return generator;
}

absl::Status TextGenerator::OpenDraft() {
  constexpr int64_t kDefaultDraft = 4;
  const std::string& path = options_.draft_model;
  WEFT_ASSIGN_OR_RETURN(const OpenedGpt draft, Annotate(OpenGpt(path, options_.tokenizer), "draft-model"));
  WEFT_RETURN_IF_ERROR(CheckSameTokens(*gpt_.tokenizer, *draft.tokenizer, path));
  WEFT_RETURN_IF_ERROR(ProvideFiniteWeights(path, draft.model.weights, &draft_parameters_));
  WEFT_ASSIGN_OR_RETURN(draft_, ModelDraft::Create(draft.model.config, &draft_parameters_, options_.runtime));
  options_.generate.drafter = draft_.get();
  if (options_.generate.draft == 0) options_.generate.draft = kDefaultDraft;
  return absl::OkStatus();
}

std::string TextGenerator::TokenText(int32_t token) const {
  const std::string once = gpt_.tokenizer->TokenText(token);
  const std::string twice = gpt_.tokenizer->DecodeWithSpecial({token, token}).value_or("");
  // Decoding replaces bytes that are no characters by U+FFFD, which may begin with the same bytes.
  return absl::StartsWith(twice, once) && !absl::StrContains(twice, "\uFFFD") ? twice.substr(once.size()) : once;
}

absl::StatusOr<std::vector<int32_t>> TextGenerator::Encode(absl::string_view prompt) const {
  WEFT_ASSIGN_OR_RETURN(std::vector<int32_t> ids, PromptTokens(gpt_, prompt));
  const int64_t count = static_cast<int64_t>(ids.size()), context = gpt_.model.config.context;
  if (const int64_t whole = options_.generate.max_length; whole > 0 && count >= whole) {
    return InvalidArgument("it has ", count, " tokens, but max_length is ", whole,
                           ", prompt included; give the length of the continuation");
  }
  if (count <= context || options_.generate.truncate) return ids;
  return InvalidArgument("it has ", count, " tokens, but the model's context is ", context,
                         "; truncate would take its end");
}

absl::Status TextGenerator::Continue(absl::Span<const std::vector<int32_t>> prompts, TokenSink sink) {
  std::vector<TextStream> streams;
  std::vector<std::vector<int32_t>> fitting(prompts.begin(), prompts.end());
  const bool slides = options_.generate.slide && options_.search.beam == 0;
  for (std::vector<int32_t>& prompt : fitting) {
    streams.emplace_back(*gpt_.tokenizer, prompt, options_.stop);
    if (slides || static_cast<int64_t>(prompt.size()) <= context()) continue;
    // `truncate` is set. The end of the prompt leaves room for the continuation, too.
    const int64_t kept = context() - std::min(options_.generate.length, context() / 2);
    prompt.erase(prompt.begin(), prompt.end() - kept);
  }
  absl::Status status;
  const auto take = [&](const GeneratedToken& generated) {
    const absl::StatusOr<bool> more = Give(generated, sink, &streams[generated.prompt]);
    status.Update(more.status());
    return more.ok() && *more;
  };
  WEFT_RETURN_IF_ERROR(generator_->Generate(fitting, options_.generate, take).status());
  for (size_t i = 0; i < streams.size(); ++i) sink({.prompt = i, .text = streams[i].Finish()});
  return status;
}

absl::StatusOr<size_t> TextGenerator::Add(ContinuationRequest request) {
  const auto stream = std::make_shared<TextStream>(*gpt_.tokenizer, request.prompt, std::move(request.stop));
  // Each token has a text, since GenerateOptions::vocabulary leaves out those without one.
  const auto take = [stream, sink = std::move(request.sink)](const GeneratedToken& generated) {
    return Give(generated, sink, stream.get()).value_or(false);
  };
  const auto end = [stream, ended = std::move(request.ended)](TextEnd reason) {
    const std::string rest = stream->Finish();  // first, because it can find a stop text
    ended(stream->stopped() ? TextEnd::kStop : reason, rest);
  };
  return generator_->Add({std::move(request.prompt), std::move(request.generate), take, end});
}

absl::StatusOr<std::unique_ptr<Chat>> Chat::Create(OpenedGpt gpt, const ChatOptions& options) {
  auto chat = std::unique_ptr<Chat>(new Chat(options));
  std::optional<std::string>& turn = chat->options_.turn;
  if (!turn.has_value() && options.beginning.empty()) {
    WEFT_ASSIGN_OR_RETURN(chat->template_, ReadChatTemplate(gpt.tokenizer_path, *gpt.tokenizer));
  }
  if (!options.system.empty() && !chat->template_.has_value()) {
    return InvalidArgument("system: it needs a model with a chat template, and neither turn nor beginning");
  }
  TextGeneratorOptions generator = options.generator;
  if (!chat->template_.has_value()) {
    if (!turn.has_value()) turn = "\n{}\n";
    const size_t at = turn->find(kLine);
    if (at == 0 || at == std::string::npos || at != turn->rfind(kLine)) {
      return InvalidArgument("turn: '", *turn, "' must have one {}, and a text before it");
    }
    generator.stop.push_back(turn->substr(0, at));
  }
  generator.generate.truncate = true;
  generator.runtime.batch = 1;
  WEFT_ASSIGN_OR_RETURN(chat->generator_, TextGenerator::Create(std::move(gpt), generator));
  const bool system = !options.system.empty();
  const char* const name = system ? "system" : "beginning";
  WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> beginning,
                        Annotate(chat->generator_->Encode(system ? options.system : options.beginning), name));
  const int64_t half = chat->generator_->context() / 2, tokens = static_cast<int64_t>(beginning.size());
  if (tokens > half) {
    return InvalidArgument(name, ": it has ", tokens, " tokens, but may fill only half of the context, ", half);
  }
  return chat;
}

absl::StatusOr<std::string> Chat::TextFrom(size_t first, bool answers) const {
  if (!template_.has_value()) {
    std::string text = turns_.empty() ? "" : options_.beginning;
    for (size_t i = first; i < turns_.size(); ++i) {
      absl::StrAppend(&text, absl::StrReplaceAll(*options_.turn, {{kLine, turns_[i].line}}), turns_[i].answer);
    }
    // A conversation does not begin with the break between two turns.
    return options_.beginning.empty() ? std::string(absl::StripPrefix(text, "\n")) : text;
  }
  if (turns_.empty()) return "";
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  const auto add = [&](const char* role, const std::string& text) {
    const bool marks = answers && marks_special();
    messages.push_back(
        {{"role", role}, {"content", marks ? MarkSpecialTokens(text, *generator_->gpt().tokenizer) : text}});
  };
  if (!options_.system.empty()) add("system", options_.system);
  for (size_t i = first; i < turns_.size(); ++i) {
    add("user", turns_[i].line);
    if (!answers || i + 1 < turns_.size()) add("assistant", turns_[i].answer);
  }
  return template_->Render(messages, answers);
}

absl::StatusOr<std::vector<int32_t>> Chat::TokensFrom(size_t first) const {
  WEFT_ASSIGN_OR_RETURN(const std::string text, TextFrom(first, /*answers=*/true));
  if (!template_.has_value()) return generator_->Encode(text);
  const Tokenizer& tokenizer = *generator_->gpt().tokenizer;
  return marks_special() ? EncodeMarked(text, tokenizer) : tokenizer.Encode(text);
}

void Chat::Clear() {
  turns_.clear();
  forgotten_ = 0;
}

absl::StatusOr<std::vector<int32_t>> Chat::AddTurn(absl::string_view line) {
  WEFT_RETURN_IF_ERROR(generator_->Encode(line).status());  // an error tells the place in the line, not in the text
  turns_.push_back({std::string(line), ""});
  absl::StatusOr<std::vector<int32_t>> tokens = TokensFrom(forgotten_);
  if (!tokens.ok()) {
    turns_.pop_back();
    return tokens;
  }
  const int64_t context = generator_->context(), room = std::min(options_.generator.generate.length, context / 4);
  if (static_cast<int64_t>(tokens->size()) <= context - room) return tokens;
  while (static_cast<int64_t>(tokens->size()) > context / 2 && forgotten_ + 1 < turns_.size()) {
    // The text is a part of one that was encoded, so it can be encoded, too.
    WEFT_ASSIGN_OR_RETURN(*tokens, TokensFrom(++forgotten_));
  }
  return tokens;
}

absl::Status Chat::Answer(absl::string_view line, TokenSink sink) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, AddTurn(line));
  return generator_->Continue({tokens}, [&](const GeneratedToken& generated) {
    turns_.back().answer += generated.text;
    return sink(generated);
  });
}

}  // namespace weft
