#include "weft/train/gpt_job.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weft/core/file.h"
#include "weft/core/status.h"
#include "weft/formats/config_json.h"
#include "weft/inference/generate.h"
#include "weft/text/noise.h"

namespace weft {

nlohmann::ordered_json GptJob::Model() const { return ToJson(options_.model).value_or(nlohmann::ordered_json()); }

absl::Status GptJob::Prepare(Parameters* /*parameters*/) {
  const std::string& path = options_.data;
  WEFT_ASSIGN_OR_RETURN(const std::string text, path.empty() ? ReadKingJamesBible() : ReadText(path));
  fingerprint_ = absl::StrFormat("%016x", StableHash(text));
  WEFT_ASSIGN_OR_RETURN(tokenizer_, CharacterTokenizer::FromText(text));
  WEFT_ASSIGN_OR_RETURN(std::vector<int32_t> tokens, tokenizer_->Encode(text));
  WEFT_ASSIGN_OR_RETURN(corpus_, TokenCorpus::Create(std::move(tokens), options_.model.context));
  options_.model.vocabulary = tokenizer_->vocabulary_size();
  program_ = RecordTraining(options_);
  return absl::OkStatus();
}

std::string GptJob::Title(const Parameters& parameters) const {
  return absl::StrCat("a GPT of ", parameters.ElementCount(), " parameters on ",
                      corpus_->tokens(DataSplit::kTrain).size(), " characters (", tokenizer_->vocabulary_size(),
                      " different)");
}

absl::Status GptJob::WriteFiles(const RunDirectory& run) const {
  return WriteFile(run.File("tokenizer.json"), {tokenizer_->ToJson()});
}

absl::StatusOr<std::string> GptJob::Conclude(const RunDirectory& run, Parameters* parameters) {
  if (options_.sample_length == 0) return "";
  const TrainingOptions& training = options_.training;
  WEFT_ASSIGN_OR_RETURN(
      const auto generator,
      Generator::Create(options_.model, parameters, {.threads = static_cast<int>(training.trainer.threads)}));
  const GenerateOptions how = {.sampling = {.temperature = options_.sample_temperature, .seed = training.seed},
                               .length = options_.sample_length};
  WEFT_ASSIGN_OR_RETURN(const auto continued, generator->Generate({{tokenizer_->StartToken()}}, how));
  WEFT_ASSIGN_OR_RETURN(std::string text, tokenizer_->Decode(continued[0]));
  text += "\n";
  WEFT_RETURN_IF_ERROR(WriteFile(run.File("sample.txt"), {text}));
  return absl::StrCat("sample:\n", text);
}

RandomStream GptJob::Random(int64_t step) const {
  return {.seed = options_.training.seed, .step = static_cast<uint32_t>(step)};
}

TrainingBatch GptJob::Sample(DataSplit split, int64_t step, int64_t index) {
  corpus_->Sample(split, options_.batch, Random(step), index, &windows_);
  const auto count = static_cast<int64_t>(windows_.tokens.size());
  return {.feeds = {{program_->tokens, windows_.tokens}, {program_->targets, windows_.targets}},
          .tokens = count,
          .targets = count};
}

absl::StatusOr<TrainingBatch> GptJob::Train(int64_t step) {
  TrainingBatch batch = Sample(DataSplit::kTrain, step, 0);
  AddNoise(absl::MakeSpan(windows_.tokens), options_.input_noise, options_.model.vocabulary, Random(step));
  return batch;
}

TrainingBatch GptJob::Validate(int64_t step, int64_t index) { return Sample(DataSplit::kValidation, step, index); }

}  // namespace weft
