// A BERT with its tokenizer: texts as token ids, and what a graph computes of them.
//
//   WEFT_ASSIGN_OR_RETURN(OpenedBert bert, OpenBert(flags.model));
//   WEFT_ASSIGN_OR_RETURN(const auto encoder, BertEncoder::Create(std::move(bert), {.batch = 32}, record));
//   WEFT_ASSIGN_OR_RETURN(const auto results, encoder->Run(texts));   // results[i] is of texts[i]
#ifndef WEFT_INFERENCE_BERT_ENCODER_H_
#define WEFT_INFERENCE_BERT_ENCODER_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/core/parameters.h"
#include "weft/inference/open_model.h"
#include "weft/models/bert.h"

namespace weft {

struct BertEncoderOptions {
  int64_t layers = 0;  // so many of the model's, from the first; 0: all
  bool truncate = false;
  int64_t batch = 1;  // the most texts of one run
  int64_t threads = 0;
};

class BertEncoder {
 public:
  // What to compute of tokens i32 [B, T] and lengths i32 [B]: f32 [B, ...].
  using Record = std::function<Var(const Bert& bert, Var tokens, Var lengths)>;

  // InvalidArgument if the model has fewer layers than the options ask for.
  static absl::StatusOr<std::unique_ptr<BertEncoder>> Create(OpenedBert bert, const BertEncoderOptions& options,
                                                             Record record);
  ~BertEncoder();

  // The ids of a text, without special tokens; with `special`, those that are written out are read as such. A text
  // that, with those around it, is longer than the context is cut if `truncate` says so, and an error else.
  absl::StatusOr<std::vector<int32_t>> Tokens(absl::string_view text, bool special = false) const;
  // What was recorded, of each text, ids without the special tokens that the model's format puts around them. Results
  // that have a row for each token have more of them, for padding. Texts of like length are run together.
  absl::StatusOr<std::vector<std::vector<float>>> Run(absl::Span<const std::vector<int32_t>> texts);
  // The same, given to `take` text by text, in any order, with the text's index.
  using Take = std::function<void(size_t text, absl::Span<const float> result)>;
  absl::Status Run(absl::Span<const std::vector<int32_t>> texts, const Take& take);
  // The row of an id in the table of token embeddings: [C].
  absl::Span<const float> TokenEmbedding(int32_t id) const;

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const BertConfig& config() const { return config_; }
  const std::vector<std::string>& labels() const { return labels_; }  // of the classifier
  Parameters* parameters() { return &parameters_; }                   // all weights of the model

 private:
  struct Bucket;

  BertEncoder(OpenedBert bert, const BertEncoderOptions& options, Record record);
  absl::StatusOr<Bucket*> BucketOf(int64_t rows, int64_t length);
  int64_t BucketLength(int64_t tokens) const;

  const BertEncoderOptions options_;
  const Record record_;
  const std::unique_ptr<Tokenizer> tokenizer_;
  BertConfig config_;  // with the layers of the options
  const std::vector<std::string> labels_;
  Parameters parameters_{{.draw = false}};
  std::map<std::array<int64_t, 2>, std::unique_ptr<Bucket>> buckets_;  // by rows and length
};

}  // namespace weft

#endif  // WEFT_INFERENCE_BERT_ENCODER_H_
