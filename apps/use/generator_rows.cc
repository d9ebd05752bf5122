#include "weft/apps/use/generator_rows.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "weft/apps/streams.h"
#include "weft/base/json.h"
#include "weft/base/status.h"

namespace weft {
namespace {

using Texts = std::vector<std::string>;

// The flags that have no use with --beam. If one of kSamplers is given, do_sample = false in the model's files does not
// ask for the most likely token. If one of kSamplers or kChangeText is given, the files can't ask for a beam search.
// Those of kChangeSpeed change no text.
constexpr const char* kSamplers[] = {"temperature", "top-k", "top-p", "min-p", "typical-p"};
constexpr const char* kChangeText[] = {"seed",       "logprobs",          "presence-penalty", "frequency-penalty",
                                       "logit-bias", "repetition-penalty"};
constexpr const char* kChangeSpeed[] = {"draft", "batch", "draft-model"};
constexpr absl::Span<const char* const> kNotWithBeam[] = {kSamplers, kChangeText, kChangeSpeed};

std::string LogitBiasText(const std::vector<std::pair<int32_t, float>>& bias) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [token, number] : bias) json[absl::StrCat(token)] = number;
  return bias.empty() ? "" : json.dump();
}

// Sets `stops` to `text`, or to the texts of a JSON array.
absl::Status SetStop(absl::string_view text, std::vector<std::string>* stops) {
  const auto json = ParseJson(text);
  const auto is_text = [](const nlohmann::json& each) { return each.is_string(); };
  *stops = {std::string(text)};
  if (!json.is_array()) return absl::OkStatus();
  if (!std::all_of(json.begin(), json.end(), is_text)) {
    return InvalidArgument("got the JSON array ", text, ", wanted one of texts; the text itself is ",
                           nlohmann::json({text}).dump());
  }
  *stops = json.get<std::vector<std::string>>();
  return absl::OkStatus();
}

std::string StopText(const std::vector<std::string>& stops) {
  return stops.empty() ? "" : stops.size() == 1 ? stops[0] : nlohmann::json(stops).dump();
}

// Sets `bias` to the numbers of tokens and the numbers of a JSON object. An empty text has no tokens.
absl::Status SetLogitBias(absl::string_view text, std::vector<std::pair<int32_t, float>>* bias) {
  bias->clear();
  if (text.empty()) return absl::OkStatus();
  const auto json = ParseJson(text);
  if (!json.is_object()) return InvalidArgument("got '", text, "', wanted a JSON object such as {\"50256\": -100}");
  for (const auto& [key, value] : json.items()) {
    int32_t token = 0;
    if (!absl::SimpleAtoi(key, &token) || !value.is_number()) {
      return InvalidArgument("'", key, "': ", value.dump(), " is not the number of a token and a number");
    }
    const nlohmann::json& number = value;
    bias->emplace_back(token, number.get<float>());
  }
  return absl::OkStatus();
}

// Returns the row of the flag --end-token, whose texts EndTokens (inference/runtime/open_model.h) reads.
Hyperparameter EndTokensRow(std::optional<std::vector<std::string>>* ends, const char* group) {
  const auto set = [ends](absl::string_view text) {
    *ends = Texts(absl::StrSplit(text, ',', absl::SkipEmpty()));
    return absl::OkStatus();
  };
  return {"end-token",
          "tokens that end a text, in place of the model's end tokens: texts of tokens or their numbers, separated by "
          "commas; empty: none",
          Hyperparameter::Text{[ends] { return absl::StrJoin(ends->value_or(Texts()), ","); }, set},
          {.may_be_empty = true, .group = group, .type = "TOKENS"}};
}

}  // namespace

