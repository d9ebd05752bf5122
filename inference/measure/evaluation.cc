// Each evaluation of a language model compiles one graph and sums losses in f64 over its executions. A batch that is
// not full is filled up with ignored targets. The logits of classifiers are those that they compute for `weft
// classify`.
#include "weft/inference/measure/evaluation.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <utility>

#include "absl/algorithm/container.h"
#include "weft/base/status.h"
#include "weft/core/parameters.h"
#include "weft/core/random.h"
#include "weft/formats/images.h"
#include "weft/formats/weights.h"
#include "weft/inference/runtime/sampling.h"
#include "weft/models/bert.h"
#include "weft/models/gpt.h"
#include "weft/text/data/lines.h"
#include "weft/text/data/masking.h"
#include "weft/text/measures/ngrams.h"

namespace weft {
namespace {

absl::Status NoTokens(const std::string& path) { return InvalidArgument(path, ": there are no tokens in it"); }

// The windows of a text of `tokens` tokens. Window `i` reads `length` tokens from token i · stride on and predicts the
// token after each, except those that window i - 1 predicts.
struct TextWindows {
  size_t tokens, length, stride;

  size_t count() const {
    const size_t rest = tokens - 1 - std::min(tokens - 1, length);  // tokens that the first window doesn't predict
    return 1 + (rest + stride - 1) / stride;
  }
  size_t first_predicted(size_t window) const { return window == 0 ? 1 : (window - 1) * stride + length + 1; }
};

absl::Status CheckOneLabel(const Classifier& classifier) {
  if (classifier.scores() == LabelScores::kSoftmax) return absl::OkStatus();
  return InvalidArgument("the model's problem_type is ",
                         classifier.scores() == LabelScores::kSigmoid ? "multi_label_classification" : "regression",
                         ", but the examples have one label each; wanted single_label_classification");
}

// Returns the score of examples with these logits and right classes.
ClassScore ScoreClasses(absl::Span<const std::vector<float>> logits, absl::Span<const int32_t> classes) {
  ClassScore score = {.count = static_cast<int64_t>(logits.size())};
  std::vector<int32_t> predicted;
  for (size_t i = 0; i < logits.size(); ++i) {
    const auto highest = std::max_element(logits[i].begin(), logits[i].end());
    score.loss += LogSumExp(logits[i]) - logits[i][static_cast<size_t>(classes[i])];
    predicted.push_back(static_cast<int32_t>(highest - logits[i].begin()));
    score.accuracy += predicted.back() == classes[i] ? 1 : 0;
  }
  score.loss /= static_cast<double>(score.count);
  score.accuracy /= static_cast<double>(score.count);
  if (!logits.empty()) score.confusion = CountConfusions(classes, predicted, logits[0].size());
  return score;
}

absl::StatusOr<ClassScore> ScoreNumbers(TextHead* head, const LabelledExamples& examples) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<float> numbers, LabelNumbers(examples));
  WEFT_ASSIGN_OR_RETURN(const std::vector<ClassifierResult> results, head->Run(examples));
  ClassScore score = {.count = static_cast<int64_t>(numbers.size())};
  std::vector<double> right(numbers.begin(), numbers.end()), predicted;
  for (size_t i = 0; i < results.size(); ++i) {
    predicted.push_back(static_cast<double>(results[i].values[0][0]));
    score.loss += (predicted[i] - right[i]) * (predicted[i] - right[i]);
  }
  score.loss /= static_cast<double>(score.count);
  score.pearson = PearsonCorrelation(right, predicted);
  score.spearman = SpearmanCorrelation(right, predicted);
  return score;
}

}  // namespace

