// Lengths and numbers of texts are rounded up to powers of two, so that few graphs serve all batches.
#include "weft/inference/encode/bert_encoder.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/core/block_formats.h"
#include "weft/text/data/buckets.h"

namespace weft {

// All graphs share the weights.
struct BertEncoder::Bucket : EvalGraph {
  Var tokens, lengths, segments, result;

  absl::Status Record(const BucketSize& size, BertEncoder& encoder) {
    const auto [rows, length] = size;
    const BertConfig& config = encoder.config_;
    tokens = tape.Input("tokens", {kI32, {rows, length}}, {.below = config.vocabulary});
    lengths = tape.Input("lengths", {kI32, {rows}}, {.below = length + 1});
    if (encoder.reads_segments()) segments = tape.Input("segments", {kI32, {rows, length}}, {.below = config.segments});
    result = encoder.record_(Bert(config), tokens, {.segments = segments, .lengths = lengths});
    return Compile({.fetch = {result}}, encoder.options_.runtime, &encoder.parameters_);
  }
};

BertEncoder::BertEncoder(OpenedBert bert, const BertEncoderOptions& options, Record record)
    : options_(options),
      record_(std::move(record)),
      tokenizer_(std::move(bert.tokenizer)),
      before_(TokensAround(*tokenizer_).first.size()),
      config_(bert.model.config) {
  if (options.layers > 0) config_.layers = options.layers;
  if (options.format.lower_case) tokenizer_->Lowercase();
}

BertEncoder::~BertEncoder() = default;

absl::StatusOr<std::unique_ptr<BertEncoder>> BertEncoder::Create(OpenedBert bert, const BertEncoderOptions& options,
                                                                 Record record) {
  const std::string path = bert.path;
  const PublishedBert model = bert.model;
  if (options.pairs && model.config.segment_inputs && model.config.segments < 2) {
    return InvalidArgument(path, ": the model has 1 segment, but a pair of texts needs 2");
  }
  if (options.layers > model.config.layers) {
    return InvalidArgument(path, ": the model has ", model.config.layers, " layers, not ", options.layers);
  }
  auto encoder = std::unique_ptr<BertEncoder>(new BertEncoder(std::move(bert), options, std::move(record)));
  WEFT_RETURN_IF_ERROR(Parameters::Check(path, model.weights.tensors(), ParametersOf(model)));
  WEFT_RETURN_IF_ERROR(ProvideFiniteWeights(path, model.weights, &encoder->parameters_));
  return encoder;
}

absl::StatusOr<std::vector<int32_t>> BertEncoder::Tokens(absl::string_view text) const {
  const SentenceFormat& format = options_.format;
  WEFT_ASSIGN_OR_RETURN(std::vector<int32_t> ids, tokenizer_->Encode(absl::StrCat(format.prompt, text)));
  const bool cut = format.max_length > 0 && format.max_length <= config_.context;
  WEFT_RETURN_IF_ERROR(FitContext(tokenizer_->Wrap({}).ids.size(), cut ? format.max_length : config_.context,
                                  cut || options_.truncate, &ids));
  return ids;
}

absl::StatusOr<std::vector<float>> BertEncoder::Run(absl::Span<const int32_t> text) {
  std::vector<float> result;
  WEFT_RETURN_IF_ERROR(Run({tokenizer_->Wrap(text)}, [&](size_t, absl::Span<const float> values) {
    result.assign(values.begin(), values.end());
  }));
  return result;
}

absl::Status BertEncoder::Run(absl::Span<const ModelInput> inputs, Take take) {
  constexpr int64_t kMinLength = 16;
  std::vector<int64_t> lengths;
  std::set<int64_t> rounded;
  for (const ModelInput& input : inputs) {
    lengths.push_back(static_cast<int64_t>(input.ids.size()));
    rounded.insert(std::min(GraphSize(lengths.back(), kMinLength), config_.context));
  }
  const std::vector<int64_t> buckets(rounded.begin(), rounded.end());
  const BucketBatches batches(buckets, lengths, options_.runtime.batch);
  std::vector<int32_t> tokens, segments, token_counts;
  for (int64_t i = 0; i < batches.size(); ++i) {
    const BucketBatch batch = batches[i];
    const size_t length = static_cast<size_t>(buckets[batch.bucket]);
    const auto texts = static_cast<int64_t>(batch.examples.size());
    const auto rows = static_cast<size_t>(std::min(GraphSize(texts), options_.runtime.batch));
    WEFT_ASSIGN_OR_RETURN(Bucket* const bucket,
                          buckets_.Get({static_cast<int64_t>(rows), buckets[batch.bucket]}, *this));
    tokens.assign(rows * length, 0);
    segments.assign(rows * length, 0);
    token_counts.assign(rows, 1);  // a mean over no token would be NaN in the rows that are not used
    for (size_t row = 0; row < batch.examples.size(); ++row) {
      const auto& [ids, segments_of_ids] = inputs[static_cast<size_t>(batch.examples[row])];
      std::copy(ids.begin(), ids.end(), &tokens[row * length]);
      std::copy(segments_of_ids.begin(), segments_of_ids.end(), &segments[row * length]);
      token_counts[row] = static_cast<int32_t>(ids.size());
    }
    std::vector<FeedPair> feeds = {{bucket->tokens, tokens}, {bucket->lengths, token_counts}};
    if (reads_segments()) feeds.emplace_back(bucket->segments, segments);
    WEFT_ASSIGN_OR_RETURN(const Outputs out, bucket->Run(feeds));
    const absl::Span<const float> all = out[bucket->result].span<const float>();
    for (size_t row = 0; row < batch.examples.size(); ++row) {
      const size_t each = all.size() / rows;
      take(static_cast<size_t>(batch.examples[row]), all.subspan(row * each, each));
    }
  }
  return absl::OkStatus();
}

absl::Span<const float> BertEncoder::HiddenState(absl::Span<const float> hidden, size_t position) const {
  const size_t width = static_cast<size_t>(config_.width);
  return hidden.subspan((before_ + position) * width, width);
}

std::vector<float> BertEncoder::TokenEmbedding(int32_t id) const {
  const absl::StatusOr<Tensor> table = parameters_.Find("embeddings.word_embeddings.weight");
  WEFT_CHECK(table.ok());
  std::vector<float> row(static_cast<size_t>(config_.width));
  const DType dtype = table->type.dtype;
  DecodeWeight(dtype, table->data + id * BytesOf(dtype, config_.width), absl::MakeSpan(row));
  return row;
}

absl::StatusOr<std::unique_ptr<BertEncoder>> OpenSentenceEncoder(const std::string& path, BertEncoderOptions options,
                                                                 const std::string& prompt) {
  WEFT_ASSIGN_OR_RETURN(OpenedBert bert, OpenBert(path));
  WEFT_ASSIGN_OR_RETURN(options.format, ReadSentenceFormat(path, bert.model.config, prompt));
  const auto special = static_cast<int64_t>(bert.tokenizer->Wrap({}).ids.size());
  if (const int64_t length = options.format.max_length; length != 0 && length < special) {
    return InvalidArgument(path, ": the maximum number of tokens is ", length, ", but the special tokens are ",
                           special);
  }
  bert.tokenizer->ReadSpecial(options.special_tokens);
  const Pooling pooling = options.format.pooling;
  return BertEncoder::Create(std::move(bert), options,
                             [pooling](const Bert& model, Var tokens, const BertInputs& inputs) {
                               return model.SentenceEmbedding(model.Encode(tokens, inputs), inputs.lengths, pooling);
                             });
}

}  // namespace weft
