// Tests that the program `weft` accepts the names of other programs, and suggests the right option for unknown names.
// docs/names.md lists the names. Also tests that flags without effect are errors.
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "weft/options/option_names.h"
#include "weft/tests/weft_program.h"

namespace weft {
namespace {

class FlagNamesTest : public WeftProgramTest {};

Arguments Split(const std::string& words) { return absl::StrSplit(words, ' ', absl::SkipEmpty()); }

bool Contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// The page's cell of names: "`-m`, `--model-path`".
std::string Cell(const char* names, bool letters_are_short) {
  std::string cell;
  for (const std::string& name : Split(names)) {
    const char* hyphens = letters_are_short && name.size() == 1 ? "-" : "--";
    absl::StrAppend(&cell, cell.empty() ? "`" : ", `", hyphens, name, "`");
  }
  return cell.empty() ? "-" : cell;
}

TEST_F(FlagNamesTest, ThePageHasTheRowsOfTheTables) {
  std::ifstream file("docs/names.md");
  ASSERT_TRUE(file.good());
  std::set<std::string> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("| `", 0) == 0) rows.insert(line);
  }
  size_t expected = 0;
  for (const OptionAliases& row : AllOptionAliases()) {
    const std::string line = absl::StrCat("| `--", row.option, "` | ", Cell(row.aliases, true), " |");
    EXPECT_TRUE(rows.contains(line)) << line;
    ++expected;
  }
  for (const ForeignNames& row : AllForeignNames()) {
    const std::string hint = absl::StrReplaceAll(row.hint, {{"<", "`--"}, {">", "`"}});
    const std::string line = absl::StrCat("| ", Cell(row.names, false), " | ", Cell(row.options, false), " | ",
                                          hint.empty() ? "-" : hint, " |");
    EXPECT_TRUE(rows.contains(line)) << line;
    ++expected;
  }
  EXPECT_EQ(rows.size(), expected);
}

TEST_F(FlagNamesTest, NamesOfOtherProgramsMakeTheSameRun) {
  const Arguments ours = {"train",          "gpt",        "--data=text.txt", "--steps=3",   "--learning-rate=0.01",
                          "--layers=1",     "--heads=2",  "--width=16",      "--context=8", "--batch=2",
                          "--eval-every=0", "--clip=0.5", "--out=ours",      "--bias=false"};
  ASSERT_TRUE(Works(Weft(ours)));
  const Arguments theirs = {"train",
                            "gpt",
                            "--train_file=text.txt",
                            "--max_iters=3",
                            "--lr",
                            "0.01",
                            "--num-layers=1",
                            "--n_head=2",
                            "--hidden-size=16",
                            "--block_size=8",
                            "--batch-size=2",
                            "--eval_interval=0",
                            "--max-grad-norm=0.5",
                            "-o",
                            "theirs",
                            "--no-bias"};
  ASSERT_TRUE(Works(Weft(theirs)));
  EXPECT_EQ(Differences(Results("ours"), Results("theirs")), "");
  EXPECT_EQ(Read("ours/config.json"), Read("theirs/config.json"));
  Write("config.json",
        R"({"train_file": "text.txt", "max_steps": 3, "lr": 0.01, "n_layer": 1, "n_head": 2, "n_embd": 16,
                           "block_size": 8, "batch_size": 2, "eval_steps": 0, "max_grad_norm": 0.5, "use_bias": false})");
  ASSERT_TRUE(Works(Weft({"train", "gpt", "--config=config.json", "--output_dir=keys"})));
  EXPECT_EQ(Read("ours/config.json"), Read("keys/config.json"));
  const CommandResult generated = Weft({"generate", "-m", "ours", "-p", "line ", "--max_new_tokens=5"});
  EXPECT_TRUE(Works(generated));
  EXPECT_EQ(generated.out, Weft({"generate", "--model=theirs", "--prompt=line ", "--length=5"}).out);
}

