// Both pages are read into sections, each with lists of what must be equal, and the lists are compared.
#include "weft/tests/tour/translation.h"

#include <algorithm>
#include <cctype>
#include <regex>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weft {
namespace {

using Words = std::vector<std::string>;

struct Block {
  std::string kind, text;  // `kind` is the text after the ```
};

struct Section {
  std::string heading;  // without #; empty for the text above the first heading
  size_t level = 0;     // number of #
  std::vector<Block> blocks;
  std::string prose;  // the heading and all lines outside of blocks
  size_t table_rows = 0;
  Words numbers, code, links, pictures;
};

bool IsDigit(const std::string& text, size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '9'; }

// Returns the position behind the digits of `text` from `i` on.
size_t EndOfDigits(const std::string& text, size_t i) {
  while (IsDigit(text, i)) ++i;
  return i;
}

// Returns the numbers of a text, without commas between thousands. A minus is a sign unless a letter or digit of ASCII
// is before it, as in GPT-2.
Words NumbersOf(const std::string& text) {
  Words numbers;
  for (size_t i = 0; i < text.size();) {
    if (!IsDigit(text, i)) {
      ++i;
      continue;
    }
    const bool minus =
        i > 0 && text[i - 1] == '-' && (i == 1 || std::isalnum(static_cast<unsigned char>(text[i - 2])) == 0);
    size_t end = EndOfDigits(text, i);
    std::string number = absl::StrCat(minus ? "-" : "", text.substr(i, end - i));
    if (end - i <= 3) {
      while (end < text.size() && text[end] == ',' && EndOfDigits(text, end + 1) == end + 4) {
        number += text.substr(end + 1, 3);
        end += 4;
      }
    }
    if (end < text.size() && text[end] == '.' && IsDigit(text, end + 1)) {
      const size_t decimals = EndOfDigits(text, end + 1);
      number += text.substr(end, decimals - end);
      end = decimals;
    }
    const size_t sign = end + 1 < text.size() && (text[end + 1] == '-' || text[end + 1] == '+') ? 1 : 0;
    if (end < text.size() && text[end] == 'e' && IsDigit(text, end + 1 + sign)) {
      const size_t exponent = EndOfDigits(text, end + 1 + sign);
      number += text.substr(end, exponent - end);
      end = exponent;
    }
    numbers.push_back(std::move(number));
    i = end;
  }
  return numbers;
}

// Returns a text with its large numbers in millions, whatever the language calls them: "1750 亿", "175 billion" and
// "175 tỉ" become "175000".
std::string InMillions(std::string text) {
  static const struct {
    std::regex number;
    double millions;
  } kUnits[] = {{std::regex("([0-9.]+) (万|萬)"), 0.01},
                {std::regex("([0-9.]+) (亿|億)"), 100},
                {std::regex("([0-9.]+)\\s(billion|tỉ(?! lệ| số))"), 1000}};
  for (const auto& [number, millions] : kUnits) {
    for (std::smatch match; std::regex_search(text, match, number);) {
      const std::string value = absl::StrCat(std::stod(match.str(1)) * millions);
      text.replace(static_cast<size_t>(match.position()), static_cast<size_t>(match.length()), value);
    }
  }
  return text;
}

// Removes all matches of `pattern` from `text`, whose first group becomes an element of the result. `keep`: what
// remains of a match.
Words TakeAll(const std::regex& pattern, const char* keep, std::string* text) {
  Words taken;
  for (std::sregex_iterator it(text->begin(), text->end(), pattern), end; it != end; ++it) taken.push_back(it->str(1));
  *text = std::regex_replace(*text, pattern, keep);
  return taken;
}

// Fills the lists of a section from its prose.
void ReadProse(Section* section) {
  // A line break inside of code counts as a space.
  static const std::regex code("`([^`]+)`"), picture("!\\[[^\\]]*\\]\\(([^)\\s]*)\\)");
  static const std::regex link("\\]\\(([^)\\s]*)\\)");
  std::string text = section->prose;
  section->code = TakeAll(code, " ", &text);
  for (std::string& each : section->code) each = std::regex_replace(each, std::regex("\\s+"), " ");
  std::string pictures = text;
  section->pictures = TakeAll(picture, " ", &pictures);
  section->links = TakeAll(link, "]", &pictures);
  section->numbers = NumbersOf(InMillions(std::regex_replace(text, link, "]")));
}

std::vector<Section> ReadSections(const std::string& page) {
  std::vector<Section> sections(1);
  std::istringstream lines(page);
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (absl::StartsWith(line, "```")) {
      inside = !inside;
      if (inside) sections.back().blocks.push_back({line.substr(3), ""});
      continue;
    }
    if (inside) {
      sections.back().blocks.back().text += line + "\n";
      continue;
    }
    const size_t level = line.find_first_not_of('#');
    if (level != std::string::npos && level > 0 && line[level] == ' ') {
      sections.emplace_back();
      sections.back().heading = line.substr(level + 1);
      sections.back().level = level;
    }
    sections.back().table_rows += absl::StartsWith(line, "|");
    sections.back().prose += line + "\n";
  }
  for (Section& section : sections) ReadProse(&section);
  return sections;
}

