// A Generator generates tokens with a GPT, for several prompts at once.
//
//   WEFT_ASSIGN_OR_RETURN(auto generator, Generator::Create(config, &parameters));
//   WEFT_ASSIGN_OR_RETURN(auto texts, generator->Generate({prompt}, {.sampling = {.top_k = 10}, .length = 200}));
//
// Keys and values are cached. A prompt is read in chunks; after that, each execution computes one token of each text.
// If a text fills the context, its older half is dropped and its newer half is read again. So a token of a long text
// depends on at least half a context, and the cost of a token does not grow.
#ifndef WEFT_INFERENCE_GENERATE_H_
#define WEFT_INFERENCE_GENERATE_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/parameters.h"
#include "weft/inference/sampling.h"
#include "weft/models/gpt.h"

namespace weft {

struct GeneratorOptions {
  int64_t batch = 8;     // maximum number of texts in one execution
  int64_t chunk = 512;   // maximum number of tokens of a prompt that are read at once
  int64_t threads = 0;   // 0: one for each core
  DType weights = kF32;  // the dtype in which weights are stored (CompileOptions::weights)
};

struct GenerateOptions {
  SamplingOptions sampling;
  int64_t length = 100;       // maximum number of tokens to add
  std::vector<int32_t> stop;  // tokens that end a text; the text does not include them
  bool truncate = false;      // true: keeps the end of a prompt that exceeds the context; false: it is an error
};

class Generator {
 public:
  // Adds missing weights and caches to `parameters`, which must outlive the generator.
  static absl::StatusOr<std::unique_ptr<Generator>> Create(const GptConfig& config, Parameters* parameters,
                                                           const GeneratorOptions& options = {});
  ~Generator();

  // Receives the index of a prompt and the next token of its continuation, as soon as the token is drawn. Returns
  // whether the text continues.
  using Sink = absl::FunctionRef<bool(size_t, int32_t)>;
  // Returns the tokens that follow each of `prompts`. Prompts do not influence each other's continuations. Returns
  // InvalidArgument, with the prompt's index, if a prompt has no tokens or a token outside the vocabulary. A prompt
  // that exceeds the context is also an error, unless `truncate` is set.
  absl::StatusOr<std::vector<std::vector<int32_t>>> Generate(
      absl::Span<const std::vector<int32_t>> prompts, const GenerateOptions& options,
      Sink sink = [](size_t, int32_t) { return true; });

 private:
  struct Graphs;
  struct Part;
  struct Text;

  Generator(const GptConfig& config, Parameters* parameters, const GeneratorOptions& options);
  absl::Status Check(absl::Span<const std::vector<int32_t>> prompts, const GenerateOptions& options) const;
  absl::StatusOr<Graphs*> GraphsOf(int64_t rows, int64_t capacity);
  absl::StatusOr<Part*> PartOf(Graphs* graphs, int64_t length);
  absl::StatusOr<const float*> Read(Graphs* graphs, absl::Span<Text> texts);
  absl::Status GenerateBatch(absl::Span<Text> texts, const GenerateOptions& options, Sink sink);

  const GptConfig config_;
  Parameters* const parameters_;
  const GeneratorOptions options_;
  std::map<std::array<int64_t, 2>, std::unique_ptr<Graphs>> graphs_;  // by rows and capacity
};

}  // namespace weft

#endif  // WEFT_INFERENCE_GENERATE_H_
