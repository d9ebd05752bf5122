// `weft import`, `weft export` and `weft quantize` write a model in another format.
#include "weft/formats/convert.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "weft/apps/commands.h"
#include "weft/apps/convert/removal_on_signal.h"
#include "weft/apps/flags.h"
#include "weft/apps/streams.h"
#include "weft/base/status.h"
#include "weft/core/block_formats.h"
#include "weft/core/dtype.h"
#include "weft/core/program.h"
#include "weft/options/hyperparameters.h"

namespace weft {
namespace {

struct ConvertFlags {
  ConvertOptions options;
  std::optional<DType> weights;  // of weft export and weft quantize
  int64_t file_version = 0;      // of weft export
  std::string argument;          // of weft quantize: the model, named without a flag
  GivenFlags given;
};

// Returns the rows that the commands share.
Hyperparameters ConvertRows(Hyperparameter model, ConvertOptions* options) {
  return {
      std::move(model),
      {"out",
       "the folder to write: config.json, model.safetensors and the tokenizer's files",
       &options->out,
       {.type = "FOLDER", .required = true}},
      {"tokenizer",
       "the tokenizer's file or folder; without this flag, the files beside the model",
       &options->tokenizer,
       {.type = "FILE_OR_FOLDER"}},
      {"overwrite", "if the folder is not empty, replace the files of a model in it", &options->overwrite},
      {"max-shard-size",
       "divide the weights into files model-00001-of-00005.safetensors of at most this size; without this flag, one "
       "file",
       &options->max_shard_size,
       {.is_bytes = true}},
      {"ignore-extra-tensors", "leave out tensors that the model does not have, and name them on stderr",
       &options->read.ignore_extra_tensors},
  };
}

Hyperparameters ImportTable(ConvertFlags* flags) {
  ConvertOptions& options = flags->options;
  return ConvertRows(
      ModelRow(
          "a folder of Hugging Face, nanoGPT, CTranslate2 or weft quantize, a file of GGUF or llama2.c, or a run's "
          "folder",
          &options.model, ""),
      &options);
}

std::vector<std::string> FormatsToWrite() {
  std::vector<std::string> names;
  for (const Format* const format : Formats()) {
    if (format->write != nullptr && !format->is_own) names.emplace_back(format->name);
  }
  return names;
}

Hyperparameters ExportTable(ConvertFlags* flags) {
  Hyperparameters table = ImportTable(flags);
  table[1].help = "the folder to write: the model and the tokenizer's files";
  table.push_back({"layout", "the format to write", &flags->options.format, {.choices = FormatsToWrite()}});
  Hyperparameter weights = WeightsRow(&flags->weights);
  weights.help = "format of the matrices of model.gguf; without this flag, that of the model";
  weights.rules.group = "";
  weights.rules.needs = "layout=gguf";
  table.push_back(weights);
  table.push_back({"file-version",
                   "version of llama2.c's model.bin: 0 is the legacy format, 1 has a header",
                   &flags->file_version,
                   {.low = 0, .high = 1, .needs = "layout=llama2.c"}});
  return table;
}

Hyperparameters QuantizeTable(ConvertFlags* flags) {
  Hyperparameter weights = WeightsRow(&flags->weights);
  weights.help =
      absl::StrCat("format of matrices: ", WeightFormatList(/*with_bytes=*/true),
                   " bytes a number, more if rows aren't multiples of 32; vectors, tables of positions and matrices of "
                   "fewer than 64 rows or columns stay in f32");
  weights.rules.group = "";
  ConvertOptions& options = flags->options;
  Hyperparameters table =
      ConvertRows({"model", "the model to read, as for weft import", &options.model, {.type = "MODEL"}}, &options);
  table.insert(table.begin() + 2, weights);
  return table;
}

// Reads and writes the model, and prints a note on stderr that names the tensors that were left out. If SIGINT or
// SIGTERM ends the program meanwhile, its temporary folder is removed. While the files are moved to their places, these
// signals wait, so that the folder has the files of one model.
absl::StatusOr<ModelConversion> WriteConverted(const ConvertOptions& options) {
  WEFT_ASSIGN_OR_RETURN(ModelConversion conversion, UsageError(ModelConversion::Prepare(options)));
  RemovalOnSignal removal(conversion.TemporaryFolder());
  WEFT_RETURN_IF_ERROR(conversion.Write([&] { removal.Hold(); }));
  if (!conversion.extra().empty()) {
    PrintNotes({"left out, because the model does not have them: " + absl::StrJoin(conversion.extra(), ", ")});
  }
  return conversion;
}

// `published`: whether a model that no class of Hugging Face has is an error.
absl::Status Convert(ConvertFlags flags, bool published) {
  ConvertOptions& options = flags.options;
  options.write = {.weights = flags.weights,
                   .llama2c_version = static_cast<int>(flags.file_version),
                   .published_classes_only = published};
  WEFT_ASSIGN_OR_RETURN(const ModelConversion conversion, WriteConverted(options));
  std::printf("%s: %lld numbers%s\n", Printable(options.out).c_str(), static_cast<long long>(conversion.CountWeights()),
              conversion.has_tokenizer() ? "" : ", and no tokenizer, as none lies beside the model");
  return absl::OkStatus();
}

absl::Status Quantize(ConvertFlags flags) {
  ConvertOptions& options = flags.options;
  if (!flags.argument.empty() && !options.model.empty()) {
    return InvalidArgument("--model=", options.model, " and the argument ", flags.argument, " exclude each other");
  }
  if (options.model.empty()) options.model = flags.argument;
  if (options.model.empty()) return InvalidArgument("the model is missing: weft quantize MODEL --out=FOLDER");
  options.write.weights = *flags.weights;
  WEFT_ASSIGN_OR_RETURN(const ModelConversion conversion, WriteConverted(options));
  int vectors = 0;
  for (const ParameterSpec& spec : conversion.parameters()) {
    absl::string_view reason;
    const DType held = HeldDType(spec, *flags.weights, &reason);
    if (held == *flags.weights || (spec.type.shape.rank() < 2 && ++vectors > 0)) continue;
    std::puts(absl::StrCat(Printable(spec.name), ": ", Name(held), ", because ", reason).c_str());
  }
  if (vectors > 0) std::printf("%d vectors: f32, because they are no matrices\n", vectors);
  const auto numbers = static_cast<double>(conversion.CountWeights());
  const auto bytes = static_cast<double>(conversion.StoredBytes());
  std::printf("%s: %.0f numbers in %.1f MB, %.2f bytes each\n", Printable(options.out).c_str(), numbers, bytes / 1e6,
              bytes / numbers);
  return absl::OkStatus();
}

}  // namespace

Command ImportCommand(CLI::App* weft, const std::string& name) {
  return MakeCommand(
      weft, name,
      {"Writes a model of another format as a folder in Hugging Face's layout, in f32, after checking every key and "
       "every tensor.",
       "converts a published model to the format of Hugging Face",
       {{"Converts a folder of CTranslate2.", "weft import --model=ctranslate2-model --out=converted"},
        {"Converts a file of llama2.c, whose tokenizer is another file.",
         "weft import --model=stories260K.bin --tokenizer=tok512.bin --out=stories"}}},
      std::make_shared<ConvertFlags>(), ImportTable,
      [](const ConvertFlags& flags) { return Convert(flags, /*published=*/false); });
}

Command ExportCommand(CLI::App* weft, const std::string& name) {
  return MakeCommand(
      weft, name,
      {"Writes a model in the format of another program.",
       "writes a model in the format of another program",
       {{"Writes a run's model for the package transformers.",
         "weft export --model=runs/gpt-1 --out=gpt --layout=huggingface"},
        {"Writes the mean of its checkpoints.", "weft export --model=runs/gpt-1@mean --out=mean --layout=huggingface"},
        {"Writes one file for llama.cpp, in about a quarter of the bytes.",
         "weft export --model=gpt --out=gpt-gguf --layout=gguf --weights=q8_0"}}},
      std::make_shared<ConvertFlags>(), ExportTable,
      [](const ConvertFlags& flags) { return Convert(flags, /*published=*/true); });
}

Command QuantizeCommand(CLI::App* weft, const std::string& name) {
  auto flags = std::make_shared<ConvertFlags>(ConvertFlags{.options = {.format = "weft"}, .weights = kQ8_0});
  Command command = MakeCommand(
      weft, name,
      {"Writes a model with weights of fewer bytes, which the commands that use models read faster. They take the "
       "folder as --model.",
       "writes a model in fewer bytes",
       {{"Writes a run's model in about a quarter of its bytes.", "weft quantize runs/gpt-1 --out=gpt-q8"},
        {"Writes it in about a seventh, which changes its answers more.",
         "weft quantize --model=runs/gpt-1 --out=gpt-q4 --weights=q4_0"}}},
      flags, QuantizeTable, Quantize);
  command.app->add_option("model_argument", flags->argument, "the model to read, as --model")->type_name("MODEL");
  return command;
}

}  // namespace weft
