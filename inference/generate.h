// Generation of text by a GPT, token by token, for several prompts at once.
//
//   WEFT_ASSIGN_OR_RETURN(auto generator, Generator::Create(config, &parameters));
//   WEFT_ASSIGN_OR_RETURN(auto texts, generator->Generate({prompt}, {.sampling = {.top_k = 10}, .length = 200}));
//
// Keys and values are kept: a prompt is read in chunks, and from then on each step computes one token of each text.
// Where a text has as many tokens as the context, its older half is forgotten and the newer one is read again, so that
// a token is drawn from at least half a context before it, and the cost of a step stays what it is.
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
  int64_t batch = 8;   // the most texts of one run
  int64_t chunk = 32;  // tokens of a prompt that are read at once
  int threads = 0;
};

struct GenerateOptions {
  SamplingOptions sampling;
  int64_t length = 100;       // the most tokens to add
  std::vector<int32_t> stop;  // tokens that end a text, and are no part of it
  bool truncate = false;      // of a prompt longer than the context take the end; an error else
};

class Generator {
 public:
  // `parameters` gets the weights it doesn't have yet, and the caches; it outlives the generator.
  static absl::StatusOr<std::unique_ptr<Generator>> Create(const GptConfig& config, Parameters* parameters,
                                                           const GeneratorOptions& options = {});
  ~Generator();

  // Called with a prompt's place and each token that follows it, as soon as there is one; returns whether to go on.
  using Sink = absl::FunctionRef<bool(size_t, int32_t)>;
  // The tokens that follow each of `prompts`. A prompt is continued as it is in any other company. InvalidArgument,
  // with its number from 0, for one that has no tokens, one outside the vocabulary or, unless `truncate` says to take
  // their end, more than the context.
  absl::StatusOr<std::vector<std::vector<int32_t>>> Generate(
      absl::Span<const std::vector<int32_t>> prompts, const GenerateOptions& options,
      Sink sink = [](size_t, int32_t) { return true; });

 private:
  struct Graphs;
  struct Text;

  Generator(const GptConfig& config, Parameters* parameters, const GeneratorOptions& options);
  absl::Status Check(absl::Span<const std::vector<int32_t>> prompts, const GenerateOptions& options) const;
  absl::StatusOr<Graphs*> GraphsOf(int64_t rows, int64_t capacity);
  absl::Status Read(Graphs* graphs, absl::Span<Text> texts) const;
  absl::Status GenerateBatch(absl::Span<Text> texts, const GenerateOptions& options, Sink sink);

  const GptConfig config_;
  Parameters* const parameters_;
  const GeneratorOptions options_;
  std::map<std::array<int64_t, 2>, std::unique_ptr<Graphs>> graphs_;  // by rows and capacity
};

}  // namespace weft

#endif  // WEFT_INFERENCE_GENERATE_H_
