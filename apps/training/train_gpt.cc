#include <cstdio>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weft/apps/training/training_command.h"
#include "weft/core/file.h"
#include "weft/core/status.h"
#include "weft/formats/config_json.h"
#include "weft/inference/generate.h"
#include "weft/text/character_tokenizer.h"
#include "weft/text/corpus.h"
#include "weft/text/noise.h"
#include "weft/train/gpt_options.h"

namespace weft {
namespace {

class GptJob final : public TrainingJob {
 public:
  Hyperparameters Table() override { return AllHyperparameters(&options_); }
  absl::Status Check(const RunDirectory* /*resumed*/) override { return Finish(&options_); }
  TrainerOptions trainer() const override { return options_.trainer; }
  nlohmann::ordered_json Model() const override {  // nothing for a form that no published key can express
    return ToJson(options_.model).value_or(nlohmann::ordered_json());
  }

  absl::Status Prepare(Parameters* /*parameters*/) override {
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

  std::string Title(const Parameters& parameters) const override {
    return absl::StrCat("a GPT of ", parameters.ElementCount(), " parameters on ",
                        corpus_->tokens(CorpusPart::kTrain).size(), " characters (", tokenizer_->vocabulary_size(),
                        " different)");
  }

  absl::Span<const TrainingProgram> programs() const override { return {&program_->training, 1}; }
  std::string data() const override { return fingerprint_; }
  absl::StatusOr<TrainingBatch> Train(int64_t step) override {
    TrainingBatch batch = Sample(CorpusPart::kTrain, step, 0);
    AddNoise(absl::MakeSpan(windows_.tokens), options_.input_noise, options_.model.vocabulary, Random(step));
    return batch;
  }
  int64_t validation_batches() const override { return options_.eval_batches; }
  TrainingBatch Validate(int64_t step, int64_t index) override { return Sample(CorpusPart::kValidation, step, index); }

  absl::Status WriteFiles(const RunDirectory& run) const override {
    return WriteFile(run.File("tokenizer.json"), {tokenizer_->ToJson()});
  }

  // Prints what the model writes after a newline, and keeps it in sample.txt.
  absl::Status Conclude(const RunDirectory& run, Parameters* parameters) override {
    if (options_.sample_length == 0) return absl::OkStatus();
    WEFT_ASSIGN_OR_RETURN(
        const auto generator,
        Generator::Create(options_.model, parameters, {.threads = static_cast<int>(options_.trainer.threads)}));
    const GenerateOptions how = {
        .sampling = {.temperature = options_.sample_temperature, .seed = options_.trainer.seed},
        .length = options_.sample_length};
    WEFT_ASSIGN_OR_RETURN(const auto continued, generator->Generate({{tokenizer_->StartToken()}}, how));
    WEFT_ASSIGN_OR_RETURN(std::string text, tokenizer_->Decode(continued[0]));
    text += "\n";
    std::printf("sample:\n");
    std::fwrite(text.data(), 1, text.size(), stdout);
    return WriteFile(run.File("sample.txt"), {text});
  }

 private:
  RandomStream Random(int64_t step) const {
    return {.seed = options_.trainer.seed, .step = static_cast<uint32_t>(step)};
  }
  TrainingBatch Sample(CorpusPart part, int64_t step, int64_t index) {
    corpus_->Sample(part, options_.batch, Random(step), index, &windows_);
    const auto count = static_cast<int64_t>(windows_.tokens.size());
    return {.feeds = {{program_->tokens, windows_.tokens}, {program_->targets, windows_.targets}},
            .tokens = count,
            .targets = count};
  }

  GptOptions options_;
  std::string fingerprint_;
  std::optional<CharacterTokenizer> tokenizer_;
  std::optional<TokenCorpus> corpus_;
  std::unique_ptr<GptProgram> program_;
  TokenBatch windows_;
};

}  // namespace

Command TrainGptCommand(CLI::App* train) {
  return TrainingCommand(train, "gpt",
                         "Trains a character GPT: without a flag, 0.8 million parameters on the King James Bible.",
                         [] { return std::make_unique<GptJob>(); });
}

}  // namespace weft