TEST_F(FlagNamesTest, ErrorsHaveTheNameThatWasTyped) {
  const struct {
    const char *command, *message;
  } rows[] = {
      {"train gpt --batch_size=0", "weft train gpt: --batch_size (--batch): 0 is not in 1"},
      {"train gpt --batch-size=many", "weft train gpt: --batch-size (--batch): 'many' is not a whole number"},
      {"train gpt --num-steps=50 --warmup-steps=51", "weft train gpt: --warmup-steps: the warm-up of 51 steps"},
      {"train gpt --warmup_steps=-1", "weft train gpt: --warmup_steps (--warmup-steps): -1 is not in 0"},
      {"train gpt --no-bias=maybe", "--no-bias (--bias): 'maybe' is not true or false"},
      {"train gpt --batch=4 --batch-size=8",
       "weft train gpt: --batch and --batch-size are the same flag with different values, '4' and '8'"},
      {"train gpt --batch_size 4 --batch 8", "--batch_size and --batch are the same flag with different values"},
      {"train gpt --bias --no-bias", "--bias and --no-bias are the same flag with different values"},
      {"generate -m a --model=b", "weft generate: -m and --model are the same flag with different values, 'a' and 'b'"},
      {"generate -model=a", "weft generate: unknown flag '-model', did you mean '--model'?"},
      {"generate -m", "--model"},
      {"serve --model=,", "--model names no model"},
      {"train gpt --no-steps", "unknown flag '--no-steps', did you mean '--steps'?"},
      {"train gpt --max-new-tokens=3", "unknown flag '--max-new-tokens'"},
      {"train gpt --learning_rat 3", "unknown flag '--learning_rat', did you mean '--learning-rate'?"},
      {"train gpt --gradient-accumulation-steps=2",
       "did you mean '--micro-batches'? It divides --batch into parts, whose gradients are added; other programs"},
      {"train gpt --torch-compile", "weft train gpt: unknown flag '--torch-compile': Weft compiles every graph"},
      {"train gpt --quiet --verbose", "--quiet: it excludes verbose"},
  };
  for (const auto& [command, message] : rows) EXPECT_TRUE(Fails(Weft(Split(command)), 2, message)) << command;
}

TEST_F(FlagNamesTest, EqualValuesAndValuesLikeFlagsAreAccepted) {
  MakeRun("run", {"--batch-size=2", "--batch=2", "--n_layer=1"});
  // The word after a flag is its value, whatever it looks like.
  EXPECT_TRUE(Fails(Weft({"generate", "--model", "--no_a", "--model-path", "--no-b"}), 2, "'--no_a' and '--no-b'"));
  EXPECT_TRUE(Works(Weft({"simulate", "--graph=towers", "--runs=1", "--workers=1", "--reuse"})));
  Write("-m", "line 1\n");
  EXPECT_TRUE(Works(Weft({"tokenize", "--tokenizer=run", "--", "-m"})));
}

TEST_F(FlagNamesTest, VersionQuietAndVerbose) {
  EXPECT_EQ(Weft({"-v"}).out, Weft({"--version"}).out);
  const CommandResult quiet = Train({"--out=quiet", "-q"}), verbose = Train({"--out=verbose", "-v"});
  EXPECT_TRUE(Works(quiet));
  EXPECT_EQ(quiet.out + quiet.err, "sample:\n" + Read("quiet/sample.txt"));
  EXPECT_TRUE(Works(verbose));
  const std::string all = verbose.out + verbose.err;
  for (const char* step : {"step 1/20", "step 7/20", "step 20/20"}) EXPECT_TRUE(Contains(all, step)) << all;
  EXPECT_EQ(Read("quiet/config.json"), Read("verbose/config.json"));
}

// The options of a command, from the first names of the flags in its help.
std::vector<std::string> OptionsIn(const std::string& help) {
  std::vector<std::string> options;
  const std::regex flag("\\n  (?:-[a-z], ?)?--([a-z0-9-]+)");
  for (std::sregex_iterator at(help.begin(), help.end(), flag), end; at != end; ++at) options.push_back((*at)[1]);
  return options;
}

