// The answers of a Server to requests with a body.
#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "weft/apps/serve/completions.h"
#include "weft/apps/serve/json_fields.h"
#include "weft/apps/serve/server.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/inference/measure/attention_weights.h"
#include "weft/lab/reports/attention_report.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxInputs = 256;
constexpr absl::Duration kPoll = absl::Milliseconds(100);  // from one check that the client is there to the next

// The answer to a request for texts. If its connection ends, the engine ends the texts.
struct Stream {
  ~Stream() { answer->Cancel(); }

  std::shared_ptr<Answer> answer;
  Completions completions;
  bool usage, begun = false;
  absl::Time started, first = absl::InfinitePast();
};

std::string Event(const Json& json) { return absl::StrCat("data: ", JsonLine(json), "\n\n"); }

// Returns the texts of `field`.
absl::StatusOr<std::vector<std::string>> InputsOf(JsonFields* fields, const char* field) {
  std::vector<std::string> texts;
  WEFT_RETURN_IF_ERROR(fields->Texts(field, kMaxInputs, &texts));
  if (texts.empty()) return FieldError(field, "it is missing");
  fields->Ignore({"model", "user"});
  return texts;
}

absl::Status CheckClient() {
  return Connections::ClientLeft() ? absl::CancelledError("the client has left") : absl::OkStatus();
}

// Returns the Base64 of numbers in f32, little-endian, which OpenAI's package asks for.
std::string Base64(absl::Span<const float> numbers) {
  return absl::Base64Escape({reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float)});
}

}  // namespace

template <bool kChat>
absl::StatusOr<Json> Server::Generate(const Json& request, ServedModel* model, httplib::Response* response) {
  const absl::Time started = absl::Now();
  WEFT_ASSIGN_OR_RETURN(Completion completion, ParseCompletion(request, *model, kChat, options_.max_tokens));
  const std::string id = absl::StrCat(kChat ? "chatcmpl-" : "cmpl-", ++ids_);
  const std::shared_ptr<Stream> stream(
      new Stream{.answer = std::make_shared<Answer>(completion.texts.size()),
                 .completions = Completions(completion, *model, id, absl::ToUnixSeconds(started)),
                 .usage = completion.usage,
                 .started = started});
  WEFT_RETURN_IF_ERROR(engine_.Continue(model, std::move(completion.texts), stream->answer));
  // Takes events, at least one unless time passes. Returns whether more follow.
  const auto take = [this, stream](auto each) -> absl::StatusOr<bool> {
    std::vector<Answer::Event> events;
    WEFT_ASSIGN_OR_RETURN(const bool more, stream->answer->Take(kPoll, &events));
    if (!events.empty() && stream->first == absl::InfinitePast()) {
      stream->first = absl::Now();
      CountFirstToken(stream->first - stream->started);
    }
    for (const Answer::Event& event : events) each(stream->completions.Add(event));
    return more;
  };
  if (!completion.stream) {
    for (bool more = true; more;) {
      WEFT_ASSIGN_OR_RETURN(more, take([](const std::vector<Json>&) {}));
      if (more) WEFT_RETURN_IF_ERROR(CheckClient());
    }
    return stream->completions.ToJson();
  }
  response->set_header("Cache-Control", "no-cache");
  const auto write = [take, stream](size_t, httplib::DataSink& sink) {
    std::string text;
    const auto append = [&](const std::vector<Json>& chunks) {
      for (const Json& chunk : chunks) text += Event(chunk);
    };
    if (!std::exchange(stream->begun, true)) append(stream->completions.Begin());
    const absl::StatusOr<bool> more = take(append);
    if (!more.ok()) {
      text += Event({{"error", {{"message", more.status().message()}, {"type", "server_error"}}}});
    } else if (!*more) {
      if (stream->usage) text += Event(stream->completions.UsageChunk());
      text += "data: [DONE]\n\n";
    }
    if (!text.empty() && !sink.write(text.data(), text.size())) return false;
    if (!more.ok() || !*more) sink.done();
    return !Connections::ClientLeft();
  };
  response->set_chunked_content_provider("text/event-stream", write);
  return Json();
}
template absl::StatusOr<Json> Server::Generate<false>(const Json&, ServedModel*, httplib::Response*);
template absl::StatusOr<Json> Server::Generate<true>(const Json&, ServedModel*, httplib::Response*);

absl::StatusOr<Json> Server::Embed(const Json& request, ServedModel* model, httplib::Response* /*response*/) {
  JsonFields fields(&request);
  BertEncoder& encoder = *model->encoder;
  const auto encode = [&](const std::string& text) -> absl::StatusOr<std::vector<int32_t>> {
    WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, encoder.Tokens(text));
    return encoder.tokenizer().Wrap(ids).ids;
  };
  std::vector<std::vector<int32_t>> inputs;
  WEFT_RETURN_IF_ERROR(
      fields.Tokens("input", kMaxInputs, {encode, model->context, encoder.config().vocabulary}, &inputs));
  fields.Ignore({"model", "user"});
  std::string format = "float";
  int64_t dimensions = encoder.config().width;
  WEFT_RETURN_IF_ERROR(fields.Text("encoding_format", &format));
  WEFT_RETURN_IF_ERROR(fields.Whole("dimensions", dimensions, dimensions, &dimensions));
  if (format != "float" && format != "base64") return FieldError("encoding_format", "wanted float or base64");
  WEFT_RETURN_IF_ERROR(fields.CheckAllRead());
  Json data = Json::array();
  size_t tokens = 0;
  for (std::vector<int32_t>& ids : inputs) {
    WEFT_RETURN_IF_ERROR(CheckClient());
    tokens += ids.size();
    std::vector<int32_t> segments(ids.size());
    const ModelInput input = {std::move(ids), std::move(segments)};
    Json embedding;
    WEFT_RETURN_IF_ERROR(engine_.Run([&] {
      return encoder.Run({input}, [&](size_t, absl::Span<const float> numbers) {
        embedding =
            format == "float" ? Json(std::vector<float>(numbers.begin(), numbers.end())) : Json(Base64(numbers));
      });
    }));
    data.push_back({{"object", "embedding"}, {"index", data.size()}, {"embedding", std::move(embedding)}});
  }
  return Json{{"object", "list"},
              {"data", std::move(data)},
              {"model", model->name},
              {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}};
}

