// ReadLabelledText reads texts with labels from a file whose lines are "text<TAB>label".
//
//   WEFT_ASSIGN_OR_RETURN(const LabelledText train, ReadLabelledText("train.tsv"));
//   const std::vector<std::string> names = LabelNames(train);
//   WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> classes, LabelIds(train, names));
#ifndef WEFT_TEXT_LABELLED_TEXT_H_
#define WEFT_TEXT_LABELLED_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/text/lines.h"

namespace weft {

struct LabelledText {
  TextLines text;
  std::vector<std::string> labels;
};
// Reads a file of labelled texts. The label follows the line's last tab. Returns InvalidArgument, with file and line,
// if a line has no tab, no text or no label.
absl::StatusOr<LabelledText> ReadLabelledText(const std::string& path);

// Returns the distinct labels, sorted by value if all are whole numbers, else by their bytes.
std::vector<std::string> LabelNames(const LabelledText& text);
// Returns for each line the index of its label in `names`. If `names` lacks a label, returns InvalidArgument, with file
// and line.
absl::StatusOr<std::vector<int32_t>> LabelIds(const LabelledText& text, absl::Span<const std::string> names);

}  // namespace weft

#endif  // WEFT_TEXT_LABELLED_TEXT_H_
