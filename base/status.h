// Errors that a caller can cause are absl::Status. WEFT_CHECK stops the program at errors that only a bug in Weft
// causes. FindRow finds a row by its name; DidYouMean and RowNames give the words of errors about unknown names.
//
//   WEFT_RETURN_IF_ERROR(Save(path));
//   WEFT_ASSIGN_OR_RETURN(const Graph graph, Compile(tape, options));
//   WEFT_ASSIGN_OR_RETURN(const Config config, Annotate(ParseConfig(text), path));  // errors begin with the path
//   if (steps < 1) return InvalidArgument("steps is ", steps, ", but must be at least 1");
#ifndef WEFT_BASE_STATUS_H_
#define WEFT_BASE_STATUS_H_

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#define WEFT_RETURN_IF_ERROR(expression)                                                \
  do {                                                                                  \
    if (absl::Status weft_status = (expression); !weft_status.ok()) return weft_status; \
  } while (false)

#define WEFT_CONCAT_INNER(a, b) a##b
#define WEFT_CONCAT(a, b) WEFT_CONCAT_INNER(a, b)
#define WEFT_ASSIGN_OR_RETURN(declaration, expression) \
  WEFT_ASSIGN_OR_RETURN_INNER(WEFT_CONCAT(weft_statusor_, __LINE__), declaration, expression)
#define WEFT_ASSIGN_OR_RETURN_INNER(result, declaration, expression) \
  auto result = (expression);                                        \
  if (!result.ok()) return std::move(result).status();               \
  declaration = std::move(result).value()

// If `condition` is false, prints it with file and line to stderr and aborts. For errors that no caller can cause.
#define WEFT_CHECK(condition)                                              \
  do {                                                                     \
    if (!(condition)) ::weft::CheckFailed(__FILE__, __LINE__, #condition); \
  } while (false)

namespace weft {

[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);

// Returns an InvalidArgument error. Its message is all `parts`, one after the other.
template <class... Parts>
absl::Status InvalidArgument(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

// Returns an error with `context` before its message: "CONTEXT: MESSAGE". OK and values stay unchanged.
absl::Status Annotate(const absl::Status& status, absl::string_view context);
template <class T>
absl::StatusOr<T> Annotate(absl::StatusOr<T> result, absl::string_view context) {
  if (!result.ok()) return Annotate(result.status(), context);
  return result;
}

// Returns the minimum number of bytes to insert, remove or replace, and of neighbours to swap, that makes `b` from `a`.
// No byte takes part in two edits (optimal string alignment). The time grows with the product of the lengths.
size_t EditDistance(absl::string_view a, absl::string_view b);
// Returns the position in `known` of the first word with the smallest distance from `word`, or known.size() if all
// words take more than `limit` edits. If `word` has at least 3 bytes and is the beginning of a known word, that counts
// as one edit. Words of more than 200 bytes are near to none.
size_t NearestWord(absl::string_view word, absl::Span<const std::string> known, size_t limit);
// Returns ", did you mean 'X'?", where X is the NearestWord of `known`. Returns "" if all words take more than 2 edits
// and more than a third of the length of `word`.
std::string DidYouMean(absl::string_view word, absl::Span<const std::string> known);
// Returns the names of the rows of a table.
template <class Rows>
std::vector<std::string> RowNames(const Rows& rows) {
  std::vector<std::string> names;
  for (const auto& row : rows) names.emplace_back(row.name);
  return names;
}
// Returns the first row of a table that has this name, or null.
template <class Rows>
const auto* FindRow(const Rows& rows, absl::string_view name) {
  const auto found = std::find_if(std::begin(rows), std::end(rows), [&](const auto& row) { return row.name == name; });
  return found != std::end(rows) ? &*found : nullptr;
}

}  // namespace weft

#endif  // WEFT_BASE_STATUS_H_