// Returns the target of a link or picture as the translation must have it. Of an anchor only the # is left.
std::string Moved(const std::string& target) {
  const size_t anchor = target.find('#');
  const std::string path = target.substr(0, anchor), end = anchor == std::string::npos ? "" : "#";
  const bool stays = path.empty() || absl::StrContains(path, "://") || absl::StartsWith(path, "mailto:") ||
                     (absl::EndsWith(path, ".md") && !absl::StrContains(path, "/"));
  return absl::StrCat(stays ? "" : "../", path, end);
}
Words Moved(Words targets) {
  for (std::string& target : targets) target = Moved(target);
  return targets;
}

// Returns a target of a translation as Moved returns that of the English page. A page beside the English one that is
// not translated is ../NAME.md, and counts as NAME.md.
std::string Normalized(const std::string& target) {
  static const std::regex anchor("#.*"), english("^\\.\\./([^/]*\\.md)");
  return std::regex_replace(std::regex_replace(target, anchor, "#"), english, "$1");
}

std::string Same(const std::string& text) { return text; }

// Returns "", or the elements that only one of two lists has, in any order: "the translation lacks 2 and has 3".
// Compares normal(element) for those of the translation.
std::string DifferenceOf(const char* what, Words lacks, const Words& translated,
                         std::string (*normal)(const std::string&) = Same) {
  std::sort(lacks.begin(), lacks.end());
  Words has;
  for (const std::string& each : translated) {
    const auto found = std::find(lacks.begin(), lacks.end(), normal(each));
    if (found == lacks.end()) {
      has.push_back(each);
    } else {
      lacks.erase(found);
    }
  }
  std::sort(has.begin(), has.end());
  if (lacks.empty() && has.empty()) return "";
  return absl::StrCat(what, ": the translation ", lacks.empty() ? "" : "lacks ", absl::StrJoin(lacks, ", "),
                      lacks.empty() || has.empty() ? "" : " and ", has.empty() ? "" : "has besides ",
                      absl::StrJoin(has, ", "));
}

// Returns "", or the first lines in which two texts differ.
std::string LineDifference(const std::string& english, const std::string& translated) {
  std::istringstream a(english), b(translated);
  while (true) {
    std::string line, other;
    const bool more = static_cast<bool>(std::getline(a, line)), others = static_cast<bool>(std::getline(b, other));
    if (!more && !others) return "";
    if (!more) return absl::StrCat("the translation has besides the line '", other, "'");
    if (!others) return absl::StrCat("the translation lacks the line '", line, "'");
    if (line != other) return absl::StrCat("the line '", line, "' is '", other, "'");
  }
}

std::string BlockDifference(const Block& english, const Block& translated) {
  if (english.kind != translated.kind) {
    return absl::StrCat("the kind is '", translated.kind, "', not '", english.kind, "'");
  }
  if (!english.kind.empty()) return LineDifference(english.text, translated.text);
  return DifferenceOf("numbers", NumbersOf(english.text), NumbersOf(translated.text));
}

void CompareSections(const Section& english, const Section& translated, Words* differences) {
  const std::string name = english.heading.empty() ? "above the first heading" : english.heading;
  const auto add = [&](const std::string& difference) {
    if (!difference.empty()) differences->push_back(absl::StrCat("section '", name, "': ", difference));
  };
  if (english.blocks.size() != translated.blocks.size()) {
    add(absl::StrCat("blocks: ", translated.blocks.size(), " in the translation, ", english.blocks.size(),
                     " in the page"));
  }
  for (size_t i = 0; i < std::min(english.blocks.size(), translated.blocks.size()); ++i) {
    const std::string difference = BlockDifference(english.blocks[i], translated.blocks[i]);
    if (!difference.empty()) add(absl::StrCat("block ", i + 1, ": ", difference));
  }
  add(DifferenceOf("numbers", english.numbers, translated.numbers));
  add(DifferenceOf("code", english.code, translated.code));
  add(DifferenceOf("links", Moved(english.links), translated.links, Normalized));
  add(DifferenceOf("pictures", Moved(english.pictures), translated.pictures, Normalized));
  if (english.table_rows != translated.table_rows) {
    add(absl::StrCat("rows of tables: ", translated.table_rows, " in the translation, ", english.table_rows,
                     " in the page"));
  }
}

}  // namespace

std::vector<std::string> CompareTranslation(const std::string& english, const std::string& translated) {
  const std::vector<Section> ours = ReadSections(english), theirs = ReadSections(translated);
  Words differences;
  for (size_t i = 0; i < std::max(ours.size(), theirs.size()); ++i) {
    // Behind a heading too many or too few, sections do not belong together.
    if (i >= theirs.size()) {
      differences.push_back(absl::StrCat("section '", ours[i].heading, "': the translation lacks its heading"));
      break;
    }
    if (i >= ours.size() || ours[i].level != theirs[i].level) {
      differences.push_back(absl::StrCat("heading ", i, ": the translation's '", theirs[i].heading, "' has ",
                                         theirs[i].level, " #, where the page has ",
                                         i >= ours.size() ? "no heading" : absl::StrCat(ours[i].level)));
      break;
    }
    CompareSections(ours[i], theirs[i], &differences);
  }
  return differences;
}

}  // namespace weft