Hyperparameters SamplingRows(SamplingOptions* sampling) {
  return {
      {"temperature",
       "divides the logits: below 1 the text is more predictable, above 1 more varied; 0 picks the most likely token",
       &sampling->temperature,
       {.low = 0, .group = "Sampling"}},
      {"top-k",
       "sample among the k most likely tokens; 0: all tokens",
       &sampling->top_k,
       {.low = 0, .group = "Sampling"}},
      {"top-p",
       "sample among the fewest tokens whose probabilities sum to at least this; 1: all tokens",
       &sampling->top_p,
       {.low = 0, .high = 1, .group = "Sampling"}},
      {"min-p",
       "drop tokens whose probability is less than this fraction of the most likely token's; 0: none",
       &sampling->min_p,
       {.low = 0, .high = 1, .group = "Sampling"}},
      {"typical-p",
       "sample among the tokens whose log-probability is closest to its mean, as few as have at least this total "
       "probability; 1: all tokens",
       &sampling->typical_p,
       {.low = 0, .high = 1, .group = "Sampling"}},
      {"repetition-penalty",
       "makes tokens of the text less likely to come again: divides positive logits, multiplies negative ones; 1: no "
       "penalty",
       &sampling->repetition_penalty,
       {.low = 1e-4, .high = 1e4, .group = "Sampling"}},
      {"presence-penalty",
       "number that is subtracted from the logits of tokens that were generated before; below 0 they become likelier. "
       "Tokens of the prompt do not count; 0: no penalty",
       &sampling->presence_penalty,
       {.low = -2, .high = 2, .group = "Sampling"}},
      {"frequency-penalty",
       "the same, once for each time that the token was generated",
       &sampling->frequency_penalty,
       {.low = -2, .high = 2, .group = "Sampling"}},
      {"logit-bias",
       "JSON object with a number for each token, which is added to the token's logit: {\"50256\": -100}",
       Hyperparameter::Text{[sampling] { return LogitBiasText(sampling->logit_bias); },
                            [sampling](absl::string_view text) { return SetLogitBias(text, &sampling->logit_bias); }},
       {.may_be_empty = true, .group = "Sampling", .type = "JSON"}},
  };
}

Hyperparameters GeneratorRows(TextGeneratorOptions* generator) {
  TextGeneratorOptions& options = *generator;
  Hyperparameters table = {
      {"tokenizer",
       "tokenizer to use instead of the model's, as for weft tokenize",
       &options.tokenizer,
       {.group = "Model", .type = "FILE_OR_FOLDER"}},
      EndTokensRow(&options.end_tokens, "Text"),
      SpecialTokensRow(&options.special_tokens, "Text"),
      {"slide",
       "whether a text that fills the model's context goes on without its older half; otherwise it ends. Default: true "
       "for a run and a file of llama2.c, false for a published model",
       &options.slide,
       {.group = "Text"}},
      {"length", "maximum number of tokens to add to each text", &options.generate.length, {.low = 0, .group = "Text"}},
  };
  Append(SamplingRows(&options.generate.sampling), &table);
  const Hyperparameters others = {
      {"seed",
       "seed of the random numbers; equal seeds give equal texts",
       &options.generate.sampling.seed,
       {.group = "Sampling"}},
      {"draft-model",
       "a smaller GPT with the same tokens, which guesses the next tokens; it changes no text, and is faster if it is "
       "often right",
       &options.draft_model,
       {.group = "Run", .type = "MODEL"}},
      {"draft",
       "guess up to this many tokens and check them at once; it changes no text. Without --draft-model, guesses are "
       "what followed the last tokens before, which is faster for texts that repeat themselves. With it, 0 means 4",
       &options.generate.draft,
       {.low = 0, .high = 47, .group = "Run"}},
      WeightsRow(&options.runtime.weights),
      ThreadsRow(&options.runtime.threads),
  };
  Append(others, &table);
  return table;
}

