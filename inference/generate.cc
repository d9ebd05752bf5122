// Each round reads the tokens that the cache lacks, for all texts, and then draws one more token for each text.
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

constexpr int64_t kMinCapacity = 64;

}  // namespace

// Two graphs share a cache. `prompt` reads up to `chunk` tokens of each text at once, [B, chunk]. `step` reads the last
// token of each text, [B, 1], and computes the logits of the next token.
struct Generator::Graphs {
  struct Part {
    Tape tape;
    Var token, position;  // i32 [B, T]
    std::unique_ptr<Runner> runner;
  };
  Part prompt, step;
  Var logits;  // [B, 1, V]
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
  WEFT_RETURN_IF_ERROR(generator->GraphsOf(1, std::min(kMinCapacity, config.context)).status());
  return generator;
}

absl::StatusOr<Generator::Graphs*> Generator::GraphsOf(int64_t rows, int64_t capacity) {
  std::unique_ptr<Graphs>& graphs = graphs_[{rows, capacity}];
  if (graphs != nullptr) return graphs.get();
  auto made = std::make_unique<Graphs>();
  made->rows = rows;
  made->capacity = capacity;
  VarList written;
  const auto record = [&](Graphs::Part* part, int64_t length) {
    part->token = part->tape.Input("token", {kI32, {rows, length}}, {.below = config_.vocabulary});
    part->position = part->tape.Input("position", {kI32, {rows, length}}, {.below = capacity, .ignored = -1});
    const AttentionCache cache = {.prefix = absl::StrCat("generate.", rows, "x", capacity),
                                  .capacity = capacity,
                                  .positions = part->position,
                                  .written = &written};
    return Cast(Gpt(config_).Logits(part->token, &cache), kF32);
  };
  record(&made->prompt, std::min(options_.chunk, capacity));
  WEFT_ASSIGN_OR_RETURN(made->prompt.runner,
                        EvalRunner(made->prompt.tape, {.update = written}, parameters_, options_.threads));
  made->logits = record(&made->step, 1);
  WEFT_ASSIGN_OR_RETURN(made->step.runner,
                        EvalRunner(made->step.tape, {.fetch = {made->logits}}, parameters_, options_.threads));
  graphs = std::move(made);
  return graphs.get();
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

// Reads into the cache all tokens of each text that are not there yet, except the last token.
absl::Status Generator::Read(Graphs* graphs, absl::Span<Text> texts) const {
  const size_t chunk = static_cast<size_t>(graphs->prompt.token.dim(1)), rows = static_cast<size_t>(graphs->rows);
  while (true) {
    std::vector<int32_t> tokens(rows * chunk), positions(rows * chunk, -1);
    bool any = false;
    for (size_t row = 0; row < texts.size(); ++row) {
      Text& text = texts[row];
      for (size_t i = row * chunk; !text.done && i < (row + 1) * chunk && text.kept + 1 < text.tokens.size(); ++i) {
        tokens[i] = text.tokens[text.kept];
        positions[i] = static_cast<int32_t>(text.kept++);
        any = true;
      }
    }
    if (!any) return absl::OkStatus();
    const Graphs::Part& part = graphs->prompt;
    WEFT_RETURN_IF_ERROR(part.runner->Run({{part.token, tokens}, {part.position, positions}}).status());
  }
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
  std::vector<int32_t> tokens(static_cast<size_t>(graphs->rows)), positions(tokens.size());
  std::vector<float> penalized;
  while (std::any_of(texts.begin(), texts.end(), [](const Text& text) { return !text.done; })) {
    WEFT_RETURN_IF_ERROR(Read(graphs, texts));
    std::fill(positions.begin(), positions.end(), -1);
    for (size_t row = 0; row < texts.size(); ++row) {
      if (texts[row].done) continue;
      tokens[row] = texts[row].tokens.back();
      positions[row] = static_cast<int32_t>(texts[row].kept++);
    }
    const Graphs::Part& step = graphs->step;
    WEFT_ASSIGN_OR_RETURN(const Outputs out, step.runner->Run({{step.token, tokens}, {step.position, positions}}));
    for (size_t row = 0; row < texts.size(); ++row) {
      Text& text = texts[row];
      if (text.done) continue;
      absl::Span<const float> logits = out[graphs->logits].span<const float>().subspan(row * vocabulary, vocabulary);
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
