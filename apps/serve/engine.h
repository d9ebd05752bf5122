// An Engine runs all models of a server in one thread. Texts of one GPT are continued together, in continuous batches.
// Between two tokens, it runs jobs, such as the embedding of a text.
//
//   Engine engine(models, {.queue = 256});
//   WEFT_RETURN_IF_ERROR(engine.Continue(model, std::move(requests), answer));   // tokens come through `answer`
//   WEFT_RETURN_IF_ERROR(engine.Run([&] { embedding = model->encoder->Run(ids); }));
#ifndef WEFT_APPS_SERVE_ENGINE_H_
#define WEFT_APPS_SERVE_ENGINE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "weft/apps/serve/answer.h"
#include "weft/apps/serve/served_model.h"

namespace weft {

class Engine {
 public:
  struct Options {
    size_t queue = 256;  // maximum number of texts and jobs that wait
  };
  // What the engine did and does, for reports.
  struct Counts {
    std::atomic<int64_t> prompt_tokens = 0, tokens = 0;  // read and generated
    std::atomic<size_t> running = 0, waiting = 0;        // texts
    std::atomic<size_t> pages = 0, used_pages = 0;       // of all caches
  };

  Engine(std::vector<ServedModel*> models, const Options& options);
  ~Engine() { Stop(); }
  void Stop();  // ends all texts; later ones are refused with Unavailable

  // Continues texts of a GPT, whose sinks it sets; their tokens become events of `answer`, in which a text's choice is
  // its index in `texts`. Returns ResourceExhausted, and adds no text, if too many wait.
  absl::Status Continue(ServedModel* model, std::vector<ContinuationRequest> texts, std::shared_ptr<Answer> answer);
  // Runs `job` in the engine's thread and waits for its end. Returns ResourceExhausted, without running it, if too many
  // jobs and texts wait.
  absl::Status Run(const std::function<void()>& job);

  const Counts& counts() const { return counts_; }

 private:
  // A text that the engine has added to a generator.
  struct Text {
    ServedModel* model;
    std::shared_ptr<Answer> answer;
  };

  absl::Status Queue(size_t texts, std::function<void()> job);
  void Add(ServedModel* model, ContinuationRequest request, size_t choice, const std::shared_ptr<Answer>& answer);
  void RemoveCancelled();
  bool StepAll();  // returns whether texts are left
  void Loop();

  const std::vector<ServedModel*> models_;
  const Options options_;
  Counts counts_;
  absl::Mutex mutex_;
  std::deque<std::function<void()>> jobs_ ABSL_GUARDED_BY(mutex_);
  size_t queued_ ABSL_GUARDED_BY(mutex_) = 0;  // texts and jobs of `jobs_`
  bool stops_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::pair<ServedModel*, size_t>, Text> texts_;  // by model and number; of the engine's thread
  std::thread thread_;
};

}  // namespace weft

#endif  // WEFT_APPS_SERVE_ENGINE_H_
