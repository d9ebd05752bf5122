#include "weft/apps/serve/completions.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "weft/apps/serve/json_fields.h"
#include "weft/apps/use/generator_rows.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/options/hyperparameters.h"
#include "weft/text/utf8.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;
using Tokens = std::vector<int32_t>;

constexpr int64_t kMaxTexts = 256, kMaxLogprobs = 20;
constexpr size_t kMaxStops = 16, kMaxStopBytes = 256;
// Maximum number of tokens and log-probabilities in an answer: about 100 MB of JSON.
constexpr int64_t kMaxAnswerNumbers = 1 << 18;

// Returns the text of a message's content: a string, or an array of parts {"type": "text", "text": ...}.
absl::StatusOr<std::string> ContentOf(const Json& message, const std::string& where) {
  const auto content = message.find("content");
  if (content != message.end() && content->is_string()) return content->get<std::string>();
  std::string text;
  if (content == message.end() || !content->is_array()) {
    return FieldError(where + ".content", "wanted a string, or an array of parts of the type text");
  }
  for (const Json& part : *content) {
    if (!part.is_object() || part.value("type", Json()) != "text" || !part.value("text", Json()).is_string()) {
      return FieldError(where + ".content", "this server reads parts of the type text only");
    }
    text += part["text"].get<std::string>();
  }
  return text;
}

// Returns the tokens of a conversation in the form of the chat template, up to where the model's answer begins. The
// texts of special tokens in messages are ordinary text.
absl::StatusOr<Tokens> ChatPromptOf(JsonFields* fields, const ServedModel& model) {
  const Tokenizer& tokenizer = *model.generator->gpt().tokenizer;
  const auto marked = [&](const std::string& text) { return MarkSpecialTokens(text, tokenizer); };
  const Json* const field = fields->Any("messages");
  if (field == nullptr || !field->is_array() || field->empty()) {
    return FieldError("messages", "wanted an array of at least one message");
  }
  Json messages = Json::array();
  for (size_t i = 0; i < field->size(); ++i) {
    const std::string where = absl::StrCat("messages[", i, "]");
    const Json& message = (*field)[i];
    if (!message.is_object() || !message.value("role", Json()).is_string()) {
      return FieldError(where, R"(wanted an object with "role" and "content")");
    }
    WEFT_ASSIGN_OR_RETURN(const std::string content, ContentOf(message, where));
    messages.push_back({{"role", marked(message["role"].get<std::string>())}, {"content", marked(content)}});
    for (const auto& [name, value] : message.items()) {
      if (name == "role" || name == "content" || name == "name" || value.is_null()) continue;
      return FieldError(absl::StrCat(where, ".", name), "this server does not support it");
    }
  }
  const absl::StatusOr<std::string> text = model.chat->Render(messages, /*answers=*/true);
  if (!text.ok()) return FieldError("messages", text.status().message());
  absl::StatusOr<Tokens> tokens = EncodeMarked(*text, tokenizer);
  if (!tokens.ok()) return FieldError("messages", tokens.status().message());
  if (static_cast<int64_t>(tokens->size()) <= model.context) return tokens;
  return FieldError("messages", absl::StrCat("the messages have ", tokens->size(),
                                             " tokens, but the model's context is ", model.context));
}

absl::Status ReadSampling(JsonFields* fields, const ServedModel& model, SamplingOptions* sampling) {
  const auto excluded = std::exchange(sampling->logit_bias, {});  // the model never generates these tokens
  for (const Hyperparameter& row : SamplingRows(sampling)) {
    absl::Status status;
    const auto take = [&](const Json& field) {
      if (row.is_text() ? !field.is_object() : !field.is_number()) return false;
      status = SetFromText(JsonLine(field), row);
      return true;
    };
    const char* const wanted = row.is_text() ? "an object with a number for each token" : "a number";
    WEFT_RETURN_IF_ERROR(fields->Read(row.key().c_str(), wanted, take));
    if (row.is_text()) status.Update(ValidateLogitBias(*sampling, model.generator->gpt().model.config.vocabulary));
    if (!status.ok()) return FieldError(row.key(), absl::StripPrefix(status.message(), row.flag + ": "));
  }
  sampling->logit_bias.insert(sampling->logit_bias.begin(), excluded.begin(), excluded.end());
  if (sampling->temperature > 100) return FieldError("temperature", "wanted a number from 0 to 100");
  auto seed = static_cast<int64_t>(sampling->seed);
  WEFT_RETURN_IF_ERROR(fields->Whole("seed", INT64_MIN, INT64_MAX, &seed));
  sampling->seed = static_cast<uint64_t>(seed);
  return absl::OkStatus();
}