absl::StatusOr<ClassScore> EvaluateTexts(TextHead* head, const std::vector<std::string>& files,
                                         LabelledDataOptions data) {
  const std::vector<std::string>& labels = head->labels();
  const bool words = head->task() == TextTask::kTokens, numbers = head->task() == TextTask::kRegression;
  if (!words && !numbers) WEFT_RETURN_IF_ERROR(CheckOneLabel(*head));
  if (numbers && labels.size() > 1) {
    return InvalidArgument("the model predicts ", labels.size(), " numbers, but the examples have one each");
  }
  // Whether examples are pairs follows from the model, and not from the options.
  data.task = words || !head->pairs() ? head->task() : TextTask::kPair;
  if (!head->pairs() && !data.text_pair_column.empty()) {
    return InvalidArgument("text-pair-column: the model takes no pairs of texts");
  }
  WEFT_ASSIGN_OR_RETURN(const LabelledExamples examples, ReadLabelledExamples(absl::MakeConstSpan(files), data));
  if (numbers) return ScoreNumbers(head, examples);
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::vector<int32_t>> ids, LabelIds(examples, labels));
  WEFT_ASSIGN_OR_RETURN(std::vector<ClassifierResult> results, head->Run(examples));
  TaggingScore tags;
  std::vector<std::vector<float>> logits;
  std::vector<int32_t> classes;
  for (size_t i = 0; i < results.size(); ++i) {
    std::vector<std::string> right, predicted;
    for (size_t word = 0; word < ids[i].size(); ++word) {
      std::vector<float>& row = results[i].values[word];
      if (row.empty()) continue;  // the word was cut
      if (words) {
        right.push_back(examples.examples[i].labels[word]);
        predicted.push_back(labels[static_cast<size_t>(std::max_element(row.begin(), row.end()) - row.begin())]);
      }
      logits.push_back(std::move(row));
      classes.push_back(ids[i][word]);
    }
    if (words) tags.Add(right, predicted);
  }
  ClassScore score = ScoreClasses(logits, classes);
  score.tags = std::move(tags);
  return score;
}

absl::StatusOr<ClassScore> EvaluatePictures(PictureClassifier* classifier, const std::vector<std::string>& files,
                                            const std::string& labels) {
  WEFT_RETURN_IF_ERROR(CheckOneLabel(*classifier));
  if (!labels.empty() && files.size() > 1) {
    return InvalidArgument("labels: they are of one file of pictures, but there are several");
  }
  const int64_t class_count = classifier->config().classes;
  std::vector<std::vector<float>> logits;
  std::vector<int32_t> classes;
  for (const std::string& path : files) {
    WEFT_ASSIGN_OR_RETURN(const Images images, ReadImages(path, labels, classifier->processor(), classifier->labels()));
    for (const int32_t label : images.labels) {
      if (label < class_count) continue;
      return InvalidArgument(path, ": the label ", label, " is none of the model's ", class_count, " classes");
    }
    WEFT_ASSIGN_OR_RETURN(const std::vector<std::vector<float>> more, classifier->Run(images));
    logits.insert(logits.end(), more.begin(), more.end());
    classes.insert(classes.end(), images.labels.begin(), images.labels.end());
  }
  return ScoreClasses(logits, classes);
}

