// Each round reads tokens that the cache lacks, for all texts, and then draws a token for each text whose tokens are
// all read.
#include "weft/inference/generate.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "weft/core/random.h"
#include "weft/core/status.h"
#include "weft/core/tape.h"
#include "weft/inference/eval_runner.h"
#include "weft/inference/input_tokens.h"

namespace weft {
namespace {

constexpr int64_t kMinCapacity = 64, kMinChunk = 16;

}  // namespace

// Graphs of one size share a cache. Each reads up to `length` tokens of each text, [B, length], and computes the logits
// after the last of them.
struct Generator::Part {
  Tape tape;
  Var token, position;  // i32 [B, T]
  Var last;             // i32 [B]: the row of each text's last token
  Var logits;           // f32 [B, V]
  std::unique_ptr<Runner> runner;
};

struct Generator::Graphs {
  std::map<int64_t, std::unique_ptr<Part>> parts;  // by length
  int64_t rows, capacity;
};

struct Generator::Text {
  std::vector<int32_t> tokens;  // tokens in the context, newest last
  size_t kept = 0;              // number of these tokens that are in the cache
  std::vector<int32_t> seen;    // distinct tokens of prompt and continuation, for a repetition penalty
  std::vector<int32_t> continuation;
  size_t prompt = 0;  // the index of the prompt
  bool done = false;
};

Generator::Generator(const GptConfig& config, Parameters* parameters, const GeneratorOptions& options)
    : config_(config), parameters_(parameters), options_(options) {}

Generator::~Generator() = default;

absl::StatusOr<std::unique_ptr<Generator>> Generator::Create(const GptConfig& config, Parameters* parameters,
                                                             const GeneratorOptions& options) {
  WEFT_RETURN_IF_ERROR(Validate(config));
  if (options.batch < 1 || options.chunk < 1) {
    return InvalidArgument("generate: batch ", options.batch, " and chunk ", options.chunk, " must be at least 1");
  }
  auto generator = std::unique_ptr<Generator>(new Generator(config, parameters, options));
  WEFT_ASSIGN_OR_RETURN(Graphs* const graphs, generator->GraphsOf(1, std::min(kMinCapacity, config.context)));
  WEFT_RETURN_IF_ERROR(generator->PartOf(graphs, 1).status());
  return generator;
}

absl::StatusOr<Generator::Graphs*> Generator::GraphsOf(int64_t rows, int64_t capacity) {
  std::unique_ptr<Graphs>& graphs = graphs_[{rows, capacity}];
  if (graphs != nullptr) return graphs.get();
  auto made = std::make_unique<Graphs>();
  made->rows = rows;
  made->capacity = capacity;
  graphs = std::move(made);
  return graphs.get();
}

absl::StatusOr<Generator::Part*> Generator::PartOf(Graphs* graphs, int64_t length) {
  std::unique_ptr<Part>& part = graphs->parts[length];
  if (part != nullptr) return part.get();
  auto made = std::make_unique<Part>();
  const int64_t rows = graphs->rows, capacity = graphs->capacity;
  made->token = made->tape.Input("token", {kI32, {rows, length}}, {.below = config_.vocabulary});
  made->position = made->tape.Input("position", {kI32, {rows, length}}, {.below = capacity, .ignored = -1});
  made->last = made->tape.Input("last", {kI32, {rows}}, {.below = rows * length});
  const AttentionCache cache = {
      .prefix = absl::StrCat("generate.", rows, "x", capacity), .capacity = capacity, .positions = made->position};
  made->logits = Cast(Gpt(config_).LogitsOf(made->last, made->token, &cache), kF32);
  WEFT_ASSIGN_OR_RETURN(made->runner, EvalRunner(made->tape, {.fetch = {made->logits}, .weights = options_.weights},
                                                 parameters_, options_.threads));
  part = std::move(made);
  return part.get();
}

absl::Status Generator::Check(absl::Span<const std::vector<int32_t>> prompts, const GenerateOptions& options) const {
  WEFT_RETURN_IF_ERROR(Annotate(Validate(options.sampling), "generate"));
  if (options.length < 0) {
    return InvalidArgument("generate: length is ", options.length, ", wanted at least 0");
  }
  for (size_t i = 0; i < prompts.size(); ++i) {
    const int64_t longest = options.truncate ? std::numeric_limits<int64_t>::max() : config_.context;
    WEFT_RETURN_IF_ERROR(CheckTokens(absl::StrCat("generate: prompt ", i), prompts[i], longest, config_.vocabulary));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::vector<int32_t>>> Generator::Generate(absl::Span<const std::vector<int32_t>> prompts,
                                                                      const GenerateOptions& options, Sink sink) {
  WEFT_RETURN_IF_ERROR(Check(prompts, options));
  std::vector<std::vector<int32_t>> continuations;
  const size_t batch = static_cast<size_t>(options_.batch), context = static_cast<size_t>(config_.context);
  for (size_t begin = 0; begin < prompts.size(); begin += batch) {
    std::vector<Text> texts;
    for (size_t i = begin; i < std::min(begin + batch, prompts.size()); ++i) {
      const size_t size = std::min(prompts[i].size(), context);
      texts.push_back({.tokens = {prompts[i].end() - static_cast<std::ptrdiff_t>(size), prompts[i].end()},
                       .prompt = i,
                       .done = options.length == 0});
      if (options.sampling.repetition_penalty == 1) continue;
      std::vector<int32_t>& seen = texts.back().seen = texts.back().tokens;
      std::sort(seen.begin(), seen.end());
      seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
    }
    WEFT_RETURN_IF_ERROR(GenerateBatch(absl::MakeSpan(texts), options, sink));
    for (Text& text : texts) continuations.push_back(std::move(text.continuation));
  }
  return continuations;
}

// Runs one graph, which adds tokens of each text to the cache: all tokens that the cache lacks, or as many as the graph
// takes. Returns the logits [rows, V]: row i follows the last token that was added for text i.
absl::StatusOr<const float*> Generator::Read(Graphs* graphs, absl::Span<Text> texts) {
  int64_t longest = 1;
  for (const Text& text : texts) {
    if (!text.done) longest = std::max(longest, static_cast<int64_t>(text.tokens.size() - text.kept));
  }
  // A prompt is read in chunks whose lengths are powers of two, the longest first.
  const int64_t whole = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(longest)));
  const int64_t chunk = longest == 1 ? 1 : std::max(whole, kMinChunk);
  const int64_t length = std::min({chunk, options_.chunk, graphs->capacity});
  WEFT_ASSIGN_OR_RETURN(const Part* const part, PartOf(graphs, length));
  const size_t size = static_cast<size_t>(length), rows = static_cast<size_t>(graphs->rows);
  std::vector<int32_t> tokens(rows * size), positions(rows * size, -1), last(rows);
  for (size_t row = 0; row < texts.size(); ++row) {
    Text& text = texts[row];
    size_t at = row * size;
    for (; !text.done && at < (row + 1) * size && text.kept < text.tokens.size(); ++at) {
      tokens[at] = text.tokens[text.kept];
      positions[at] = static_cast<int32_t>(text.kept++);
    }
    last[row] = static_cast<int32_t>(std::max(at, row * size + 1) - 1);
  }
  WEFT_ASSIGN_OR_RETURN(const Outputs out,
                        part->runner->Run({{part->token, tokens}, {part->position, positions}, {part->last, last}}));
  return out[part->logits].as<float>();
}

absl::Status Generator::GenerateBatch(absl::Span<Text> texts, const GenerateOptions& options, Sink sink) {
  const int64_t batch = static_cast<int64_t>(std::bit_ceil(texts.size()));
  int64_t longest = kMinCapacity;
  for (const Text& text : texts) {
    longest = std::max(longest, static_cast<int64_t>(text.tokens.size()) + std::min(options.length, config_.context));
  }
  const int64_t capacity =
      std::min(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(longest))), config_.context);
  WEFT_ASSIGN_OR_RETURN(Graphs* const graphs, GraphsOf(std::min(batch, options_.batch), capacity));
  const RandomStream random = {.seed = options.sampling.seed, .stream = kSampleStream};
  const size_t vocabulary = static_cast<size_t>(config_.vocabulary), context = static_cast<size_t>(config_.context);
  std::vector<float> penalized;
  while (std::any_of(texts.begin(), texts.end(), [](const Text& text) { return !text.done; })) {
    WEFT_ASSIGN_OR_RETURN(const float* const all_logits, Read(graphs, texts));
    for (size_t row = 0; row < texts.size(); ++row) {
      Text& text = texts[row];
      if (text.done || text.kept < text.tokens.size()) continue;
      absl::Span<const float> logits(all_logits + row * vocabulary, vocabulary);
      if (options.sampling.repetition_penalty != 1) {
        penalized.assign(logits.begin(), logits.end());
        PenalizeRepetition(text.seen, options.sampling.repetition_penalty, absl::MakeSpan(penalized));
        logits = penalized;
      }
      const double uniform = random.Uniform(text.continuation.size());
      const int32_t token = SampleToken(logits, options.sampling, uniform);
      if (std::find(options.stop.begin(), options.stop.end(), token) != options.stop.end()) {
        text.done = true;
        continue;
      }
      text.continuation.push_back(token);
      const bool more = sink(text.prompt, token);
      text.done = !more || static_cast<int64_t>(text.continuation.size()) == options.length;
      if (options.sampling.repetition_penalty != 1 &&
          std::find(text.seen.begin(), text.seen.end(), token) == text.seen.end()) {
        text.seen.push_back(token);
      }
      if (text.tokens.size() == context) {
        text.tokens.erase(text.tokens.begin(), text.tokens.end() - static_cast<std::ptrdiff_t>(context / 2));
        text.kept = 0;
      }
      text.tokens.push_back(token);
    }
  }
  return absl::OkStatus();
}

}  // namespace weft
