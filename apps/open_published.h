// What `weft import` and `weft export` take as --model.
#ifndef WEFT_APPS_OPEN_PUBLISHED_H_
#define WEFT_APPS_OPEN_PUBLISHED_H_

#include <string>

#include "absl/status/statusor.h"
#include "weft/models/weights.h"

namespace weft {

// A model that ReadModel knows, or the folder of a run: its newest weights.
absl::StatusOr<PublishedModel> OpenPublished(const std::string& path);

}  // namespace weft

#endif  // WEFT_APPS_OPEN_PUBLISHED_H_
