// A ServedModel is a model that a server answers with: a GPT, a BERT or an encoder-decoder Transformer. An Engine runs
// all models of a server in one thread. Texts of one GPT are continued together, in continuous batches. Between two
// steps of the batches, it runs at most one job, such as the embedding of a text.
//
//   Engine engine(models, /*queue=*/256);
//   WEFT_RETURN_IF_ERROR(engine.Continue(model, std::move(requests), answer));   // `answer` gets the tokens
//   WEFT_ASSIGN_OR_RETURN(const auto embedding, engine.Run([&] { return model->encoder->Run(ids); }));
#ifndef WEFT_APPS_SERVE_ENGINE_H_
#define WEFT_APPS_SERVE_ENGINE_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "weft/base/status.h"
#include "weft/inference/encode/bert_encoder.h"
#include "weft/inference/encode/classifier.h"
#include "weft/inference/generate/generate.h"
#include "weft/inference/generate/line_translator.h"
#include "weft/inference/generate/text_generation.h"
#include "weft/text/templates/chat_template.h"

namespace weft {

struct ServedModel {
  std::string name, path;
  std::string kind;  // "gpt", "bert" or "transformer"
  // The tasks of the model: some of "completions", "chat", "embeddings", "classify", "translate" and "attention".
  std::vector<std::string> tasks;
  int64_t context = 0;  // maximum number of tokens that it reads

  // A GPT has a generator, whose options are the defaults of a request. `chat` is unset if it has no chat template.
  std::unique_ptr<TextGenerator> generator = nullptr;
  std::optional<ChatTemplate> chat = std::nullopt;

  // A BERT has an encoder. `head` is null if it has no classifier.
  std::unique_ptr<BertEncoder> encoder = nullptr;
  std::unique_ptr<TextHead> head = nullptr;

  // An encoder-decoder has a translator. `search` has the defaults of a request.
  BeamSearchOptions search = {};
  std::unique_ptr<LineTranslator> translator = nullptr;
};

// Opens a model in any format that ReadModel reads. The options of a GPT that its files name take the place of
// `options`. Returns InvalidArgument for a Vision Transformer, and if the model can't be opened.
absl::StatusOr<std::unique_ptr<ServedModel>> OpenServedModel(const std::string& name, const std::string& path,
                                                             const TextGeneratorOptions& options);

// An Answer carries texts, token by token, from the engine's thread to the thread of a connection.
class Answer {
 public:
  // A token, whose `prompt` is the index of its text; or the end of a text, with the rest of the text.
  struct Event : GeneratedToken {
    std::optional<TextEnd> end = std::nullopt;
  };

  explicit Answer(size_t texts) : open_(texts) {}

  // The engine's thread calls these three functions. Fail ends all texts.
  void Add(Event event);
  void Fail(absl::Status status);
  bool cancelled() const { return cancelled_; }

  // The connection's thread calls these two functions. Take waits for events, at most `timeout`, and appends them to
  // `events`. It returns false once all texts have ended and all events are taken, or the status of Fail. Cancel tells
  // the engine that the client has left.
  absl::StatusOr<bool> Take(absl::Duration timeout, std::vector<Event>* events);
  void Cancel() { cancelled_ = true; }

 private:
  std::atomic<bool> cancelled_ = false;
  std::condition_variable changed_;
  std::mutex mutex_;  // guards the members below
  size_t open_;       // number of texts that have not ended
  std::deque<Event> events_;
  absl::Status status_;
};

class Engine {
 public:
  // The numbers of tokens that were read and generated so far, of texts, and of pages of all caches.
  struct Counts {
    std::atomic<int64_t> prompt_tokens = 0, tokens = 0;
    std::atomic<size_t> running = 0, waiting = 0;
    std::atomic<size_t> pages = 0, used_pages = 0;
  };

  // `models` must outlive the engine. `queue`: maximum number of texts and jobs that wait.
  Engine(const std::vector<std::unique_ptr<ServedModel>>& models, int64_t queue);
  ~Engine() { Stop(); }
  void Stop();  // ends all texts; later ones are refused with Unavailable

  // Continues texts of a GPT. Sets their sinks, which turn tokens into events of `answer`. Returns ResourceExhausted,
  // and adds no text, if too many texts and jobs wait.
  absl::Status Continue(ServedModel* model, std::vector<ContinuationRequest> texts, std::shared_ptr<Answer> answer);
  // Runs `job` in the engine's thread, and returns its result, a Status or StatusOr. Returns ResourceExhausted, without
  // running it, if too many texts and jobs wait.
  template <class Job>
  std::invoke_result_t<Job> Run(Job job) {
    std::promise<std::invoke_result_t<Job>> result;
    auto future = result.get_future();
    WEFT_RETURN_IF_ERROR(Queue(1, &jobs_, [&] {
      try {
        result.set_value(stops_ ? absl::UnavailableError(kStopping) : job());
      } catch (const std::exception&) {
        result.set_value(absl::InternalError("the server has too little memory for the request"));
      }
    }));
    return future.get();
  }

  const Counts& counts() const { return counts_; }

 private:
  static constexpr char kStopping[] = "the server is shutting down";
  using Functions = std::deque<std::function<void()>>;

  absl::Status Queue(size_t count, Functions* functions, std::function<void()> run);  // for `count` texts, or 1 job
  void Add(ServedModel* model, ContinuationRequest request, size_t index, const std::shared_ptr<Answer>& answer);
  bool StepAll();  // returns whether a generator has more texts
  void Loop();

  const std::vector<std::unique_ptr<ServedModel>>& models_;
  const size_t max_waiting_;
  Counts counts_;
  std::condition_variable wakes_;
  std::mutex mutex_;       // guards adds_, jobs_ and queued_
  Functions adds_, jobs_;  // `adds_` add texts to generators
  size_t queued_ = 0;      // number of jobs, and of texts that no generator has counted
  std::atomic<bool> stops_ = false;
  size_t added_ = 0;  // number of texts that generators got since the last step; of the engine's thread
  // The answers of texts in generators, by model and number of the text. The engine's thread alone uses them.
  std::map<std::pair<ServedModel*, size_t>, std::shared_ptr<Answer>> answers_;
  std::thread thread_;
};

}  // namespace weft

#endif  // WEFT_APPS_SERVE_ENGINE_H_
