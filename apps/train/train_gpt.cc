// The command `weft train gpt`.
#include "weft/apps/train/training_command.h"
#include "weft/train/jobs/gpt_job.h"

namespace weft {

Command TrainGptCommand(CLI::App* weft) {
  return TrainingCommand(
      weft, "gpt",
      "Trains a GPT on texts, of which --tokenizer makes tokens, or on token files. Without a flag, it has 0.8 million "
      "parameters and learns the characters of the King James Bible.",
      [] { return std::make_unique<GptJob>(); }, "trains a GPT on a text, or on token files of any size",
      {{"Trains on a text of your own.", "weft train gpt --data=book.txt --steps=5000"},
       {"Learns tokens of several letters, and predicts them.",
        "weft train gpt --data=book.txt --tokenizer=bpe --vocabulary=4000"},
       {"Continues the newest run, for example after Ctrl-C.", "weft train gpt --resume"}});
}

}  // namespace weft
