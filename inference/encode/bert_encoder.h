// A BertEncoder is a BERT with its tokenizer. It encodes texts as token ids, and runs a graph of the caller on the ids.
//
//   WEFT_ASSIGN_OR_RETURN(const auto encoder, OpenSentenceEncoder("minilm", {.truncate = true}));
//   WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, encoder->Tokens("a text"));
//   WEFT_ASSIGN_OR_RETURN(const std::vector<float> embedding, encoder->Run(ids));   // [C]
#ifndef WEFT_INFERENCE_ENCODE_BERT_ENCODER_H_
#define WEFT_INFERENCE_ENCODE_BERT_ENCODER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weft/core/parameters.h"
#include "weft/core/tape.h"
#include "weft/formats/weights.h"
#include "weft/inference/runtime/open_model.h"
#include "weft/inference/runtime/runtime.h"
#include "weft/models/bert.h"
#include "weft/text/tokenizers/tokenizer.h"

namespace weft {

struct BertEncoderOptions {
  RuntimeOptions runtime = {};
  int64_t layers = 0;     // number of layers to use, counted from the first; 0: all
  bool truncate = false;  // true: cuts texts that exceed the context; false: they are errors
  bool pairs = false;     // true: inputs are pairs of texts, and graphs read their segments
  // How texts become tokens. Texts that exceed format.max_length are cut, unless the context is smaller. The pooling
  // and `special_tokens`, for Tokenizer::ReadSpecial, are used by OpenSentenceEncoder only.
  SentenceFormat format = {};
  std::optional<bool> special_tokens = {};
};

class BertEncoder {
 public:
  // Records a computation on `tokens`, i32 [B, T]. `inputs` has the lengths, i32 [B], and of pairs the segments, i32
  // [B, T]. Returns the computed value, f32 [B, ...].
  using Record = std::function<Var(const Bert& bert, Var tokens, const BertInputs& inputs)>;

  // Returns InvalidArgument if `options.layers` exceeds the number of the model's layers, or if the options ask for
  // pairs and the model has one segment.
  static absl::StatusOr<std::unique_ptr<BertEncoder>> Create(OpenedBert bert, const BertEncoderOptions& options,
                                                             Record record);
  ~BertEncoder();

  // Returns the ids of a text, without the special tokens that the model's format puts around it. If the text does not
  // fit the context, it is cut if `truncate` is set; otherwise returns InvalidArgument. options.format applies.
  absl::StatusOr<std::vector<int32_t>> Tokens(absl::string_view text) const;
  // Returns the recorded result for a text, ids from Tokens. If the result has a row for each token, it includes rows
  // for the special tokens around the text, and for padding at the end.
  absl::StatusOr<std::vector<float>> Run(absl::Span<const int32_t> text);
  // Computes such results for inputs that have their special tokens already, and calls `take` with the index and result
  // of each, in any order. Inputs of similar lengths run together. Segments are used by encoders for pairs only.
  using Take = absl::FunctionRef<void(size_t input, absl::Span<const float> result)>;
  absl::Status Run(absl::Span<const ModelInput> inputs, Take take);
  // Returns the hidden state [C] of token `position` of a text, not counting special tokens. `hidden`: the result of
  // Run for this text, [T, C], if the graph records Bert::Encode.
  absl::Span<const float> HiddenState(absl::Span<const float> hidden, size_t position) const;
  // Returns the row of an id in the table of token embeddings: [C].
  std::vector<float> TokenEmbedding(int32_t id) const;

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const BertConfig& config() const { return config_; }
  Parameters* parameters() { return &parameters_; }  // all weights of the model

 private:
  using BucketSize = std::pair<int64_t, int64_t>;  // number of texts, and the length of the longest
  struct Bucket;

  BertEncoder(OpenedBert bert, const BertEncoderOptions& options, Record record);

  bool reads_segments() const { return options_.pairs && config_.segment_inputs; }

  const BertEncoderOptions options_;
  const Record record_;
  const std::unique_ptr<Tokenizer> tokenizer_;
  const size_t before_;  // number of special tokens before a text
  BertConfig config_;    // its layers are those of the options
  Parameters parameters_{{.draw = false}};
  GraphCache<BucketSize, Bucket> buckets_;
};

// Opens a model as OpenBert does. The encoder's results are sentence embeddings [C] of norm 1. The format of texts is
// that of ReadSentenceFormat with `prompt`.
absl::StatusOr<std::unique_ptr<BertEncoder>> OpenSentenceEncoder(const std::string& path, BertEncoderOptions options,
                                                                 const std::string& prompt = "");

}  // namespace weft

#endif  // WEFT_INFERENCE_ENCODE_BERT_ENCODER_H_
