// A published BERT with its tokenizer: texts as token ids, and what a graph computes of them.
#ifndef WEFT_APPS_BERT_ENCODER_H_
#define WEFT_APPS_BERT_ENCODER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/core/parameters.h"
#include "weft/models/bert.h"
#include "weft/text/tokenizer.h"

namespace weft {

struct BertEncoderOptions {
  std::string folder;  // with config.json, model.safetensors and the files of a tokenizer
  int64_t layers = 0;  // so many of the model's, from the first; 0: all
  bool truncate = false;
  int64_t threads = 0;
};

class BertEncoder {
 public:
  // What to compute of tokens i32 [1, T] and lengths i32 [1]: f32.
  using Record = std::function<Var(const Bert& bert, Var tokens, Var lengths)>;

  // Errors are usage errors: they name the folder or the file in it.
  static absl::StatusOr<std::unique_ptr<BertEncoder>> Create(const BertEncoderOptions& options, Record record);
  ~BertEncoder();

  // The ids of a text, without special tokens. A text that, with them, is longer than the context is cut if `truncate`
  // says so, and an error else.
  absl::StatusOr<std::vector<int32_t>> Tokens(absl::string_view text) const;
  // What was recorded, of ids with the model's special tokens around them: a view that the next call overwrites.
  absl::StatusOr<absl::Span<const float>> Run(absl::Span<const int32_t> ids);
  // The row of an id in the table of token embeddings: [C].
  absl::Span<const float> TokenEmbedding(int32_t id) const;

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const BertConfig& config() const { return config_; }

 private:
  struct Bucket;

  BertEncoder(const BertEncoderOptions& options, Record record);
  absl::StatusOr<Bucket*> BucketOf(int64_t tokens);

  const BertEncoderOptions options_;
  const Record record_;
  std::unique_ptr<Tokenizer> tokenizer_;
  BertConfig config_;  // with the layers of the options
  Parameters parameters_{{.draw = false}};
  std::map<int64_t, std::unique_ptr<Bucket>> buckets_;  // by length
};

}  // namespace weft

#endif  // WEFT_APPS_BERT_ENCODER_H_
