// What the commands of weft take as --model: models that others published, and runs.
#ifndef WEFT_FORMATS_OPEN_PUBLISHED_H_
#define WEFT_FORMATS_OPEN_PUBLISHED_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "weft/formats/published.h"
#include "weft/formats/weights.h"

namespace weft {

// By the config.json of a folder (KindOfConfig), in a run that of its model. What is no folder is a GPT's file of
// llama2.c; NotFound if it is nothing.
absl::StatusOr<ModelKind> KindOf(const std::string& path);
// Whether the folder is that of a run of weft train.
bool IsRun(const std::string& path);

// A model that ReadModel knows, or the folder of a run: its newest weights.
absl::StatusOr<PublishedModel> OpenPublished(const std::string& path);
// A folder that ReadVit knows, or a run of weft train vit.
absl::StatusOr<PublishedVit> OpenPublishedVit(const std::string& path);

// InvalidArgument "WHOSE: the tokenizer has 9 tokens, but the model's table 7" unless a vocabulary fits a table of
// embeddings: it has no more tokens than the table has rows, and more than half as many. Some rows beyond are padding:
// tables are often made rounder.
absl::Status CheckVocabulary(const std::string& whose, int64_t tokens, int64_t rows);

}  // namespace weft

#endif  // WEFT_FORMATS_OPEN_PUBLISHED_H_
