// `weft import` and `weft export` convert a model from one format to another.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "weft/apps/commands.h"
#include "weft/apps/convert/convert_rows.h"
#include "weft/apps/flags.h"
#include "weft/apps/printable.h"
#include "weft/base/status.h"
#include "weft/formats/convert.h"

namespace weft {
namespace {

struct ConvertFlags {
  ConvertOptions options;
  int64_t file_version = 0;
  GivenFlags given;
};

std::vector<std::string> FormatsToWrite() {
  std::vector<std::string> names;
  for (const Format* const format : Formats()) {
    if (format->write != nullptr && !format->is_own) names.emplace_back(format->name);
  }
  return names;
}

Hyperparameters ImportTable(ConvertFlags* flags) {
  ConvertOptions& options = flags->options;
  Hyperparameters table = {
      {"model",
       "a folder of Hugging Face, nanoGPT, CTranslate2 or weft quantize, a file of llama2.c, or a run's folder",
       &options.model,
       {.type = "MODEL", .required = true}},
      {"out",
       "the folder to write: config.json, model.safetensors and the tokenizer's files",
       &options.out,
       {.type = "FOLDER", .required = true}},
  };
  Append(ConvertRows(&options), &table);
  return table;
}

Hyperparameters ExportTable(ConvertFlags* flags) {
  Hyperparameters table = ImportTable(flags);
  table[1].help = "the folder to write: the model and the tokenizer's files";
  table.push_back({"layout", "the format to write", &flags->options.format, {.choices = FormatsToWrite()}});
  table.push_back({"file-version",
                   "version of llama2.c's model.bin: 0 is the legacy format, 1 has a header",
                   &flags->file_version,
                   {.low = 0, .high = 1, .needs = "layout=llama2.c"}});
  return table;
}

// `published`: whether a model that no class of Hugging Face has is an error.
absl::Status Convert(ConvertFlags flags, bool published) {
  ConvertOptions& options = flags.options;
  options.write = {.llama2c_version = static_cast<int>(flags.file_version), .published_classes_only = published};
  WEFT_ASSIGN_OR_RETURN(const ModelConversion conversion, UsageError(ModelConversion::Prepare(options)));
  WEFT_RETURN_IF_ERROR(WriteConverted(conversion));
  std::printf("%s: %lld numbers%s\n", Printable(options.out).c_str(), static_cast<long long>(conversion.CountWeights()),
              conversion.has_tokenizer() ? "" : ", and no tokenizer, as none lies beside the model");
  return absl::OkStatus();
}

}  // namespace

Command ImportCommand(CLI::App* weft) {
  return MakeCommand(
      weft,
      {"import",
       "Writes a model of another format as a folder in Hugging Face's layout, in f32, after checking every key and "
       "every tensor.",
       "converts a published model to the format of Hugging Face",
       {{"Converts a folder of CTranslate2.", "weft import --model=ctranslate2-model --out=converted"},
        {"Converts a file of llama2.c, whose tokenizer is another file.",
         "weft import --model=stories260K.bin --tokenizer=tok512.bin --out=stories"}}},
      std::make_shared<ConvertFlags>(), ImportTable,
      [](const ConvertFlags& flags) { return Convert(flags, /*published=*/false); });
}

Command ExportCommand(CLI::App* weft) {
  return MakeCommand(weft,
                     {"export",
                      "Writes a model in the format of another program.",
                      "writes a model in the format of another program",
                      {{"Writes a run's model for the package transformers.",
                        "weft export --model=runs/gpt-1 --out=gpt --layout=huggingface"},
                       {"Writes the mean of its checkpoints.",
                        "weft export --model=runs/gpt-1@mean --out=mean --layout=huggingface"}}},
                     std::make_shared<ConvertFlags>(), ExportTable,
                     [](const ConvertFlags& flags) { return Convert(flags, /*published=*/true); });
}

}  // namespace weft
