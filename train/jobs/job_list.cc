// A new kind of training is one row.
#include "weft/train/jobs/job_list.h"

#include "weft/train/jobs/bert_job.h"
#include "weft/train/jobs/classify_job.h"
#include "weft/train/jobs/gpt_job.h"
#include "weft/train/jobs/translate_job.h"
#include "weft/train/jobs/vit_job.h"

namespace weft {
namespace {

template <class Job>
std::unique_ptr<TrainingJob> Make() {
  return std::make_unique<Job>();
}

constexpr struct {
  const char* name;
  std::unique_ptr<TrainingJob> (*make)();
} kRows[] = {{"gpt", Make<GptJob>},
             {"bert", Make<BertJob>},
             {"translate", Make<TranslateJob>},
             {"classify", Make<ClassifyJob>},
             {"vit", Make<VitJob>}};

}  // namespace

std::vector<std::string> JobNames() {
  std::vector<std::string> names;
  for (const auto& row : kRows) names.emplace_back(row.name);
  return names;
}

std::unique_ptr<TrainingJob> MakeJob(absl::string_view name) {
  for (const auto& row : kRows) {
    if (row.name == name) return row.make();
  }
  return nullptr;
}

}  // namespace weft
