// Compares docs/options.md with the options of the models in the code: with the rows of the trainings' tables, and with
// the fields of the C++ structs. A structured binding fails to compile if a struct gets another field.
#include <cmath>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "weft/models/attention.h"
#include "weft/models/bert.h"
#include "weft/models/block.h"
#include "weft/models/gpt.h"
#include "weft/models/layers.h"
#include "weft/models/lora.h"
#include "weft/models/transformer.h"
#include "weft/models/vit.h"
#include "weft/options/hyperparameters.h"
#include "weft/tests/options/option_values.h"
#include "weft/train/jobs/job.h"
#include "weft/train/jobs/job_list.h"

namespace weft {
namespace {

// Returns the names of the fields of a struct, which must be all of its fields.
#define WEFT_FIELDS(Struct, ...)                           \
  [] {                                                     \
    [[maybe_unused]] const auto& [__VA_ARGS__] = Struct(); \
    return Names(#__VA_ARGS__);                            \
  }()

using Set = std::set<std::string>;

Set Names(const std::string& list) { return absl::StrSplit(list, absl::ByAnyChar(", "), absl::SkipEmpty()); }

std::map<std::string, Set> FieldsOfConfigurations() {
  return {
      {"GptConfig",
       WEFT_FIELDS(GptConfig, vocabulary, context, layers, heads, width, feed_forward, dropout, attention_dropout,
                   embedding_dropout, activation_dropout, activation, pre_norm, tied_head, bias, head_bias,
                   value_embeddings, skip_connections, result_norm, residual, embedding_scale, residual_scale,
                   logits_scale, logits_cap, norm, gated, attention, positions, first_position, embedding_norm, mixture,
                   balance_loss, initializer, zero_output, ablation, names, dtype)},
      {"BertConfig",
       WEFT_FIELDS(BertConfig, vocabulary, context, segments, layers, heads, width, feed_forward, dropout,
                   attention_dropout, classifier_dropout, activation_dropout, norm, activation, pre_norm, bias, gated,
                   attention, positions, initializer, zero_output, ablation, classifier_pooling, dtype, model_type,
                   embedding_width, shared_distance_bias, segment_inputs, padding, pooler_activation, masked_activation,
                   shared_layers, next_sentence_dropout, first_norm, result_dropout, shared_transform, transform_bias,
                   masked_bias)},
      {"TransformerConfig",
       WEFT_FIELDS(TransformerConfig, source_vocabulary, target_vocabulary, context, encoder_layers, decoder_layers,
                   heads, width, feed_forward, dropout, attention_dropout, activation_dropout, label_smoothing,
                   activation, pre_norm, norm, bias, gated, positions, first_position, scale_embeddings,
                   shared_embeddings, tied_head, head_bias, embedding_norm, logits_scale, shared_distance_bias, memory,
                   attention, initializer, zero_output, ablation, dtype)},
      {"VitConfig",
       WEFT_FIELDS(VitConfig, image_height, image_width, channels, patch_size, classes, layers, heads, width,
                   feed_forward, dropout, attention_dropout, activation_dropout, norm, activation, pre_norm, bias,
                   gated, attention, positions, initializer, zero_output, ablation, distillation)},
  };
}

std::map<std::string, Set> FieldsOfParts() {
  return {
      {"norm", WEFT_FIELDS(NormOptions, kind, epsilon, bias, plus_one)},
      {"mixture", WEFT_FIELDS(MixtureOptions, experts, per_token)},
      {"attention",
       WEFT_FIELDS(AttentionVariant, key_value_heads, query_width, key_width, value_width, score, score_width, merge,
                   patterns, distance_bias, buckets, max_distance, soft_cap, score_scale, rotary, rotary_base,
                   rotary_width, rotary_scaling, query_key_norm, projection_bias, output_bias)},
      {"attention.patterns", WEFT_FIELDS(AttentionPattern, window, stride, dilation, rotary, rotary_base)},
      {"attention.rotary_scaling", WEFT_FIELDS(RotaryScaling, kind, factor, context, slow, fast, gain)},
  };
}

std::map<std::string, Set> FieldsOfLayers() {
  return {
      {"AttentionOptions",
       WEFT_FIELDS(AttentionOptions, heads, causal, variant, layer, dropout, residual_dropout, bias, norm, initializer,
                   output_initializer, ablation, packed, query, key, value, output, query_norm, key_norm, shared_bias)},
      {"FeedForwardOptions", WEFT_FIELDS(FeedForwardOptions, width, activation, dropout, hidden_dropout, bias,
                                         initializer, output_initializer, up, gate, down)},
      {"BlockOptions",
       WEFT_FIELDS(BlockOptions, attention, cross_attention, feed_forward, mixture, norm, pre_norm, result_norm,
                   residual, residual_scale, attention_name, attention_norm, cross_name, cross_norm, cross_result_norm,
                   feed_forward_name, feed_forward_norm, attention_result_norm, feed_forward_result_norm)},
      {"Ablation", WEFT_FIELDS(Ablation, residual, norm, feed_forward, value, query_is_key)},
      {"LinearOptions", WEFT_FIELDS(LinearOptions, bias, initializer)},
      {"NormOptions", WEFT_FIELDS(NormOptions, kind, epsilon, bias, plus_one)},
      {"BatchNormOptions", WEFT_FIELDS(BatchNormOptions, epsilon, momentum)},
      {"EmbeddingTableOptions", WEFT_FIELDS(EmbeddingTableOptions, initializer, dtype, least)},
      {"PositionOptions", WEFT_FIELDS(PositionOptions, kind, name, context, first)},
      {"LoraOptions", WEFT_FIELDS(LoraOptions, rank, alpha, dropout, targets, also_train)},
  };
}

// Returns "STRUCT.FIELD" for each field of the configurations and layers. A field that is a struct counts as its parts.
Set AllFields() {
  Set all;
  const std::map<std::string, Set> parts = FieldsOfParts();
  for (const auto& [name, fields] : FieldsOfConfigurations()) {
    Set pending;
    for (const std::string& field : fields) pending.insert(field);
    while (!pending.empty()) {
      const std::string field = *pending.begin();
      pending.erase(pending.begin());
      const auto part = parts.find(field);
      if (part == parts.end()) {
        all.insert(absl::StrCat(name, ".", field));
        continue;
      }
      for (const std::string& each : part->second) pending.insert(absl::StrCat(field, ".", each));
    }
  }
  for (const auto& [name, fields] : FieldsOfLayers()) {
    for (const std::string& field : fields) all.insert(absl::StrCat(name, ".", field));
  }
  return all;
}

std::string ConfigurationOf(const std::string& training) {
  const std::map<std::string, std::string> names = {{"gpt", "GptConfig"},
                                                    {"bert", "BertConfig"},
                                                    {"translate", "TransformerConfig"},
                                                    {"classify", "BertConfig"},
                                                    {"vit", "VitConfig"}};
  return names.at(training);
}

std::string Quoted(const std::string& text) { return absl::StrCat("`", text, "`"); }

std::string Values(const Hyperparameter& row) {
  const auto& [low, high] = std::pair(row.rules.low, row.rules.high);
  if (row.is_switch()) return "`true`, `false`";
  if (!row.rules.choices.empty()) {
    return absl::StrJoin(row.rules.choices, ", ",
                         [](std::string* out, const std::string& choice) { absl::StrAppend(out, Quoted(choice)); });
  }
  if (row.rules.is_path) return "a path";
  if (row.is_text()) return "see below";
  if (std::holds_alternative<int64_t*>(row.value)) {
    return absl::StrCat("whole numbers ", static_cast<int64_t>(low), " .. ", static_cast<int64_t>(high));
  }
  return std::isinf(high) ? absl::StrCat("numbers from ", low) : absl::StrCat("numbers ", low, " .. ", high);
}

std::string TrainedWith(const std::string& flag, const std::string& training) {
  std::vector<std::string> values;
  for (const OptionValue& each : OptionValues()) {
    if (each.flag != flag || !each.IsFor(training)) continue;
    const std::string with =
        each.with.empty() ? "" : absl::StrCat(" --", absl::StrReplaceAll(each.with, {{" ", " --"}}));
    values.push_back(Quoted(absl::StrCat(each.value, with)));
  }
  return absl::StrJoin(values, ", ");
}

// Returns the lines of the table of flags without their first column, which has the C++ field.
std::vector<std::string> WantedRows() {
  std::vector<std::string> cells;                // in the order of the tables
  std::map<std::string, std::string> trainings;  // by the row's other cells
  for (const std::string& training : JobNames()) {
    const std::unique_ptr<TrainingJob> job = MakeJob(training);  // the rows point into it
    for (const Hyperparameter& row : job->source().Table()) {
      const std::string start = absl::StrCat("`--", row.flag, "` | `", row.key(), "` | ");
      const std::string end = absl::StrCat(" | ", Values(row), " | ", TrainedWith(row.flag, training), " |");
      std::string& names = trainings[start + "\n" + end];
      if (names.empty()) cells.push_back(start + "\n" + end);
      absl::StrAppend(&names, names.empty() ? "" : ", ", training);
    }
  }
  for (std::string& each : cells) each = absl::StrReplaceAll(each, {{"\n", trainings[each]}});
  return cells;
}

// Returns the lines of the page's tables.
std::vector<std::string> PageRows() {
  std::ifstream file("docs/options.md");
  EXPECT_TRUE(file.good());
  std::vector<std::string> rows;
  for (std::string line; std::getline(file, line);) {
    if (absl::StartsWith(line, "| `") || absl::StartsWith(line, "| - ")) rows.push_back(line);
  }
  return rows;
}

std::vector<std::string> Cells(const std::string& row) { return absl::StrSplit(row, " | "); }
// Whether a row belongs to the page's first table, which has six columns. The others have two.
bool HasFlag(const std::string& row) { return Cells(row).size() == 6; }

TEST(OptionsPageTest, HasARowForEachFlagAndNoOther) {
  Set page;
  for (const std::string& row : PageRows()) {
    if (HasFlag(row)) page.insert(row.substr(row.find("`--")));
  }
  for (const std::string& row : WantedRows()) EXPECT_EQ(page.erase(row), 1u) << "the page lacks\n" << row;
  EXPECT_EQ(absl::StrJoin(page, "\n"), "") << "the page has rows that the code lacks";
}

TEST(OptionsPageTest, NamesEachFieldOfTheConfigurationsAndLayers) {
  std::multiset<std::string> page;
  for (const std::string& row : PageRows()) {
    const std::vector<std::string> cells = Cells(row);
    const std::string field = absl::StrReplaceAll(cells[0], {{"| ", ""}, {"`", ""}});
    if (field == "-") continue;
    if (!HasFlag(row)) {
      page.insert(field);
      continue;
    }
    Set structs;
    for (const std::string& training : Names(cells[3])) structs.insert(ConfigurationOf(training));
    for (const std::string& name : structs) page.insert(absl::StrCat(name, ".", field));
  }
  for (const std::string& field : AllFields()) EXPECT_GE(page.count(field), 1u) << "the page lacks " << field;
  const Set known = AllFields();
  for (const std::string& field : page) EXPECT_TRUE(known.contains(field)) << "no struct has " << field;
}

}  // namespace
}  // namespace weft
