#include "weft/apps/bert_encoder.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "weft/apps/flags.h"
#include "weft/core/status.h"
#include "weft/graph/compile.h"
#include "weft/graph/runner.h"
#include "weft/models/weights.h"
#include "weft/text/load_tokenizer.h"

namespace weft {
namespace {

// Whether the tokenizer's ids and special tokens fit the model.
absl::Status CheckTokenizer(const std::string& folder, const Tokenizer& tokenizer, const BertConfig& config) {
  if (tokenizer.vocabulary_size() > config.vocabulary) {
    return absl::InvalidArgumentError(absl::StrCat(folder, ": the tokenizer has ", tokenizer.vocabulary_size(),
                                                   " tokens, but the model's table ", config.vocabulary));
  }
  const int64_t around = static_cast<int64_t>(tokenizer.Wrap({}).ids.size());
  if (config.context > around) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(folder, ": the model's context is ", config.context,
                                                 ", but the format's special tokens are ", around));
}

}  // namespace

// A graph for texts of up to so many tokens. All of them share the weights.
struct BertEncoder::Bucket {
  Bucket(const BertConfig& config, int64_t length, const Record& record) {
    tokens = tape.Input("tokens", {kI32, {1, length}}, {.below = config.vocabulary});
    lengths = tape.Input("lengths", {kI32, {1}}, {.below = length + 1});
    result = record(Bert(config), tokens, lengths);
  }

  Tape tape;
  Var tokens, lengths, result;
  std::unique_ptr<Runner> runner;
};

BertEncoder::BertEncoder(const BertEncoderOptions& options, Record record)
    : options_(options), record_(std::move(record)) {}

BertEncoder::~BertEncoder() = default;

absl::StatusOr<std::unique_ptr<BertEncoder>> BertEncoder::Create(const BertEncoderOptions& options, Record record) {
  auto encoder = std::unique_ptr<BertEncoder>(new BertEncoder(options, std::move(record)));
  const auto load = [&]() -> absl::Status {
    WEFT_ASSIGN_OR_RETURN(encoder->tokenizer_, LoadTokenizer(options.folder));
    WEFT_ASSIGN_OR_RETURN(const PublishedBert published, ReadBert(options.folder));
    WEFT_RETURN_IF_ERROR(CheckTokenizer(options.folder, *encoder->tokenizer_, published.config));
    if (options.layers > published.config.layers) {
      return absl::InvalidArgumentError(
          absl::StrCat(options.folder, ": the model has ", published.config.layers, " layers, not ", options.layers));
    }
    encoder->config_ = published.config;
    if (options.layers > 0) encoder->config_.layers = options.layers;
    WEFT_RETURN_IF_ERROR(encoder->BucketOf(1).status());  // creates the weights
    // Heads and layers that aren't needed may be there, too.
    return encoder->parameters_.Set(options.folder + "/model.safetensors", published.weights.tensors(),
                                    Parameters::kWeights, Parameters::kMayHaveMore);
  };
  WEFT_RETURN_IF_ERROR(UsageError(load()));
  return encoder;
}

absl::StatusOr<std::vector<int32_t>> BertEncoder::Tokens(absl::string_view text) const {
  WEFT_ASSIGN_OR_RETURN(std::vector<int32_t> ids, tokenizer_->Encode(text));
  const size_t context = static_cast<size_t>(config_.context), around = tokenizer_->Wrap({}).ids.size();
  if (ids.size() + around <= context) return ids;
  if (!options_.truncate) {
    return absl::InvalidArgumentError(absl::StrCat("it has ", ids.size() + around,
                                                   " tokens, but the model's context is ", context,
                                                   "; --truncate cuts such lines"));
  }
  ids.resize(context - around);
  return ids;
}

absl::StatusOr<absl::Span<const float>> BertEncoder::Run(absl::Span<const int32_t> ids) {
  std::vector<int32_t> tokens = tokenizer_->Wrap(ids).ids;
  WEFT_ASSIGN_OR_RETURN(Bucket* const bucket, BucketOf(static_cast<int64_t>(tokens.size())));
  const std::vector<int32_t> length = {static_cast<int32_t>(tokens.size())};
  tokens.resize(static_cast<size_t>(bucket->tokens.dim(1)));
  WEFT_ASSIGN_OR_RETURN(const Outputs out, bucket->runner->Run({{bucket->tokens, tokens}, {bucket->lengths, length}}));
  return out[bucket->result].span<const float>();
}

absl::Span<const float> BertEncoder::TokenEmbedding(int32_t id) const {
  const absl::StatusOr<Tensor> table = parameters_.Find("embeddings.word_embeddings.weight");
  WEFT_CHECK(table.ok());
  const size_t width = static_cast<size_t>(config_.width);
  return table->span<const float>().subspan(static_cast<size_t>(id) * width, width);
}

absl::StatusOr<BertEncoder::Bucket*> BertEncoder::BucketOf(int64_t tokens) {
  constexpr uint64_t kShortest = 16;
  const uint64_t rounded = std::bit_ceil(std::max(kShortest, static_cast<uint64_t>(tokens)));
  const int64_t length = std::min(static_cast<int64_t>(rounded), config_.context);
  std::unique_ptr<Bucket>& bucket = buckets_[length];
  if (bucket == nullptr) {
    auto made = std::make_unique<Bucket>(config_, length, record_);
    WEFT_ASSIGN_OR_RETURN(Graph graph, Compile(made->tape, {.fetch = {made->result}, .mode = kEval}));
    made->runner = std::make_unique<Runner>(std::move(graph), &parameters_,
                                            RunnerOptions{.threads = static_cast<int>(options_.threads)});
    WEFT_RETURN_IF_ERROR(made->runner->status());
    bucket = std::move(made);
  }
  return bucket.get();
}

}  // namespace weft