absl::StatusOr<LanguageModelScore> EvaluateGpt(const OpenedGpt& gpt, absl::Span<const std::string> paths,
                                               int64_t stride, const RuntimeOptions& runtime) {
  const GptConfig& config = gpt.model.config;
  if (stride < 0 || stride > config.context) {
    return InvalidArgument("stride: ", stride, " is not between 0 and the model's context of ", config.context);
  }
  if (paths.empty()) return InvalidArgument("there is no text to evaluate");
  WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> beginning, BeginningOfText(*gpt.tokenizer, gpt.settings.begin));
  LanguageModelScore score;
  std::vector<std::vector<int32_t>> texts;
  int64_t longest = 0;  // number of tokens of a text that have a next token
  for (const std::string& path : paths) {
    WEFT_ASSIGN_OR_RETURN(const std::string text, ReadText(path));
    const absl::StatusOr<std::vector<int32_t>> ids = gpt.tokenizer->Encode(text);
    if (!ids.ok()) return Annotate(ids.status(), path);
    if (ids->empty()) return NoTokens(path);
    std::vector<int32_t>& tokens = texts.emplace_back(beginning);
    tokens.insert(tokens.end(), ids->begin(), ids->end());
    longest = std::max(longest, static_cast<int64_t>(tokens.size()) - 1);
    score.bytes += static_cast<int64_t>(text.size());
    score.words += static_cast<int64_t>(SplitWords(text).size());
  }
  constexpr int64_t kTokensPerRun = 1024;  // bounds the memory that logits over a large vocabulary take
  const int64_t length = std::min(config.context, longest);
  const auto windows_of = [&](size_t size) -> TextWindows {
    return {size, static_cast<size_t>(length), static_cast<size_t>(stride > 0 ? stride : length)};
  };
  const auto max_rows = static_cast<int64_t>(windows_of(static_cast<size_t>(longest) + 1).count());
  const int64_t rows = std::clamp<int64_t>(kTokensPerRun / length, 1, max_rows);

  Parameters parameters({.draw = false});
  EvalGraph graph;
  const TensorType windows = {kI32, {rows, length}};  // [B, T]
  const Var tokens = graph.tape.Input("tokens", windows, {.below = config.vocabulary});
  const Var targets = graph.tape.Input("targets", windows, {.below = config.vocabulary, .ignored = kIgnoredTarget});
  const Var loss = CrossEntropy(Gpt(config).Logits(tokens), targets);
  WEFT_RETURN_IF_ERROR(ProvideFiniteWeights("the model", gpt.model.weights, &parameters));
  WEFT_RETURN_IF_ERROR(graph.Compile({.fetch = {loss}}, runtime, &parameters));

  double sum = 0;
  const auto size = static_cast<size_t>(rows * length);
  for (const std::vector<int32_t>& text : texts) {
    const TextWindows all = windows_of(text.size());
    for (size_t window = 0; window < all.count(); window += static_cast<size_t>(rows)) {
      std::vector<int32_t> inputs(size, 0), next(size, kIgnoredTarget);
      int64_t predicted = 0;
      for (size_t i = 0; i < size; ++i) {
        const size_t row_window = window + i / all.length, token = row_window * all.stride + i % all.length;
        if (row_window >= all.count() || token + 1 >= text.size()) continue;
        inputs[i] = text[token];
        if (token + 1 < std::max(beginning.size(), all.first_predicted(row_window))) continue;
        next[i] = text[token + 1];
        ++predicted;
      }
      if (predicted == 0) continue;
      WEFT_ASSIGN_OR_RETURN(const Outputs out, graph.Run({{tokens, inputs}, {targets, next}}));
      sum += static_cast<double>(predicted) * out.Scalar(loss);
      score.tokens += predicted;
    }
  }
  score.loss = sum / static_cast<double>(score.tokens);
  score.perplexity = std::exp(score.loss);
  score.word_perplexity = std::exp(sum / static_cast<double>(score.words));
  score.byte_perplexity = std::exp(sum / static_cast<double>(score.bytes));
  score.bits_per_byte = sum / std::numbers::ln2 / static_cast<double>(score.bytes);
  return score;
}

