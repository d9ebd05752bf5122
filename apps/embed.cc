#include <algorithm>
#include <bit>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weft/apps/commands.h"
#include "weft/apps/flags.h"
#include "weft/apps/lines.h"
#include "weft/core/status.h"
#include "weft/graph/compile.h"
#include "weft/graph/runner.h"
#include "weft/models/weights.h"
#include "weft/text/load_tokenizer.h"

namespace weft {
namespace {

struct EmbedFlags {
  std::string model;
  bool truncate = false;
  int64_t threads = 0;
  std::vector<std::string> files;
  GivenFlags given;
};

Hyperparameters Table(EmbedFlags* flags) {
  return {
      {"model", "a folder with the config.json, model.safetensors and tokenizer of a BERT", &flags->model},
      {"truncate", "cut lines that are longer than the model's context, which are errors else", &flags->truncate},
      {"threads", "workers; 0: one for each core", &flags->threads, {.low = 0, .high = 1024}},
  };
}

// A graph for texts of up to so many tokens. All of them share the weights.
struct Bucket {
  Bucket(const BertConfig& config, Pooling pooling, int64_t length) {
    tokens = tape.Input("tokens", {kI32, {1, length}}, {.below = config.vocabulary});
    lengths = tape.Input("lengths", {kI32, {1}}, {.below = length + 1});
    const Bert bert(config);
    embedding = bert.SentenceEmbedding(bert.Encode(tokens, {.lengths = lengths}), lengths, pooling);
  }

  Tape tape;
  Var tokens, lengths, embedding;
  std::unique_ptr<Runner> runner;
};

class Embedder {
 public:
  static absl::StatusOr<std::unique_ptr<Embedder>> Create(const EmbedFlags& flags) {
    auto embedder = std::unique_ptr<Embedder>(new Embedder(flags));
    WEFT_ASSIGN_OR_RETURN(embedder->tokenizer_, LoadTokenizer(flags.model));
    WEFT_ASSIGN_OR_RETURN(const PublishedBert published, ReadBert(flags.model));
    embedder->config_ = published.config;
    WEFT_ASSIGN_OR_RETURN(embedder->pooling_, ReadPooling(flags.model, published.config.width));
    if (embedder->tokenizer_->vocabulary_size() > published.config.vocabulary) {
      return absl::InvalidArgumentError(absl::StrCat(flags.model, ": the tokenizer has ",
                                                     embedder->tokenizer_->vocabulary_size(),
                                                     " tokens, but the model's table ", published.config.vocabulary));
    }
    const int64_t around = static_cast<int64_t>(embedder->tokenizer_->Wrap({}).ids.size());
    if (published.config.context <= around) {
      return absl::InvalidArgumentError(absl::StrCat(flags.model, ": the model's context is ", published.config.context,
                                                     ", but the format's special tokens are ", around));
    }
    WEFT_RETURN_IF_ERROR(embedder->BucketOf(1).status());  // creates the weights
    // Heads that embeddings don't need may be there, too.
    WEFT_RETURN_IF_ERROR(embedder->parameters_.Set(flags.model + "/model.safetensors", published.weights.tensors(),
                                                   Parameters::kWeights, Parameters::kMayHaveMore));
    return embedder;
  }

  // A view that the next call overwrites.
  absl::StatusOr<absl::Span<const float>> Embed(absl::string_view line) {
    WEFT_ASSIGN_OR_RETURN(std::vector<int32_t> ids, tokenizer_->Encode(line));
    const size_t context = static_cast<size_t>(config_.context), around = tokenizer_->Wrap({}).ids.size();
    if (ids.size() + around > context) {
      if (!flags_.truncate) {
        return absl::InvalidArgumentError(absl::StrCat("it has ", ids.size() + around,
                                                       " tokens, but the model's context is ", context,
                                                       "; --truncate cuts such lines"));
      }
      ids.resize(context - around);
    }
    ids = tokenizer_->Wrap(ids).ids;
    WEFT_ASSIGN_OR_RETURN(Bucket* const bucket, BucketOf(static_cast<int64_t>(ids.size())));
    const std::vector<int32_t> length = {static_cast<int32_t>(ids.size())};
    ids.resize(static_cast<size_t>(bucket->tokens.dim(1)));
    WEFT_ASSIGN_OR_RETURN(const Outputs out, bucket->runner->Run({{bucket->tokens, ids}, {bucket->lengths, length}}));
    return out[bucket->embedding].span<const float>();
  }

 private:
  explicit Embedder(const EmbedFlags& flags) : flags_(flags) {}

  absl::StatusOr<Bucket*> BucketOf(int64_t tokens) {
    constexpr uint64_t kShortest = 16;
    const uint64_t rounded = std::bit_ceil(std::max(kShortest, static_cast<uint64_t>(tokens)));
    const int64_t length = std::min(static_cast<int64_t>(rounded), config_.context);
    std::unique_ptr<Bucket>& bucket = buckets_[length];
    if (bucket == nullptr) {
      auto made = std::make_unique<Bucket>(config_, pooling_, length);
      WEFT_ASSIGN_OR_RETURN(Graph graph, Compile(made->tape, {.fetch = {made->embedding}, .mode = kEval}));
      made->runner = std::make_unique<Runner>(std::move(graph), &parameters_,
                                              RunnerOptions{.threads = static_cast<int>(flags_.threads)});
      WEFT_RETURN_IF_ERROR(made->runner->status());
      bucket = std::move(made);
    }
    return bucket.get();
  }

  const EmbedFlags flags_;
  std::unique_ptr<Tokenizer> tokenizer_;
  BertConfig config_;
  Pooling pooling_ = Pooling::kMean;
  Parameters parameters_{{.draw = false}};
  std::map<int64_t, std::unique_ptr<Bucket>> buckets_;  // by length
};

absl::Status Embed(EmbedFlags flags) {
  WEFT_RETURN_IF_ERROR(SetFromFlags(flags.given, Table(&flags)));
  if (flags.model.empty()) return absl::InvalidArgumentError("--model=FOLDER is missing");
  const absl::StatusOr<std::unique_ptr<Embedder>> embedder = Embedder::Create(flags);
  if (!embedder.ok()) return UsageError(embedder.status());
  return ForEachLine(flags.files, [&](absl::string_view line) -> absl::Status {
    WEFT_ASSIGN_OR_RETURN(const absl::Span<const float> embedding, (*embedder)->Embed(line));
    std::string text;
    for (float x : embedding) absl::StrAppendFormat(&text, "%s%.7g", text.empty() ? "[" : ",", x);
    std::printf("%s]\n", text.c_str());
    return absl::OkStatus();
  });
}

}  // namespace

Command EmbedCommand(CLI::App* weft) {
  auto flags = std::make_shared<EmbedFlags>();
  CLI::App* app = weft->add_subcommand(
      "embed", "Prints a sentence embedding, a JSON array of numbers whose squares sum to 1, for each line of text.");
  AddFlags(app, Table(flags.get()), &flags->given);
  AddFiles(app, &flags->files);
  return {"weft embed", app, [flags] { return Embed(*flags); }};
}

}  // namespace weft
