// A BERT runs texts of similar lengths together (BertEncoder). A ViT's graph has a fixed batch: the last batch is
// filled up with zeros, and the results of these rows are dropped.
#include "weft/inference/encode/classifier.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "weft/base/status.h"
#include "weft/formats/model_formats.h"
#include "weft/inference/runtime/sampling.h"
#include "weft/text/data/lines.h"

namespace weft {
std::vector<LabelProbability> RankLabels(absl::Span<const std::string> labels, absl::Span<const float> logits,
                                         LabelScores scores) {
  std::vector<double> values(logits.begin(), logits.end());
  if (scores == LabelScores::kSoftmax) values = Probabilities(logits);
  if (scores == LabelScores::kSigmoid) {
    for (double& value : values) value = 1 / (1 + std::exp(-value));
  }
  std::vector<LabelProbability> ranked;
  for (const int32_t i : Largest<double>(values, values.size())) {
    ranked.push_back({labels[static_cast<size_t>(i)], values[static_cast<size_t>(i)], i});
  }
  return ranked;
}

TextHead::TextHead(const OpenedBert& bert, const BertEncoderOptions& options)
    : Classifier(bert.model.labels, bert.model.scores, bert.model.task),
      options_(options),
      pairs_(bert.model.pairs || options.pairs) {}

absl::StatusOr<std::unique_ptr<TextHead>> TextHead::Create(OpenedBert bert, const BertEncoderOptions& options) {
  auto head = std::unique_ptr<TextHead>(new TextHead(bert, options));
  const TextTask task = head->task();
  const auto classes = static_cast<int64_t>(head->labels().size());
  if (classes == 0) return absl::UnimplementedError(absl::StrCat(bert.path, ": the model has no classifier"));
  if (task == TextTask::kTokens && head->pairs_) {
    return InvalidArgument(bert.path, ": the model labels words, and takes no pairs of texts");
  }
  const auto record = [task, classes](const Bert& model, Var tokens, const BertInputs& inputs) {
    const Var hidden = model.Encode(tokens, inputs);
    return task == TextTask::kTokens ? model.Classify(hidden, classes)
                                     : model.ClassifyText(hidden, inputs.lengths, classes);
  };
  bert.tokenizer->ReadSpecial(options.special_tokens);
  BertEncoderOptions encoder = options;
  encoder.pairs = head->pairs_;
  WEFT_ASSIGN_OR_RETURN(head->encoder_, BertEncoder::Create(std::move(bert), encoder, record));
  return head;
}

absl::StatusOr<std::vector<std::string>> TextHead::TextsOf(absl::string_view line) const {
  if (task() == TextTask::kTokens) {
    return std::vector<std::string>(absl::StrSplit(line, absl::ByAnyChar(" \t\r\n\v\f"), absl::SkipEmpty()));
  }
  if (!pairs_) return std::vector<std::string>{std::string(line)};
  std::vector<std::string> texts = absl::StrSplit(line, '\t');
  if (texts.size() == 2) return texts;
  return InvalidArgument("there are ", texts.size() - 1, " tabs; wanted a text, a tab and a second text");
}

// Appends an example with the input that the model reads of it.
absl::Status TextHead::Add(absl::StatusOr<std::vector<std::string>> texts, std::vector<Example>* examples) const {
  WEFT_RETURN_IF_ERROR(texts.status());
  const EncodeLimits limits = {encoder_->config().context, options_.truncate};
  const Tokenizer& tokenizer = encoder_->tokenizer();
  WordsInput input;
  if (task() == TextTask::kTokens) {
    if (!texts->empty()) {
      WEFT_ASSIGN_OR_RETURN(input, InputOfWords(*texts, tokenizer, limits));
    }
  } else if (pairs_) {
    WEFT_ASSIGN_OR_RETURN(input.input, PairInput((*texts)[0], (*texts)[1], tokenizer, limits));
  } else {  // an empty text has a result, too, if the tokenizer adds special tokens
    WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, encoder_->Tokens((*texts)[0]));
    input.input = tokenizer.Wrap(ids);
  }
  if (task() != TextTask::kTokens && input.input.ids.empty()) {
    return InvalidArgument("the text has no tokens, and the tokenizer adds no special tokens to it");
  }
  examples->push_back({*std::move(texts), std::move(input)});
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ClassifierResult>> TextHead::Run(std::vector<Example> examples) {
  std::vector<ClassifierResult> results(examples.size());
  std::vector<ModelInput> inputs;
  std::vector<size_t> indices;  // of the examples that have tokens
  for (size_t i = 0; i < examples.size(); ++i) {
    if (task() == TextTask::kTokens) results[i].words = std::move(examples[i].texts);
    if (examples[i].input.input.ids.empty()) continue;
    inputs.push_back(examples[i].input.input);
    indices.push_back(i);
  }
  const auto take = [&](size_t input, absl::Span<const float> values) {
    ClassifierResult& result = results[indices[input]];
    if (task() != TextTask::kTokens) {
      result.values.emplace_back(values.begin(), values.end());
      return;
    }
    for (const int32_t first : examples[indices[input]].input.first) {
      std::vector<float>& row = result.values.emplace_back();
      if (first < 0) continue;
      const absl::Span<const float> logits =
          values.subspan(static_cast<size_t>(first) * labels().size(), labels().size());
      row.assign(logits.begin(), logits.end());
    }
  };
  WEFT_RETURN_IF_ERROR(encoder_->Run(inputs, take));
  return results;
}

absl::Status TextHead::Classify(const std::vector<std::string>& files, Take take) {
  LineReader reader(files);
  while (true) {
    WEFT_ASSIGN_OR_RETURN(const TextLines lines,
                          reader.Next(kBatchesAtOnce * static_cast<size_t>(options_.runtime.batch)));
    if (lines.lines.empty()) return absl::OkStatus();
    std::vector<Example> examples;
    absl::Status error;
    for (size_t i = 0; i < lines.lines.size() && error.ok(); ++i) {
      error = Annotate(Add(TextsOf(lines.lines[i]), &examples), lines.Location(i));
    }
    WEFT_ASSIGN_OR_RETURN(const std::vector<ClassifierResult> results, Run(std::move(examples)));
    take(results);
    WEFT_RETURN_IF_ERROR(error);
  }
}

absl::StatusOr<std::vector<ClassifierResult>> TextHead::Run(const LabelledExamples& examples) {
  std::vector<Example> own;
  for (size_t i = 0; i < examples.examples.size(); ++i) {
    WEFT_RETURN_IF_ERROR(Annotate(Add(examples.examples[i].texts, &own), examples.Location(i)));
  }
  return Run(std::move(own));
}

absl::Status CheckSize(const Images& images, const VitConfig& config) {
  if (images.channels != config.channels) {
    return InvalidArgument(images.path, " has pictures of ", images.channels, " channels, but the model takes ",
                           config.channels);
  }
  if (images.height == config.image_height && images.width == config.image_width) return absl::OkStatus();
  return InvalidArgument(images.path, " has pictures of ", images.height, " x ", images.width,
                         " pixels, but the model takes ", config.image_height, " x ", config.image_width);
}

PictureClassifier::PictureClassifier(const PublishedVit& vit, ImageProcessor processor, int64_t batch)
    : Classifier(vit.labels, vit.scores, TextTask::kSequence),
      config_(vit.config),
      processor_(std::move(processor)),
      batch_(batch) {
  input_ = graph_.tape.Input("images", {kF32, {batch, config_.image_height, config_.image_width, config_.channels}});
  logits_ = Vit(config_).Logits(input_);
}

absl::StatusOr<std::unique_ptr<PictureClassifier>> PictureClassifier::Open(const std::string& path,
                                                                           const RuntimeOptions& options) {
  WEFT_ASSIGN_OR_RETURN(const PublishedVit vit, ReadModelOf<PublishedVit>(path));
  if (vit.task != VitTask::kClassify) {
    return InvalidArgument(path,
                           ": the model was trained with --task=", vit.task == VitTask::kMasked ? "masked" : "order",
                           " and has no classifier; weft train vit --init=", path, " adds one");
  }
  WEFT_ASSIGN_OR_RETURN(ImageProcessor processor, ReadImageProcessor(path, vit.config));
  auto classifier = std::unique_ptr<PictureClassifier>(new PictureClassifier(vit, std::move(processor), options.batch));
  WEFT_RETURN_IF_ERROR(ProvideFiniteWeights(path, vit.weights, &classifier->parameters_));
  WEFT_RETURN_IF_ERROR(classifier->graph_.Compile({.fetch = {classifier->logits_}}, options, &classifier->parameters_));
  return classifier;
}

absl::StatusOr<std::vector<std::vector<float>>> PictureClassifier::Run(const Images& images) {
  WEFT_RETURN_IF_ERROR(CheckSize(images, config_));
  const auto each = static_cast<size_t>(images.pixels_each()), classes = static_cast<size_t>(config_.classes);
  std::vector<std::vector<float>> results;
  std::vector<float> pixels;
  for (int64_t begin = 0; begin < images.size(); begin += batch_) {
    const int64_t end = std::min(begin + batch_, images.size());
    pixels.assign(static_cast<size_t>(batch_) * each, 0);
    auto to = pixels.begin();
    for (int64_t i = begin; i < end; ++i) {
      for (size_t k = 0; k < each; ++k) *to++ = processor_(images[i][k], k);
    }
    WEFT_ASSIGN_OR_RETURN(const Outputs out, graph_.Run({{input_, pixels}}));
    const absl::Span<const float> all = out[logits_].span<const float>();
    for (int64_t i = begin; i < end; ++i) {
      const absl::Span<const float> row = all.subspan(static_cast<size_t>(i - begin) * classes, classes);
      results.emplace_back(row.begin(), row.end());
    }
  }
  return results;
}

absl::Status PictureClassifier::Classify(const std::vector<std::string>& files, Take take) {
  if (files.empty()) return InvalidArgument("a ViT classifies pictures: name a file of them");
  for (const std::string& path : files) {
    WEFT_ASSIGN_OR_RETURN(const Images images,
                          ReadUnlabelledImages(path, config_.image_height, config_.image_width, processor_));
    WEFT_ASSIGN_OR_RETURN(std::vector<std::vector<float>> logits, Run(images));
    std::vector<ClassifierResult> results;
    for (std::vector<float>& each : logits) results.push_back({.words = {}, .values = {std::move(each)}});
    take(results);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Classifier>> OpenClassifier(const std::string& path, const BertEncoderOptions& options) {
  WEFT_ASSIGN_OR_RETURN(const ModelFamily* const family, FindFamily(path));
  if (family == &PublishedVit::kFamily) return PictureClassifier::Open(path, options.runtime);
  WEFT_ASSIGN_OR_RETURN(OpenedBert bert, OpenBert(path));
  return TextHead::Create(std::move(bert), options);
}

}  // namespace weft