absl::StatusOr<ClassScore> EvaluateMaskedTokens(const OpenedBert& bert, absl::Span<const std::string> paths,
                                                double fraction, uint64_t seed, const RuntimeOptions& runtime) {
  if (paths.empty()) return InvalidArgument("there is no text to evaluate");
  WEFT_RETURN_IF_ERROR(CheckGuessesMasked(bert));
  const BertConfig& config = bert.model.config;
  const Tokenizer& tokenizer = *bert.tokenizer;
  const size_t special = tokenizer.Wrap({}).ids.size(), max_window = static_cast<size_t>(config.context) - special;
  std::vector<std::vector<int32_t>> texts;
  size_t longest = 0;  // window
  for (const std::string& path : paths) {
    WEFT_ASSIGN_OR_RETURN(const std::string text, ReadText(path));
    WEFT_ASSIGN_OR_RETURN(texts.emplace_back(), EncodeText(path, text, tokenizer));
    if (texts.back().empty()) return NoTokens(path);
    longest = std::min(std::max(longest, texts.back().size()), max_window);
  }
  std::vector<absl::Span<const int32_t>> windows;
  for (const std::vector<int32_t>& text : texts) {
    for (size_t begin = 0; begin < text.size(); begin += longest) {
      windows.push_back(absl::MakeConstSpan(text).subspan(begin, longest));
    }
  }
  const auto count_masked = [&](size_t window) {
    return std::max<int64_t>(1, std::llround(fraction * static_cast<double>(window)));
  };
  const int64_t rows = std::min(runtime.batch, static_cast<int64_t>(windows.size()));
  const auto length = static_cast<int64_t>(longest + special);
  const int64_t guesses = rows * count_masked(longest);  // B·M

  Parameters parameters({.draw = false});
  EvalGraph graph;
  Tape& tape = graph.tape;
  const Var tokens = tape.Input("tokens", {kI32, {rows, length}}, {.below = config.vocabulary});
  const Var lengths = tape.Input("lengths", {kI32, {rows}}, {.below = length + 1});
  const Var positions = tape.Input("positions", {kI32, {guesses}}, {.below = rows * length});
  const Var targets = tape.Input("targets", {kI32, {guesses}}, {.below = config.vocabulary, .ignored = kIgnoredTarget});
  const Bert model(config);
  const Var hidden = Reshape(model.Encode(tokens, {.lengths = lengths}), {rows * length, config.width});
  const Var logits = model.MaskedTokens(Embedding(hidden, positions));  // [B·M, V]
  const Var loss = CrossEntropy(logits, targets), correct = CountCorrect(logits, targets);
  WEFT_RETURN_IF_ERROR(ProvideFiniteWeights(bert.path, bert.model.weights, &parameters));
  WEFT_RETURN_IF_ERROR(graph.Compile({.fetch = {loss, correct}}, runtime, &parameters));

  ClassScore score;
  MaskingOptions masking = {.mask = *tokenizer.special_tokens().mask, .vocabulary = config.vocabulary};
  const auto before = static_cast<std::ptrdiff_t>(TokensAround(tokenizer).first.size());
  for (size_t begin = 0; begin < windows.size(); begin += static_cast<size_t>(rows)) {
    std::vector<int32_t> token_ids(static_cast<size_t>(rows * length));  // [B, T]
    std::vector<int32_t> row_lengths(static_cast<size_t>(rows));         // [B]
    std::vector<int32_t> masked_positions, target_ids;                   // [B·M]; positions count through all rows
    int64_t chosen = 0;                                                  // number of masked tokens
    for (size_t i = begin; i < std::min(begin + static_cast<size_t>(rows), windows.size()); ++i) {
      const std::vector<int32_t> ids = tokenizer.Wrap(windows[i]).ids;
      const size_t first = (i - begin) * static_cast<size_t>(length);  // of the row's tokens
      const absl::Span<int32_t> row = absl::MakeSpan(token_ids).subspan(first, ids.size());
      absl::c_copy(ids, row.begin());
      row_lengths[i - begin] = static_cast<int32_t>(ids.size());
      std::vector<bool> maskable(ids.size());
      std::fill_n(maskable.begin() + before, windows[i].size(), true);
      masking.count = count_masked(windows[i].size());
      // The masked tokens depend on the seed and the window's number alone, so the size of the batch changes nothing.
      const RandomStream random = {.seed = seed, .step = static_cast<uint32_t>(i)};
      MaskedPositions mask;
      MaskTokens(maskable, 1, masking, random, row, &mask);
      for (const int32_t index : mask.indices) masked_positions.push_back(index + static_cast<int32_t>(first));
      target_ids.insert(target_ids.end(), mask.targets.begin(), mask.targets.end());
      chosen += mask.chosen;
    }
    masked_positions.resize(static_cast<size_t>(guesses));
    target_ids.resize(static_cast<size_t>(guesses), kIgnoredTarget);
    WEFT_ASSIGN_OR_RETURN(
        const Outputs out,
        graph.Run({{tokens, token_ids}, {lengths, row_lengths}, {positions, masked_positions}, {targets, target_ids}}));
    score.count += chosen;
    score.loss += static_cast<double>(chosen) * out.Scalar(loss);
    score.accuracy += out.Scalar(correct);
  }
  score.loss /= static_cast<double>(score.count);
  score.accuracy /= static_cast<double>(score.count);
  return score;
}

}  // namespace weft
