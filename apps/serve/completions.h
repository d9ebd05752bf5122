// Requests of OpenAI's completions and chat completions, and their answers as JSON.
//
//   WEFT_ASSIGN_OR_RETURN(const Completion completion, ParseCompletion(json, *model, /*chat=*/true, max_tokens));
//   Completions answer(completion, *model, "chatcmpl-1", now);
//   answer.Add(event)                  // with `stream`: the chunks that the event gives
//   answer.ToJson()                    // without: the whole answer
#ifndef WEFT_APPS_SERVE_COMPLETIONS_H_
#define WEFT_APPS_SERVE_COMPLETIONS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "weft/apps/serve/engine.h"

namespace weft {

// What the JSON of an answer depends on, besides the generated texts.
struct CompletionForm {
  bool chat = false, stream = false, usage = false;  // usage: a stream ends with the counts of tokens
  int64_t logprobs = -1;                             // as GenerateOptions::logprobs
  int64_t prompt_tokens = 0;
};
struct Completion : CompletionForm {
  std::vector<ContinuationRequest> texts = {};  // `n` for each prompt
};

// Parses a request. Text i of `n` has the seed `seed` + i. The default seed is 0, so equal requests get equal answers.
// Returns a FieldError for a field that is wrong, unknown, or asks for something that this server does not support.
// `max_tokens`: the maximum number of tokens of a generated text.
absl::StatusOr<Completion> ParseCompletion(const nlohmann::ordered_json& request, const ServedModel& model, bool chat,
                                           int64_t max_tokens);

// A Completions makes the JSON of an answer from the events of an Answer.
class Completions {
 public:
  Completions(const Completion& completion, const ServedModel& model, std::string id, int64_t created);

  // Adds an event. With `stream`, returns the chunks for it.
  std::vector<nlohmann::ordered_json> Add(const Answer::Event& event);
  // Returns the first chunks of a streamed chat, which have the role of each message.
  std::vector<nlohmann::ordered_json> Begin() const;
  // Returns the counts of tokens as the last chunk of a stream.
  nlohmann::ordered_json UsageChunk() const;
  // Returns the whole answer.
  nlohmann::ordered_json ToJson() const;

 private:
  struct Choice {
    std::string text, finish_reason;
    nlohmann::ordered_json logprobs;  // null, or in the form of the answer
    size_t given = 0, offset = 0;     // numbers of characters: given so far, and before the next token
  };

  nlohmann::ordered_json Frame(bool chunk) const;
  nlohmann::ordered_json Usage() const;
  // Appends the event's log-probabilities to `all`, in the form of the answer. `offset`: of the token in the text.
  void AddLogprobs(const Answer::Event& event, size_t offset, nlohmann::ordered_json* all) const;
  // Returns a chunk of a stream with one choice, which has `fields` besides its index.
  nlohmann::ordered_json Chunk(size_t choice, nlohmann::ordered_json fields) const;

  const ServedModel& model_;
  const CompletionForm form_;
  const int64_t created_;
  const std::string id_;
  std::vector<Choice> choices_;
  int64_t tokens_ = 0;
};

}  // namespace weft

#endif  // WEFT_APPS_SERVE_COMPLETIONS_H_
