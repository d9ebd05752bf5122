// Parameters are the weights, optimizer moments and other state of a model, by name.
//
// A runner creates the parameters that its graph needs, unless another runner has created them before. Initial values
// depend only on seed, name, type and initializer. Several runners, on several threads, can share one Parameters, but
// only one runner at a time can run. While Runner::Run runs, other code must not read or write the tensors of Find.
//
//   Parameters parameters({.seed = 1});
//   Runner runner(graph, &parameters);                              // creates what the graph needs
//   WEFT_RETURN_IF_ERROR(parameters.Load("model.safetensors"));     // replaces values, by name
#ifndef WEFT_CORE_PARAMETERS_H_
#define WEFT_CORE_PARAMETERS_H_

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/base/arena.h"
#include "weft/core/program.h"
#include "weft/core/safetensors.h"

namespace weft {

// Rows of a weight that is divided: rows begin_row .. end_row - 1 of the weight seen as [rows, cols].
struct ParameterPiece {
  std::string name;
  int64_t begin_row = 0, end_row = 0;
};

class Parameters {
 public:
  struct Options {
    uint64_t seed = 0;  // of initial values and of random ops
    bool draw = true;   // false: random initial values are 0, which saves time if Load or Set replaces them
  };
  // kTrained: the weights and statistics that training changes; kWeights: these and frozen weights; kAll: these,
  // optimizer moments and other state, but no caches.
  enum Selection { kTrained, kWeights, kAll };
  enum Others { kNothingElse, kMayHaveMore };  // whether a file may have tensors that are not selected parameters

  Parameters() : Parameters(Options{}) {}
  explicit Parameters(Options options) : options_(options) {}
  Parameters(const Parameters&) = delete;
  Parameters& operator=(const Parameters&) = delete;

  // Creates the parameters of `specs` that do not exist yet. Returns FailedPrecondition if one exists with another type
  // or kind, and ResourceExhausted if there is no memory. After an error, no parameter was created.
  absl::Status Create(absl::Span<const ParameterSpec> specs);
  // Creates `pieces` of the weight `whole`, of type [rows, cols], for a process that has only these rows. Their initial
  // values are those of the same rows of the whole weight. From then on, Create refuses the whole weight, and
  // ElementCount counts the whole weight in place of its pieces. Errors are those of Create.
  absl::Status CreatePieces(const ParameterSpec& whole, absl::Span<const ParameterPiece> pieces);
  // Makes Create take the values of new parameters from `tensors`, by name. If the types are equal, the parameter is
  // the tensor itself, which `owner` keeps; nothing is copied. If only the dtypes differ, and both are f32, bf16 or a
  // block format, the values are converted. Other differences are an error of Create. Until then, Find finds the
  // tensors.
  void Provide(absl::Span<const NamedTensor> tensors, std::shared_ptr<const void> owner);
  // Reports whether weights are divided (CreatePieces).
  bool divided() const;
  // Returns a view of the parameter's bytes, valid as long as this object. Returns NotFound if `name` does not exist.
  absl::StatusOr<Tensor> Find(absl::string_view name) const;
  // Returns the names of the selected parameters, sorted.
  std::vector<std::string> Names(Selection selection = kAll) const;
  // Returns the number of elements of all selected parameters.
  int64_t ElementCount(Selection selection = kWeights) const;

  // Save writes the selected parameters to a safetensors file (see WriteFile). Load replaces the values of the selected
  // parameters from such a file. The file must have all of them with their shapes; where dtypes differ, it converts as
  // Provide does. Other tensors are an error unless `others` is kMayHaveMore. After an error nothing has changed; the
  // message lists at most 8 missing, unexpected or differing tensors. During a call of Runner::Run, Save, Load or Set,
  // both return FailedPrecondition.
  // `checksum`: whether the file must hold its checksum, which Save writes and Load verifies.
  absl::Status Save(const std::string& path, Selection selection = kWeights) const;
  absl::Status Load(const std::string& path, Selection selection = kWeights, Others others = kNothingElse,
                    WantedChecksum checksum = WantedChecksum::kIfPresent);
  // Like Load, for tensors in memory. `path`: where the tensors come from, for errors.
  absl::Status Set(const std::string& path, absl::Span<const NamedTensor> tensors, Selection selection = kWeights,
                   Others others = kNothingElse);

  // Checks tensors against `wanted` as Load does. The error is FailedPrecondition "PATH does not fit the model: ...".
  static absl::Status Check(const std::string& path, absl::Span<const NamedTensor> tensors,
                            absl::Span<const ParameterSpec> wanted, Others others = kNothingElse);

  uint64_t seed() const { return options_.seed; }
  // Returns the step, by which random ops draw. An execution that updates parameters adds 1, and training sets the
  // step.
  uint32_t step() const { return step_; }
  void set_step(uint32_t step) { step_ = step; }

  // Locks the parameters for one call of Runner::Run, Save, Load or Set. TryLock returns false if they are locked.
  bool TryLock() const { return !locked_.exchange(true, std::memory_order_acquire); }
  void Unlock() const { locked_.store(false, std::memory_order_release); }

 private:
  struct Entry {
    Tensor tensor;
    ParameterKind kind;
    bool is_piece = false;  // of a weight in divided_
  };
  static bool Selects(Selection selection, ParameterKind kind) {
    return kind == ParameterKind::kWeight || kind == ParameterKind::kStatistic ||
           (selection != kTrained && kind == ParameterKind::kFrozen) ||
           (selection == kAll && kind == ParameterKind::kState);
  }

  Options options_;
  Arena arena_;
  Arena caches_{Arena::Pages::kSmall};  // a cache fills up bit by bit
  mutable std::mutex mutex_;            // guards the maps below; entries are only added, with fixed names and types
  std::map<std::string, Entry, std::less<>> entries_;
  std::map<std::string, ParameterSpec, std::less<>>
      divided_;  // types of the whole weights whose pieces are in entries_
  std::map<std::string, Tensor, std::less<>> provided_;
  std::vector<std::shared_ptr<const void>> owners_;  // of the provided tensors
  std::atomic<uint32_t> step_{0};
  mutable std::atomic<bool> locked_{false};
};

}  // namespace weft

#endif  // WEFT_CORE_PARAMETERS_H_
