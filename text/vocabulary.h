// The tokens of a vocabulary by id, and their ids.
#ifndef WEFT_TEXT_VOCABULARY_H_
#define WEFT_TEXT_VOCABULARY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weft {

class Vocabulary {
 public:
  Vocabulary() = default;
  // Token i has id i. InvalidArgument if a token is there twice.
  static absl::StatusOr<Vocabulary> Create(std::vector<std::string> tokens);
  // InvalidArgument also if the ids are not 0 .. size - 1.
  static absl::StatusOr<Vocabulary> FromIds(std::vector<std::pair<std::string, int64_t>> tokens);

  int32_t size() const { return static_cast<int32_t>(tokens_.size()); }
  const std::string& token(int32_t id) const { return tokens_[static_cast<size_t>(id)]; }
  std::optional<int32_t> Find(absl::string_view token) const;
  // Gives `token` the next id. InvalidArgument if it is there.
  absl::Status Add(std::string token);

 private:
  std::vector<std::string> tokens_;
  absl::flat_hash_map<std::string, int32_t> ids_;
};

// A token as an error names it: 'abc', or "byte 0xE9" and the like where it is not UTF-8.
std::string Quoted(absl::string_view token);

}  // namespace weft

#endif  // WEFT_TEXT_VOCABULARY_H_
