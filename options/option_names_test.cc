#include "weft/options/option_names.h"

#include <gtest/gtest.h>

#include <set>

namespace weft {
namespace {

const std::vector<std::string> kOptions = {"batch",  "context",   "micro-batches", "learning-rate",
                                           "layers", "precision", "eval-every",    "warmup-steps",
                                           "steps",  "model",     "max-length",    "length-penalty"};

TEST(OptionNamesTest, AliasesAreFoundWhereTheOptionIs) {
  EXPECT_EQ(FindOption("batch", kOptions), "batch");
  EXPECT_EQ(FindOption("batch-size", kOptions), "batch");
  EXPECT_EQ(FindOption("per_device_train_batch_size", kOptions), "batch");
  EXPECT_EQ(FindOption("n_layer", kOptions), "layers");
  EXPECT_EQ(FindOption("max_new_tokens", kOptions), "max-length");
  EXPECT_EQ(FindOption("max_new_tokens", std::vector<std::string>{"length", "max-length"}), "length");
  EXPECT_EQ(FindOption("learning_rate", kOptions), "learning-rate");
  EXPECT_EQ(FindOption("num-heads", kOptions), "");
  EXPECT_EQ(FindOption("m", kOptions), "");  // a short flag is no name
  EXPECT_EQ(ShortFlag("model"), "m");
  EXPECT_EQ(ShortFlag("batch"), "");
}

TEST(OptionNamesTest, SuggestsTheNearestOptionAndExplainsAnotherMeaning) {
  const struct {
    const char *name, *suggestion;
  } kRows[] = {
      {"conetxt", ", did you mean '--context'?"},
      {"penalty-length", ", did you mean '--length-penalty'?"},
      {"Batch", ", did you mean '--batch'?"},
      {"evaluation_interval", ", did you mean '--eval-every'?"},
      {"warmup_ratio", ", did you mean '--warmup-steps'? It is a number of steps, not a fraction"},
      {"gradient_accumulation_steps",
       ", did you mean '--micro-batches'? It divides --batch into parts, whose gradients are added; other programs "
       "multiply their batch"},
      {"torch_compile", ": Weft compiles every graph"},
      {"zzzzzz", ""},
      {"", ""},
  };
  for (const auto& [name, suggestion] : kRows) {
    EXPECT_EQ(Suggestion(name, kOptions, NameStyle::kFlag), suggestion) << name;
  }
  EXPECT_EQ(Suggestion("learning-rat", kOptions, NameStyle::kKey), ", did you mean 'learning_rate'?");
  EXPECT_EQ(Suggestion(std::string(1000, 'a'), kOptions, NameStyle::kKey), "");
}

// Otherwise an option and an alias of another option could be confused.
TEST(OptionNamesTest, NoAliasIsTheNameOfAnOption) {
  std::set<std::string> options;
  for (const OptionAliases& row : AllOptionAliases()) EXPECT_TRUE(options.insert(row.option).second) << row.option;
  for (const OptionAliases& row : AllOptionAliases()) {
    for (const std::string& alias : Aliases(row.option)) {
      EXPECT_FALSE(options.contains(alias)) << alias;
      EXPECT_EQ(WithHyphens(alias), alias);
    }
  }
}

}  // namespace
}  // namespace weft
