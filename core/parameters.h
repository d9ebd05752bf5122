// Parameters: the weights, optimizer moments and other state of a model, by name.
//
// Graphs say which parameters they need; the first that does creates one, with first values that depend on (seed, name)
// only. Many runners, on many threads, share one Parameters, one of them running at a time; what
// Find returns is that run's to read and write until it ends.
//
//   Parameters parameters({.seed = 1});
//   Runner runner(graph, &parameters);                              // creates what the graph needs
//   WEFT_RETURN_IF_ERROR(parameters.Load("model.safetensors"));     // replaces values, by name
#ifndef WEFT_CORE_PARAMETERS_H_
#define WEFT_CORE_PARAMETERS_H_

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/core/arena.h"
#include "weft/core/program.h"
#include "weft/core/safetensors.h"

namespace weft {

class Parameters {
 public:
  struct Options {
    uint64_t seed = 0;  // of first values, and of what random ops draw
    bool draw = true;   // false: first values that would be drawn are 0, as Load or Set replaces them before they count
  };
  enum Selection { kWeights, kAll };           // kAll: with optimizer moments and other state, but no caches
  enum Others { kNothingElse, kMayHaveMore };  // what a file may have besides the selection

  Parameters() : Parameters(Options{}) {}
  explicit Parameters(Options options) : options_(options) {}
  Parameters(const Parameters&) = delete;
  Parameters& operator=(const Parameters&) = delete;

  // Creates those of `specs` that are not there yet. FailedPrecondition if one is there with another type or kind,
  // ResourceExhausted if there is no memory.
  absl::Status Create(absl::Span<const ParameterSpec> specs);
  // A view of the parameter's bytes, valid as long as this object. NotFound if there is none of this name.
  absl::StatusOr<Tensor> Find(absl::string_view name) const;
  std::vector<std::string> Names(Selection selection = kAll) const;  // sorted
  int64_t ElementCount(Selection selection = kWeights) const;

  // Writes and reads safetensors; FailedPrecondition while a run has not ended. Save goes through a temporary file that
  // is renamed. Load fails, changing nothing, unless the file has exactly the selected parameters with their types
  // (others besides, if they may be there); the error lists those that are missing, unexpected and of another type.
  absl::Status Save(const std::string& path, Selection selection = kWeights) const;
  absl::Status Load(const std::string& path, Selection selection = kWeights, Others others = kNothingElse);
  // The same with tensors that were read already; `path` is for errors.
  absl::Status Set(const std::string& path, absl::Span<const NamedTensor> tensors, Selection selection = kWeights,
                   Others others = kNothingElse);

  // FailedPrecondition "PATH does not fit the model: ...", with such a list, unless `tensors` are those of `wanted`.
  static absl::Status Check(const std::string& path, absl::Span<const NamedTensor> tensors,
                            absl::Span<const ParameterSpec> wanted, Others others = kNothingElse);

  uint64_t seed() const { return options_.seed; }
  // The number of runs that updated these parameters: the counter of random ops.
  uint32_t step() const { return step_; }
  void set_step(uint32_t step) { step_ = step; }

  // One runner at a time: TryLock says whether the caller has it now.
  bool TryLock() const { return !locked_.exchange(true, std::memory_order_acquire); }
  void Unlock() const { locked_.store(false, std::memory_order_release); }

 private:
  struct Entry {
    Tensor tensor;
    ParameterKind kind;
  };
  static bool Selects(Selection selection, const Entry& entry) {
    return entry.kind == ParameterKind::kWeight || (selection == kAll && entry.kind == ParameterKind::kState);
  }

  Options options_;
  Arena arena_;
  mutable std::mutex mutex_;  // of entries_, which only grows, and whose names and types stay
  std::map<std::string, Entry, std::less<>> entries_;
  std::atomic<uint32_t> step_{0};
  mutable std::atomic<bool> locked_{false};
};

}  // namespace weft

#endif  // WEFT_CORE_PARAMETERS_H_