Hyperparameters GenerateRows(TextGeneratorOptions* generator) {
  TextGeneratorOptions& options = *generator;
  Hyperparameters table = {
      {"stop",
       "a text, or a JSON array of texts; a continuation ends before the first of them. They may have the texts of "
       "special tokens",
       Hyperparameter::Text{[&options] { return StopText(options.stop); },
                            [&options](absl::string_view text) { return SetStop(text, &options.stop); }},
       {.may_be_empty = true, .group = "Text", .type = "TEXT"}},
      {"truncate",
       "keep the end of prompts that are longer than the model's context, instead of failing",
       &options.generate.truncate,
       {.group = "Text"}},
      {"logprobs",
       "with --json, print an object with the text and its tokens, with the logarithm of each token's probability and "
       "of those of this many likeliest tokens; -1: only the text. The model's probabilities are meant, before "
       "sampling",
       &options.generate.logprobs,
       {.low = -1, .group = "Output"}},
      BatchRow("maximum number of prompts continued at once; it changes no text", &options.runtime.batch),
  };
  Append(GeneratorRows(&options), &table);
  table.push_back(
      {"beam",
       "above 0: search the likeliest text with this many hypotheses, in place of sampling; it ends with the context",
       &options.search.beam,
       {.low = 0, .high = CachedGpt::kStepRows, .group = "Search"}});
  table.push_back({"length-penalty",
                   "with --beam: exponent of the length by which log-probabilities are divided",
                   &options.search.length_penalty,
                   {.group = "Search"}});
  return table;
}

absl::StatusOr<OpenedGpt> OpenForCommand(const std::string& model, const GivenFlags& given, bool beams,
                                         TextGeneratorOptions* options) {
  if (options->search.beam > 0) {
    for (const absl::Span<const char* const> without_use : kNotWithBeam) {
      WEFT_RETURN_IF_ERROR(CheckNotGiven(given, without_use, " has no use with --beam"));
    }
  }
  WEFT_ASSIGN_OR_RETURN(OpenedGpt gpt, UsageError(OpenGpt(model, options->tokenizer)));
  const GenerationSettings& settings = gpt.settings;
  GenerateOptions& generate = options->generate;
  SamplingOptions &sampling = generate.sampling, of_file;
  const auto use = [&](const char* flag, const auto& setting, auto* in_file, auto* option) {
    if (!setting.has_value()) return;
    *in_file = *setting;
    if (!given.contains(flag)) *option = *setting;
  };
  const auto any = [&](absl::Span<const char* const> flags) {
    return std::any_of(flags.begin(), flags.end(), [&](const char* flag) { return given.contains(flag); });
  };
  use("temperature", settings.temperature, &of_file.temperature, &sampling.temperature);
  use("top-k", settings.top_k, &of_file.top_k, &sampling.top_k);
  use("top-p", settings.top_p, &of_file.top_p, &sampling.top_p);
  use("min-p", settings.min_p, &of_file.min_p, &sampling.min_p);
  use("typical-p", settings.typical_p, &of_file.typical_p, &sampling.typical_p);
  use("repetition-penalty", settings.repetition_penalty, &of_file.repetition_penalty, &sampling.repetition_penalty);
  WEFT_RETURN_IF_ERROR(Annotate(Validate(of_file), absl::StrCat(model, ", settings of generation")));
  if (settings.do_sample == false && !any(kSamplers)) sampling.temperature = 0;
  std::vector<absl::string_view> used = {"do_sample", "temperature", "top_k",         "top_p",
                                         "min_p",     "typical_p",   "max_new_tokens"};
  const int64_t total = beams ? settings.max_length.value_or(0) : 0;
  if (!given.contains("length") && settings.max_new_tokens.value_or(total) > 0) {
    generate.length = settings.max_new_tokens.value_or(total);
    generate.max_length = settings.max_new_tokens ? 0 : total;
  }
  if (beams) used.push_back("max_length");  // a conversation has no total length
  const int64_t wanted = settings.num_beams.value_or(1);
  const bool searches =
      beams && wanted <= CachedGpt::kStepRows && settings.do_sample != true && !any(kSamplers) && !any(kChangeText);
  if (wanted > 1 && searches && !given.contains("beam")) options->search.beam = wanted;
  if (options->search.beam > 0 || given.contains("beam")) used.push_back("num_beams");
  if (options->search.beam > 0) {
    double of_file_penalty = 0;
    use("length-penalty", settings.length_penalty, &of_file_penalty, &options->search.length_penalty);
    // If the files have no early_stopping, a search that the user asks for stops when --beam texts are finished.
    if (settings.early_stopping || !given.contains("beam")) options->search.stop = StopOf(settings);
    used.insert(used.end(), {"length_penalty", "early_stopping"});
  } else {
    for (const int32_t token : settings.excluded) {
      if (token >= gpt.tokenizer->vocabulary_size()) continue;
      sampling.logit_bias.emplace_back(token, -std::numeric_limits<float>::infinity());
    }
    used.insert(used.end(), {"length_penalty", "early_stopping", "suppress_tokens", "repetition_penalty"});
    if (!settings.excluded.empty()) used.push_back("bad_words_ids");
  }
  if (options->search.beam == 0 && given.contains("length-penalty")) {
    return InvalidArgument("--length-penalty needs --beam");
  }
  PrintNotes(settings.Unused(used));
  return gpt;
}