// Reads `logprobs`, and for chat `top_logprobs`.
absl::Status ReadLogprobs(JsonFields* fields, Completion* completion) {
  if (!completion->chat) return fields->Whole("logprobs", 0, kMaxLogprobs, &completion->logprobs);
  bool logprobs = false;
  int64_t top = 0;
  WEFT_RETURN_IF_ERROR(fields->Bool("logprobs", &logprobs));
  WEFT_RETURN_IF_ERROR(fields->Whole("top_logprobs", 0, kMaxLogprobs, &top));
  if (top > 0 && !logprobs) return FieldError("top_logprobs", "it needs logprobs = true");
  completion->logprobs = logprobs ? top : -1;
  return absl::OkStatus();
}

std::string Reason(TextEnd end) { return end == TextEnd::kStop || end == TextEnd::kSink ? "stop" : "length"; }

Json Bytes(const std::string& text) { return std::vector<uint8_t>(text.begin(), text.end()); }

}  // namespace

absl::StatusOr<Completion> ParseCompletion(const Json& request, const ServedModel& model, bool chat,
                                           int64_t max_tokens) {
  constexpr int64_t kDefaultLength = 16;  // of completions, as OpenAI's
  Completion completion = {{.chat = chat}};
  JsonFields fields(&request);
  std::vector<Tokens> prompts;
  if (chat) {
    WEFT_ASSIGN_OR_RETURN(prompts.emplace_back(), ChatPromptOf(&fields, model));
  } else {
    const TextGenerator& generator = *model.generator;
    const TokenReader reader = {[&](const std::string& text) { return generator.Encode(text); }, model.context,
                                generator.gpt().model.config.vocabulary};
    WEFT_RETURN_IF_ERROR(fields.Tokens("prompt", kMaxTexts, reader, &prompts));
  }
  GenerateOptions generate = model.generator->options().generate;
  WEFT_RETURN_IF_ERROR(ReadSampling(&fields, model, &generate.sampling));
  const int64_t usual = chat ? model.context : kDefaultLength;
  generate.length = std::min(model.generator->gpt().settings.max_new_tokens.value_or(usual), max_tokens);
  WEFT_RETURN_IF_ERROR(fields.Whole("max_tokens", 1, max_tokens, &generate.length));
  if (chat) WEFT_RETURN_IF_ERROR(fields.Whole("max_completion_tokens", 1, max_tokens, &generate.length));
  WEFT_RETURN_IF_ERROR(ReadLogprobs(&fields, &completion));
  generate.logprobs = std::min(completion.logprobs, model.generator->gpt().model.config.vocabulary);
  std::vector<std::string> stop;
  WEFT_RETURN_IF_ERROR(fields.Texts("stop", kMaxStops, &stop));
  if (absl::c_any_of(stop, [](const std::string& text) { return text.size() > kMaxStopBytes; })) {
    return FieldError("stop", absl::StrCat("a text has more than ", kMaxStopBytes, " bytes"));
  }
  int64_t n = 1;
  WEFT_RETURN_IF_ERROR(fields.Whole("n", 1, kMaxTexts / static_cast<int64_t>(prompts.size()), &n));
  const int64_t texts = n * static_cast<int64_t>(prompts.size()), length = std::min(generate.length, model.context);
  if (texts * length * (2 + generate.logprobs) > kMaxAnswerNumbers) {
    return FieldError("max_tokens",
                      absl::StrCat(texts, " texts of up to ", length, " tokens with ", 1 + generate.logprobs,
                                   " log-probabilities each are more than ", kMaxAnswerNumbers, " numbers"));
  }
  WEFT_RETURN_IF_ERROR(fields.Bool("stream", &completion.stream));
  if (const Json* const options = fields.Any("stream_options"); options != nullptr) {
    if (!options->is_object()) return FieldError("stream_options", "wanted an object");
    if (!completion.stream) return FieldError("stream_options", "it needs stream = true");
    JsonFields inner(options);
    WEFT_RETURN_IF_ERROR(inner.Bool("include_usage", &completion.usage));
    inner.Ignore({"include_obfuscation"});
    if (!inner.CheckAllRead().ok()) return FieldError("stream_options", "wanted include_usage only");
  }
  if (const Json* const format = fields.Any("response_format");
      format != nullptr && *format != Json{{"type", "text"}}) {
    return FieldError("response_format", "this server gives the type text only");
  }
  fields.Ignore({"model", "user", "store", "metadata", "service_tier", "prompt_cache_key", "safety_identifier"});
  WEFT_RETURN_IF_ERROR(fields.CheckAllRead());
  for (Tokens& prompt : prompts) {
    completion.prompt_tokens += static_cast<int64_t>(prompt.size());
    for (int64_t i = 0; i < n; ++i) {
      completion.texts.push_back({.prompt = prompt, .generate = generate, .stop = stop});
      completion.texts.back().generate.sampling.seed += static_cast<uint64_t>(i);
    }
  }
  return completion;
}

