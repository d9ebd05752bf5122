// CompareTranslation compares a page with its translation: what must not change when words do.
//
//   for (const std::string& difference : CompareTranslation(english, vietnamese)) ADD_FAILURE() << difference;
#ifndef WEFT_TESTS_TOUR_TRANSLATION_H_
#define WEFT_TESTS_TOUR_TRANSLATION_H_

#include <string>
#include <vector>

namespace weft {

// Returns the differences between a page of Markdown and its translation, which is one folder below the page. Each
// difference names the section by its English heading. A translation must have
//
//   - as many headings, of the same levels in the same order
//
// and in each section, from one heading to the next,
//
//   - the same fenced blocks, byte for byte; a block without a kind, such as a formula or a diagram, may have other
//     words, but must have the same numbers
//   - the same numbers in headings, paragraphs and tables. A comma between thousands does not count; decimals have a
//     point in every language. Large numbers may be counted in the language's own units, such as 亿
//   - the same code in backticks
//   - links and pictures with the same targets: a page NAME.md beside the English page is NAME.md beside the
//     translation, or ../NAME.md if it is not translated; the path of any other file begins with one "../" more. An
//     anchor, which names a heading, may have other words
//   - as many rows of tables
//
// Within a section, the order of numbers, code, links and pictures does not count.
std::vector<std::string> CompareTranslation(const std::string& english, const std::string& translated);

}  // namespace weft

#endif  // WEFT_TESTS_TOUR_TRANSLATION_H_
