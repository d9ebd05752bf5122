// TranslateJob trains an encoder-decoder Transformer (models/transformer.h) on pairs of sentences.
#ifndef WEFT_TRAIN_JOBS_TRANSLATE_JOB_H_
#define WEFT_TRAIN_JOBS_TRANSLATE_JOB_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/core/random.h"
#include "weft/graph/run/runner.h"
#include "weft/text/data/sentence_pairs.h"
#include "weft/train/jobs/bucket_job.h"
#include "weft/train/jobs/model_source.h"
#include "weft/train/jobs/scheduled_sampling.h"
#include "weft/train/jobs/training_tokenizer.h"

namespace weft {

class TranslateJob final : public BucketJob {
 public:
  TranslateJob();

  Hyperparameters Table() override;
  absl::Status Check(const RunDirectory* resumed) override;
  absl::Status Prepare(Parameters* parameters) override;
  std::string Title(const Parameters& parameters) const override;
  absl::Status CheckDivisible() const override;
  // Returns the first three validation sentences, each with its reference and the model's greedy translation of at most
  // 60 tokens. Returns "" if adapters are trained, or if ranks divide the weights.
  absl::StatusOr<std::string> Sample(Parameters* parameters) const override;

 protected:
  TrainingProgram Record(Shape shape, Tape* tape, VarList* inputs) override;
  absl::StatusOr<Rows> Fill(const Examples& examples) override;

 private:
  // Predicts the tokens of a micro-batch [B, L], for scheduled sampling.
  struct Sampler {
    Tape tape;
    VarList inputs;  // as RecordLogits has them
    Var predicted;   // i32 [B, L]
    std::unique_ptr<Runner> runner;
  };

  Var RecordLogits(Shape shape, Tape* tape, VarList* inputs) const;
  absl::StatusOr<Sampler*> SamplerFor(Shape shape);
  absl::Status SampleInputs(RandomStream random, int64_t step, Shape shape);

  // Options.
  std::string source_, target_, validation_source_, validation_target_;
  TrainingTokenizer tokenizer_{8000, {"<pad>", "<s>", "</s>"}};
  SourceOf<PublishedTransformer> model_{{.context = 128,
                                         .encoder_layers = 3,
                                         .decoder_layers = 3,
                                         .heads = 8,
                                         .width = 256,
                                         .feed_forward = 1024,
                                         .pre_norm = true,
                                         .shared_embeddings = true}};
  bool truncate_ = false;
  double input_noise_ = 0;
  ScheduledSampling sampling_;

  Parameters* parameters_ = nullptr;
  PairTokens tokens_;
  std::vector<SentencePair> pairs_, validation_pairs_;
  std::map<std::pair<int64_t, int64_t>, Sampler> samplers_;  // by shape of micro-batch
  PairRows rows_;
};

}  // namespace weft

#endif  // WEFT_TRAIN_JOBS_TRANSLATE_JOB_H_
