#include <algorithm>

#include "absl/strings/str_cat.h"
#include "weft/base/status.h"
#include "weft/inference/generate/generate.h"

namespace weft {

// A graph for `rows` tokens.
struct CachedGpt::Part : EvalGraph {
  Var token, position;  // i32 [rows, 1]
  Var pages;            // i32 [rows, P]
  Var last;             // i32 [L]: the rows whose logits are computed
  Var logits;           // f32 [L, V]

  absl::Status Record(const Sizes& sizes, const GptConfig& config, const Options& options, Parameters* parameters) {
    const auto [rows, ends] = sizes;
    token = tape.Input("token", {kI32, {rows, 1}}, {.below = config.vocabulary});
    position = tape.Input("position", {kI32, {rows, 1}}, {.below = config.context, .ignored = -1});
    const int64_t width = PagesOf(config.context, options.page_size);
    pages = tape.Input("pages", {kI32, {rows, width}}, {.below = options.pages});
    last = tape.Input("last", {kI32, {ends}}, {.below = rows});
    const AttentionCache cache = {.prefix = absl::StrCat("generate.", options.pages, "x", options.page_size),
                                  .positions = position,
                                  .pages = pages,
                                  .page_count = options.pages,
                                  .page_size = options.page_size};
    logits = Cast(Gpt(config).Logits(token, &cache, /*documents=*/{}, last), kF32);
    return Compile({.fetch = {logits}}, options.runtime, parameters);
  }
};

CachedGpt::CachedGpt(const GptConfig& config, Parameters* parameters, const Options& options)
    : config_(config), parameters_(parameters), options_(options) {}

CachedGpt::~CachedGpt() = default;

void CachedGpt::Rows::Add(int32_t token, size_t position, const PageTable* table) {
  tokens.push_back(token);
  positions.push_back(static_cast<int32_t>(position));
  tables.push_back(table);
}

bool CachedGpt::Rows::Read(size_t limit, CachedText* text) {
  const size_t end = text->kept + std::min(limit, text->unread());
  for (; text->kept < end; ++text->kept) Add(text->tokens[text->kept], text->kept, &text->table);
  if (text->unread() > 0) return false;
  last.push_back(static_cast<int32_t>(tokens.size() - 1));
  return true;
}

absl::StatusOr<std::unique_ptr<CachedGpt>> CachedGpt::Create(const GptConfig& config, Parameters* parameters,
                                                             const Options& options) {
  auto gpt = std::unique_ptr<CachedGpt>(new CachedGpt(config, parameters, options));
  WEFT_RETURN_IF_ERROR(gpt->parts_.Get({1, 1}, config, options, parameters).status());
  return gpt;
}

absl::StatusOr<const float*> CachedGpt::Run(const Rows& rows) {
  const int64_t wanted = GraphSize(static_cast<int64_t>(rows.tokens.size()));
  const int64_t row_count = rows.chunk ? std::max(wanted, kMinChunk) : std::min(wanted, kStepRows);
  const int64_t ends = !rows.chunk ? row_count : rows.last.size() <= 1 ? 1 : kChunkEnds;
  WEFT_ASSIGN_OR_RETURN(Part* const part, parts_.Get({row_count, ends}, config_, options_, parameters_));
  const auto count = static_cast<size_t>(row_count);
  std::vector<int32_t> tokens = rows.tokens, positions = rows.positions, last = rows.last;
  tokens.resize(count);
  positions.resize(count, -1);
  last.resize(static_cast<size_t>(part->last.dim(0)));
  const size_t width = static_cast<size_t>(part->pages.dim(1));
  std::vector<int32_t> pages(count * width);
  for (size_t row = 0; row < rows.tables.size(); ++row) {
    const std::vector<int32_t>& own = rows.tables[row]->pages;
    std::copy(own.begin(), own.end(), pages.begin() + static_cast<std::ptrdiff_t>(row * width));
  }
  WEFT_ASSIGN_OR_RETURN(
      const Outputs out,
      part->Run({{part->token, tokens}, {part->position, positions}, {part->pages, pages}, {part->last, last}}));
  return out[part->logits].as<float>();
}

}  // namespace weft
