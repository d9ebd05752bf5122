// A BertEncoder is a BERT with its tokenizer. It encodes texts as token ids, and runs a graph of the caller on the ids.
//
//   WEFT_ASSIGN_OR_RETURN(const auto encoder, OpenSentenceEncoder("minilm", {.batch = 32}));
//   WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, encoder->Tokens("a text"));
//   WEFT_ASSIGN_OR_RETURN(const auto embeddings, encoder->Run({ids}));   // one for each text, [C]
#ifndef WEFT_INFERENCE_BERT_ENCODER_H_
#define WEFT_INFERENCE_BERT_ENCODER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/core/parameters.h"
#include "weft/core/tape.h"
#include "weft/formats/weights.h"
#include "weft/inference/open_model.h"
#include "weft/models/bert.h"
#include "weft/text/tokenizer.h"

namespace weft {

struct BertEncoderOptions {
  int64_t layers = 0;     // number of layers to use, counted from the first; 0: all
  bool truncate = false;  // true: cuts texts that exceed the context; false: they are errors
  int64_t batch = 1;      // maximum number of texts in one execution
  int64_t threads = 0;    // 0: one for each core
  // The dtype in which weights are held (CompileOptions::weights). Unset: that of the model's file.
  std::optional<DType> weights;
  // How texts become tokens. Texts that exceed format.max_length are cut, unless the context is smaller. The pooling
  // and `special_tokens`, for Tokenizer::ReadSpecial, are used by OpenSentenceEncoder only.
  SentenceFormat format = {};
  std::optional<bool> special_tokens = {};
};

class BertEncoder {
 public:
  // Records a computation on `tokens`, i32 [B, T], and `lengths`, i32 [B]. Returns the computed value, f32 [B, ...].
  using Record = std::function<Var(const Bert& bert, Var tokens, Var lengths)>;
  // The same for pairs of texts: `inputs` has the lengths and the segments, i32 [B, T].
  using RecordPairs = std::function<Var(const Bert& bert, Var tokens, const BertInputs& inputs)>;

  // Returns InvalidArgument if `options.layers` exceeds the number of the model's layers.
  static absl::StatusOr<std::unique_ptr<BertEncoder>> Create(OpenedBert bert, const BertEncoderOptions& options,
                                                             Record record);
  static absl::StatusOr<std::unique_ptr<BertEncoder>> CreateForPairs(OpenedBert bert, const BertEncoderOptions& options,
                                                                     RecordPairs record);
  ~BertEncoder();

  // Returns the ids of a text, without the special tokens that the model's format puts around it. If the text does not
  // fit the context, it is cut if `truncate` is set; otherwise returns InvalidArgument. options.format applies.
  absl::StatusOr<std::vector<int32_t>> Tokens(absl::string_view text) const;
  // Returns the recorded result for each of `texts`, which are ids from Tokens. If a result has a row for each token,
  // it includes rows for the special tokens around the text, and for padding at the end. Texts of similar lengths run
  // together.
  absl::StatusOr<std::vector<std::vector<float>>> Run(absl::Span<const std::vector<int32_t>> texts);
  // Computes the same results, and calls `take` with the index and result of each text, in any order.
  using Take = std::function<void(size_t text, absl::Span<const float> result)>;
  absl::Status Run(absl::Span<const std::vector<int32_t>> texts, const Take& take);
  // The same for inputs that have their special tokens already. Segments are used by encoders for pairs only.
  absl::StatusOr<std::vector<std::vector<float>>> RunInputs(absl::Span<const ModelInput> inputs);
  absl::Status RunInputs(absl::Span<const ModelInput> inputs, const Take& take);
  // Returns the hidden state [C] of token `position` of a text, not counting special tokens. `hidden`: the result of
  // Run for this text, [T, C], if the graph records HiddenStates.
  absl::Span<const float> HiddenState(absl::Span<const float> hidden, size_t position) const;
  // Returns the row of an id in the table of token embeddings: [C].
  std::vector<float> TokenEmbedding(int32_t id) const;

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const BertConfig& config() const { return config_; }
  Parameters* parameters() { return &parameters_; }  // all weights of the model

 private:
  struct Bucket;

  BertEncoder(OpenedBert bert, const BertEncoderOptions& options, bool pairs, RecordPairs record);
  static absl::StatusOr<std::unique_ptr<BertEncoder>> Create(OpenedBert bert, const BertEncoderOptions& options,
                                                             bool pairs, RecordPairs record);
  absl::StatusOr<Bucket*> BucketOf(int64_t rows, int64_t length);
  int64_t BucketLength(int64_t tokens) const;

  const BertEncoderOptions options_;
  const DType weights_;
  const bool pairs_;  // whether graphs have an input for segments
  const RecordPairs record_;
  const std::unique_ptr<Tokenizer> tokenizer_;
  const size_t before_;  // number of special tokens before a text
  BertConfig config_;    // its layers are those of the options
  Parameters parameters_{{.draw = false}};
  std::map<std::array<int64_t, 2>, std::unique_ptr<Bucket>> buckets_;  // by rows and length
};

// Returns the number of special tokens that the tokenizer's format puts before a text.
size_t TokensBefore(const Tokenizer& tokenizer);

// Records the hidden states of the last layer: f32 [B, T, C].
Var HiddenStates(const Bert& bert, Var tokens, Var lengths);

// Opens a model as OpenBert does. The encoder's results are sentence embeddings [C] of norm 1. The format of texts is
// that of ReadSentenceFormat with `prompt`.
absl::StatusOr<std::unique_ptr<BertEncoder>> OpenSentenceEncoder(const std::string& path, BertEncoderOptions options,
                                                                 const std::string& prompt = "");

}  // namespace weft

#endif  // WEFT_INFERENCE_BERT_ENCODER_H_