Completions::Completions(const Completion& completion, const ServedModel& model, std::string id, int64_t created)
    : model_(model), form_(completion), created_(created), id_(std::move(id)), choices_(completion.texts.size()) {}

Json Completions::Frame(bool chunk) const {
  const char* const kind = !form_.chat ? "text_completion" : chunk ? "chat.completion.chunk" : "chat.completion";
  return {{"id", id_},
          {"object", kind},
          {"created", created_},
          {"model", model_.name},
          {"system_fingerprint", "weft"},
          {"choices", Json::array()}};
}

Json Completions::Usage() const {
  return {{"prompt_tokens", form_.prompt_tokens},
          {"completion_tokens", tokens_},
          {"total_tokens", form_.prompt_tokens + tokens_}};
}

void Completions::AddLogprobs(const Answer::Event& event, size_t offset, Json* all) const {
  if (form_.logprobs < 0 || event.token < 0) return;
  const auto text = [&](const TokenLogprob& each) { return model_.generator->TokenText(each.token); };
  // OpenAI spells bytes that are no characters as \xe2 in chats, and as bytes:\xe2 in completions.
  const auto name = [&](const std::string& bytes) {
    return CheckUtf8(bytes).ok() ? bytes : absl::StrCat(form_.chat ? "" : "bytes:", absl::CHexEscape(bytes));
  };
  const auto likeliest = absl::MakeConstSpan(event.logprobs).subspan(1);
  const TokenLogprob& own = event.logprobs[0];
  if (!form_.chat) {
    (*all)["tokens"].push_back(name(text(own)));
    (*all)["token_logprobs"].push_back(own.logprob);
    Json top = Json::object();
    for (const TokenLogprob& each : likeliest) top.emplace(name(text(each)), each.logprob);  // keeps the likelier
    (*all)["top_logprobs"].push_back(std::move(top));
    (*all)["text_offset"].push_back(offset);
    return;
  }
  const auto entry = [&](const TokenLogprob& each) -> Json {
    return {{"token", name(text(each))}, {"logprob", each.logprob}, {"bytes", Bytes(text(each))}};
  };
  Json token = entry(own);
  token["top_logprobs"] = Json::array();
  for (const TokenLogprob& each : likeliest) token["top_logprobs"].push_back(entry(each));
  (*all)["content"].push_back(std::move(token));
  (*all)["refusal"] = nullptr;
}

Json Completions::Chunk(size_t choice, Json fields) const {
  Json chunk = Frame(/*chunk=*/true);
  fields["index"] = choice;
  chunk["choices"].push_back(std::move(fields));
  return chunk;
}

std::vector<Json> Completions::Begin() const {
  std::vector<Json> chunks;
  for (size_t i = 0; form_.chat && i < choices_.size(); ++i) {
    chunks.push_back(Chunk(i, {{"delta", {{"role", "assistant"}, {"content", ""}}}, {"finish_reason", nullptr}}));
  }
  return chunks;
}

std::vector<Json> Completions::Add(const Answer::Event& event) {
  Choice& choice = choices_[event.prompt];
  Json logprobs;
  AddLogprobs(event, choice.offset, form_.stream ? &logprobs : &choice.logprobs);
  choice.given += CountCharacters(event.text);
  choice.offset = choice.given + event.withheld;
  tokens_ += event.token >= 0 ? 1 : 0;
  if (!form_.stream) {
    choice.text += event.text;
    if (event.end) choice.finish_reason = Reason(*event.end);
    return {};
  }
  std::vector<Json> chunks;
  const auto add = [&](const std::string& text, const Json& numbers, const Json& reason) {
    Json fields = {{"logprobs", numbers}, {"finish_reason", reason}};
    const Json delta = text.empty() ? Json::object() : Json{{"content", text}};
    fields[form_.chat ? "delta" : "text"] = form_.chat ? delta : Json(text);
    chunks.push_back(Chunk(event.prompt, std::move(fields)));
  };
  if (!event.text.empty() || !logprobs.is_null()) add(event.text, logprobs, nullptr);
  if (event.end) add("", nullptr, Reason(*event.end));
  return chunks;
}

Json Completions::UsageChunk() const {
  Json chunk = Frame(/*chunk=*/true);
  chunk["usage"] = Usage();
  return chunk;
}

Json Completions::ToJson() const {
  Json json = Frame(/*chunk=*/false);
  for (size_t i = 0; i < choices_.size(); ++i) {
    const Choice& choice = choices_[i];
    json["choices"].push_back({{"index", i}, {"logprobs", choice.logprobs}, {"finish_reason", choice.finish_reason}});
    const Json message = {{"role", "assistant"}, {"content", choice.text}, {"refusal", nullptr}};
    json["choices"].back()[form_.chat ? "message" : "text"] = form_.chat ? message : Json(choice.text);
  }
  json["usage"] = Usage();
  return json;
}

}  // namespace weft