void PrintFullNote(const TextGenerator& generator) {
  if (generator.full() == 0) return;
  PrintNotes({absl::StrCat(
      generator.full(), generator.full() == 1 ? " text ended, because it filled" : " texts ended, because they filled",
      " the model's context of ", generator.context(), " tokens; --slide goes on without the older half")});
}

Hyperparameters TranslationRows(TranslationOptions* translation) {
  LineTranslatorOptions& options = translation->options;
  BeamSearchOptions& search = options.search;
  return {
      {"beam",
       "number of hypotheses of beam search; 1: greedy",
       &search.beam,
       {.low = 1, .high = 1024, .group = "Search"}},
      {"n-best",
       "number of translations to print for each line, at most --beam",
       &search.n_best,
       {.low = 1, .high = 1024, .group = "Output"}},
      {"length-penalty",
       "exponent p: hypotheses rank by log-probability / length^p",
       &search.length_penalty,
       {.low = 0, .high = 10, .group = "Search"}},
      {"max-length",
       "maximum number of tokens of a translation; 0: 50 more than its source has",
       &search.max_length,
       {.low = 0, .group = "Search"}},
      {"shortlist",
       "a lexicon of weft lexicon or Marian: a line's translations consist of likely translations of its tokens only, "
       "which is faster",
       &options.shortlist,
       {.group = "Search", .type = "FILE"}},
      {"shortlist-translations",
       "number of translations to take from the lexicon for each token of a line",
       &options.shortlist_translations,
       {.low = 1, .high = 1e6, .needs = "shortlist", .group = "Search"}},
      EndTokensRow(&translation->end_tokens, "Search"),
      TruncateRow(&options.truncate),
      SpecialTokensRow(&translation->special_tokens, "Data"),
      BatchRow("maximum number of lines translated at once; it changes no translation", &options.runtime.batch),
      WeightsRow(&options.runtime.weights),
      ThreadsRow(&options.runtime.threads),
  };
}

absl::StatusOr<std::unique_ptr<LineTranslator>> OpenTranslator(const std::string& model, const GivenFlags& given,
                                                               TranslationOptions* translation) {
  WEFT_ASSIGN_OR_RETURN(OpenedTransformer opened, UsageError(OpenTransformer(model)));
  PrintNotes(opened.notes);
  LineTranslatorOptions& options = translation->options;
  options.search = opened.search;  // the defaults; the given flags are set once more
  BeamSearchOptions& search = options.search;
  WEFT_RETURN_IF_ERROR(SetFromTexts(given, TranslationRows(translation)));
  opened.source->ReadSpecial(translation->special_tokens);
  if (given.count("beam") == 0) search.beam = std::max(search.beam, search.n_best);
  if (translation->end_tokens) {
    WEFT_ASSIGN_OR_RETURN(search.end, EndTokens(*opened.target, *translation->end_tokens));
  }
  if (search.n_best > search.beam) {
    return InvalidArgument("--n-best: ", search.n_best, " is more than the ", search.beam, " of --beam");
  }
  return UsageError(LineTranslator::Create(std::move(opened), options));
}

}  // namespace weft