absl::StatusOr<Json> Server::Classify(const Json& request, ServedModel* model, httplib::Response* /*response*/) {
  JsonFields fields(&request);
  std::vector<std::string> seconds;
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> inputs, InputsOf(&fields, "input"));
  WEFT_RETURN_IF_ERROR(fields.Texts("second", kMaxInputs, &seconds));
  WEFT_RETURN_IF_ERROR(fields.CheckAllRead());
  TextHead& head = *model->head;
  if (seconds.size() != (head.pairs() ? inputs.size() : 0)) {
    return FieldError("second", head.pairs() ? "the model reads pairs, so each text of input needs a second one"
                                             : "the model does not read pairs");
  }
  const auto ranked = [&](const std::vector<float>& logits) {
    Json labels = Json::array();
    if (logits.empty()) return labels;
    for (const LabelProbability& each : RankLabels(head.labels(), logits, head.scores())) {
      labels.push_back({{"label", each.label}, {"score", each.probability}});
    }
    return labels;
  };
  Json list = Json::array();
  for (size_t i = 0; i < inputs.size(); ++i) {
    LabelledExample example = {.texts = {inputs[i]}, .line = i + 1};
    if (head.task() == TextTask::kTokens) {  // the model labels the words of a text
      WEFT_ASSIGN_OR_RETURN(example.texts, head.TextsOf(inputs[i]));
    }
    if (head.pairs()) example.texts.push_back(seconds[i]);
    WEFT_RETURN_IF_ERROR(CheckClient());
    const auto results = engine_.Run([&] { return head.Run({.paths = {"input"}, .examples = {example}}); });
    if (absl::IsInvalidArgument(results.status())) return FieldError("input", results.status().message());
    WEFT_RETURN_IF_ERROR(results.status());
    const ClassifierResult& result = results->front();
    Json words = Json::array();
    for (size_t k = 0; k < result.words.size(); ++k) {
      words.push_back({{"word", result.words[k]}, {"labels", ranked(result.values[k])}});
    }
    list.push_back(head.task() == TextTask::kTokens ? Json{{"words", words}}
                                                    : Json{{"labels", ranked(result.values[0])}});
  }
  return Json{{"model", model->name}, {"results", std::move(list)}};
}

absl::StatusOr<Json> Server::Translate(const Json& request, ServedModel* model, httplib::Response* /*response*/) {
  JsonFields fields(&request);
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> texts, InputsOf(&fields, "text"));
  BeamSearchOptions search = model->search;
  WEFT_RETURN_IF_ERROR(fields.Whole("beam", 1, CachedGpt::kStepRows, &search.beam));
  search.n_best = 1;
  WEFT_RETURN_IF_ERROR(fields.CheckAllRead());
  std::vector<std::string> lines;
  for (const std::string& text : texts) {
    for (const absl::string_view line : absl::StrSplit(text, '\n')) lines.emplace_back(absl::StripSuffix(line, "\r"));
  }
  if (lines.size() > kMaxInputs) {
    return FieldError("text", absl::StrCat("got ", lines.size(), " lines, wanted at most ", kMaxInputs));
  }
  Json translations = Json::array();
  for (const std::string& line : lines) {
    absl::StatusOr<std::vector<int32_t>> source = model->translator->Encode(line);
    if (!source.ok()) return FieldError("text", source.status().message());
    WEFT_RETURN_IF_ERROR(CheckClient());
    WEFT_ASSIGN_OR_RETURN(const auto best,
                          engine_.Run([&] { return model->translator->Translate({*source}, search); }));
    Json translation = {{"source", line}, {"text", ""}, {"log_probability", 0.0}};
    if (!best[0].empty()) {
      WEFT_ASSIGN_OR_RETURN(translation["text"], model->translator->Text(best[0][0]));
      translation["log_probability"] = best[0][0].log_probability;
    }
    translations.push_back(std::move(translation));
  }
  return Json{{"model", model->name}, {"translations", std::move(translations)}};
}

absl::StatusOr<Json> Server::Attention(const Json& request, ServedModel* model, httplib::Response* response) {
  constexpr int64_t kMaxWeights = 1 << 21;  // about 20 MB of JSON
  JsonFields fields(&request);
  AttentionQuery query = {.max_weights = kMaxWeights};
  fields.Ignore({"model"});
  std::string target;
  WEFT_RETURN_IF_ERROR(fields.Text("text", &query.text));
  WEFT_RETURN_IF_ERROR(fields.Text("target", &target));
  WEFT_RETURN_IF_ERROR(fields.CheckAllRead());
  if (query.text.empty()) return FieldError("text", "it is missing");
  if (!target.empty()) query.second = target;
  query.threads = 1;
  const std::lock_guard lock(attention_mutex_);
  WEFT_RETURN_IF_ERROR(CheckClient());
  WEFT_ASSIGN_OR_RETURN(const AttentionWeights weights, ReadAttention(model->path, query));
  response->set_content(AttentionJson(weights), kJsonType);
  return Json();
}

}  // namespace weft
