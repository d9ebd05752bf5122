// A CachedGpt computes the logits of a GPT for tokens of any texts. The keys and values of earlier tokens are in a
// cache of pages, which a PagePool hands out.
//
//   WEFT_ASSIGN_OR_RETURN(auto gpt, CachedGpt::Create(config, &parameters, {.pages = 64}));
//   CachedGpt::Rows rows;
//   rows.Add(token, position, &table);   // table.pages holds the positions 0 .. position
//   rows.last = {0};
//   WEFT_ASSIGN_OR_RETURN(const float* logits, gpt->Run(rows));   // [1, V]
//
// A graph has a fixed number of rows: a power of two, or kStepRows. A chunk's graph computes 1 or kChunkEnds rows of
// logits. Executions of many rows, which read chunks of prompts, multiply packed weights, except block formats on CPUs
// with AVX-512 VNNI. Those of few rows read the weights as they are. Packed and stored weights give different bits.
#ifndef WEFT_INFERENCE_GENERATE_CACHED_GPT_H_
#define WEFT_INFERENCE_GENERATE_CACHED_GPT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "weft/core/parameters.h"
#include "weft/inference/runtime/page_pool.h"
#include "weft/inference/runtime/runtime.h"
#include "weft/models/gpt.h"

namespace weft {

// A text whose first `kept` tokens are in the cache.
struct CachedText {
  std::vector<int32_t> tokens;  // the tokens in the context, newest last
  size_t kept = 0;
  PageTable table = {};

  size_t unread() const { return tokens.size() - kept; }
};

class CachedGpt {
 public:
  static constexpr int64_t kStepRows = kFewRows;  // maximum number of rows for which weights are read as they are
  static constexpr int64_t kMaxChunk = 512;       // rows of the largest chunk that is of use
  static constexpr int64_t kMinChunk = 64;        // rows of the smallest chunk
  static constexpr int64_t kChunkEnds = 16;       // maximum number of rows of a chunk whose logits are computed

  struct Options {
    int64_t pages = 0;               // size of the cache, at least one context
    int64_t page_size = kCachePage;  // positions of a page, at most kCachePage
    RuntimeOptions runtime = {};     // without the batch
  };

  // The tokens of one execution.
  struct Rows {
    std::vector<int32_t> tokens, positions;
    std::vector<const PageTable*> tables;  // the pages of each token's text
    std::vector<int32_t> last;             // rows whose logits are wanted, in a chunk at most kChunkEnds
    bool chunk = false;                    // whether the rows are a chunk; otherwise there are at most kStepRows

    void Add(int32_t token, size_t position, const PageTable* table);
    // Adds the next unread tokens of `text`, at most `limit`, and counts them as kept. If all tokens are then read,
    // wants the logits of the last one and returns true.
    bool Read(size_t limit, CachedText* text);
  };

  // Adds missing weights and caches to `parameters`, which must outlive the result.
  static absl::StatusOr<std::unique_ptr<CachedGpt>> Create(const GptConfig& config, Parameters* parameters,
                                                           const Options& options);
  ~CachedGpt();

  // Adds the rows' tokens to the cache. Returns logits [rows.last.size(), V], valid until the next call.
  absl::StatusOr<const float*> Run(const Rows& rows);

 private:
  using Sizes = std::pair<int64_t, int64_t>;  // numbers of rows, and of rows with logits
  struct Part;

  CachedGpt(const GptConfig& config, Parameters* parameters, const Options& options);
  const GptConfig config_;
  Parameters* const parameters_;
  const Options options_;
  GraphCache<Sizes, Part> parts_;
};

}  // namespace weft

#endif  // WEFT_INFERENCE_GENERATE_CACHED_GPT_H_