// The share of names of tests/names/typed_names.tsv that are accepted in place of the option that is meant, or for
// which that option is suggested first.
TEST_F(FlagNamesTest, NineOfTenSuggestionsAreRight) {
  std::ifstream file("tests/names/typed_names.tsv");
  ASSERT_TRUE(file.good());
  std::map<std::string, std::vector<std::string>> options;  // by command
  std::map<std::string, std::pair<int, int>> share;         // right and all, by list
  std::string misses;
  const auto check = [&](const std::string& list, const std::string& typed, const std::string& option, NameStyle style,
                         const std::vector<std::string>& known) {
    const std::string found = FindOption(typed, known), suggestion = Suggestion(typed, known, style);
    const std::string name = style == NameStyle::kFlag ? "--" + option : absl::StrReplaceAll(option, {{"-", "_"}});
    const bool right = found.empty() ? suggestion.rfind(", did you mean '" + name + "'?", 0) == 0 : found == option;
    for (const std::string& key : {list, std::string("all")}) {
      share[key].first += right;
      ++share[key].second;
    }
    if (!right) absl::StrAppend(&misses, typed, suggestion, " Meant was ", name, "\n");
  };
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> row = absl::StrSplit(line, '\t');
    if (row.size() != 5) continue;
    std::vector<std::string>& known = options[row[1]];
    if (known.empty()) known = OptionsIn(Weft(Split(row[1]) + Arguments{"--help"}).out);
    ASSERT_GE(known.size(), 5) << row[1];
    check("list " + row[0], row[2], row[3], NameStyle::kFlag, known);
    if (row[1].rfind("train", 0) == 0) {
      check("list " + row[0], absl::StrReplaceAll(row[2], {{"-", "_"}}), row[3], NameStyle::kKey, known);
    }
  }
  for (const auto& [list, counts] : share) {
    std::printf("%s: %d of %d right\n", list.c_str(), counts.first, counts.second);
    EXPECT_GE(counts.first, 0.9 * counts.second) << list;
  }
  std::printf("%s", misses.c_str());
  EXPECT_GE(share["all"].second, 400);
}

TEST_F(FlagNamesTest, AFlagWithoutEffectIsAnError) {
  const struct {
    const char *command, *flags, *wanted;
  } rows[] = {
      {"train gpt", "lora-alpha=32 lora-dropout=0.1 lora-targets=*", "it needs --lora-rank"},
      {"train gpt", "score-width=8", "it needs --score=additive"},
      {"train gpt", "buckets=8 max-distance=8", "it needs --distance-bias=buckets"},
      {"train gpt", "rotary-base=500", "it needs --rotary"},
      {"train gpt", "vocabulary=400", "it needs --tokenizer=bpe"},
      {"train bert --tokenizer=t", "vocabulary=400", "it needs --tokenizer=bpe or no --tokenizer"},
      {"train gpt", "decay-steps=5", "it needs --schedule=wsd"},
      {"train gpt", "plateau-factor=0.5 plateau-patience=1 plateau-threshold=0.1", "it needs --schedule=plateau"},
      {"train gpt", "gradient-sums=bf16", "it needs --micro-batches"},
      {"train gpt", "metric=val_accuracy", "it needs --save-best or --patience"},
      {"train gpt --eval-every=0", "insights", "it needs --eval-every"},
      {"train translate", "sampling-rate=0.1", "it needs --scheduled-sampling"},
      {"train translate", "sampling-steps=9", "it needs --scheduled-sampling=linear or inverse-sigmoid"},
      {"train vit --data=a", "masked=0.5", "it needs --task=masked"},
      {"train vit --data=a", "validation-labels=l", "it needs --validation"},
      {"evaluate", "resamples=9", "it needs --baseline"},
      {"attention --model=m --json", "layer=1 head=1", "it has no effect with --json"},
      {"attention --model=m", "overwrite", "it needs --out"},
      {"calibrate", "imitate=25us,10Gbit", "it needs --network"},
      {"export --model=m --out=o", "file-version=1", "it needs --layout=llama2.c"},
      {"graph", "rank=1", "it needs --ranks"},
      {"profile", "network=25us,10Gbit", "it needs --ranks"},
      {"simulate", "overwrite", "it needs --save-tasks"},
      {"tokenize", "document-end=blank-line vocabulary=400 shard-tokens=9", "it needs --out"},
      {"tokenize --out=o --tokenizer=t", "vocabulary=400", "it has no effect with --tokenizer"},
      {"translate --model=m", "shortlist-translations=9", "it needs --shortlist"},
  };
  for (const auto& [command, flags, wanted] : rows) {
    for (const std::string& flag : Split(flags)) {
      const std::string error = "--" + flag.substr(0, flag.find('=')) + ": " + wanted;
      EXPECT_TRUE(Fails(Weft(Split(command) + Arguments{"--" + flag}), 2, error));
    }
  }
  Write("config.json", R"({"lora_alpha": 32})");
  EXPECT_TRUE(
      Fails(Weft({"train", "gpt", "--config=config.json"}), 2, "config.json: lora-alpha: it needs --lora-rank"));
}

}  // namespace
}  // namespace weft
