// The commands `weft train NAME`, which differ in their jobs alone. A command sets the job's options from flags and
// configuration files, and runs the training (apps/train/run_training.h).
#include <memory>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/strip.h"
#include "weft/apps/commands.h"
#include "weft/apps/flags.h"
#include "weft/apps/train/run_training.h"
#include "weft/distributed/messenger.h"
#include "weft/train/jobs/job_list.h"

namespace weft {
namespace {

// The texts of the commands by the kind of training, one of JobNames().
const std::pair<const char*, CommandTexts> kTexts[] = {
    {"gpt",
     {"Trains a GPT on texts, of which --tokenizer makes tokens, or on token files. Without a flag, it has 0.8 million "
      "parameters and learns the characters of the King James Bible.",
      "trains a GPT on a text, or on token files of any size",
      {{"Trains on a text of your own.", "weft train gpt --data=book.txt --steps=5000"},
       {"Learns tokens of several letters, and predicts them.",
        "weft train gpt --data=book.txt --tokenizer=bpe --vocabulary=4000"},
       {"Continues the newest run, for example after Ctrl-C.", "weft train gpt --resume"}}}},
    {"bert",
     {"Trains a BERT to predict the masked tokens of a text.",
      "trains a BERT to predict masked tokens of a text",
      {{"Trains on a text of your own, with a small vocabulary.", "weft train bert --data=book.txt --vocabulary=2000"},
       {"Also learns which sentences follow each other.",
        "weft train bert --data=book.txt --next-sentence --steps=20000 --ema=0.999"}}}},
    {"translate",
     {"Trains an encoder-decoder Transformer on pairs of sentences.",
      "trains an encoder-decoder on sentences and their translations",
      {{"Trains on a file of sentences and a file of their translations.",
        "weft train translate --source=en.txt --target=de.txt"},
       {"Trains a smaller model for longer, in a folder with a name.",
        "weft train translate --source=en.txt --target=de.txt --encoder-layers=3 --decoder-layers=3 --epochs=30 "
        "--out=runs/small"}}}},
    {"classify",
     {"Trains a BERT-style classifier of texts, pairs of texts or words, or a regression, from initial or published "
      "weights.",
      "trains a text classifier, from random or published weights",
      {{"Trains from random weights. A line is a text, a tab and its label.", "weft train classify --data=reviews.tsv"},
       {"Fine-tunes a published encoder, such as that of tools/fetch_minilm.",
        "weft train classify --data=reviews.tsv --init=minilm --epochs=3 --learning-rate=5e-5 "
        "--min-learning-rate=0"}}}},
    {"vit",
     {"Trains a Vision Transformer to classify pictures by their labels. With --task, it learns from pictures without "
      "labels instead; --init=RUN then begins a classifier with these weights.",
      "trains a Vision Transformer on labelled images",
      {{"Trains on lines of pixels and a label.", "weft train vit --data=digits.csv"},
       {"Moves the pictures by up to 1 pixel, and stops when it no longer helps.",
        "weft train vit --data=digits.csv --shift=1 --epochs=200 --patience=10"},
       {"Learns to guess hidden patches; a classifier can begin with this run.",
        "weft train vit --data=digits.csv --task=masked"}}}}};

}  // namespace

// The command has a flag for each row of the job's table, and the flags that all runs share, such as --out.
Command TrainCommand(CLI::App* weft, const std::string& name) {
  auto flags = std::make_shared<RunFlags>();
  flags->run.name = std::string(absl::StripPrefix(name, "train "));
  auto messenger = std::make_shared<std::unique_ptr<Messenger>>();
  const auto run = [messenger](const RunFlags& given) { return RunTraining(given, messenger.get()).status(); };
  const auto* const texts = absl::c_find_if(kTexts, [&](const auto& row) { return row.first == flags->run.name; });
  Command command = MakeCommand(weft, name, texts->second, flags, RunTable, run);
  // The table's rows point into a job that lives until the end of this statement. AddFlags keeps no such pointer.
  AddFlags(command.app, MakeJob(flags->run.name)->Table(), &flags->given);
  command.on_ranks = true;
  return command;
}

}  // namespace weft
