// `weft quantize` writes a model in Weft's own format, in fewer bytes.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "weft/apps/commands.h"
#include "weft/apps/convert/convert_rows.h"
#include "weft/apps/flags.h"
#include "weft/apps/printable.h"
#include "weft/base/status.h"
#include "weft/core/block_formats.h"
#include "weft/core/dtype.h"
#include "weft/core/program.h"
#include "weft/formats/convert.h"

namespace weft {
namespace {

struct QuantizeFlags {
  ConvertOptions options = {.format = "weft"};
  std::string argument;  // the model, named without a flag
  std::optional<DType> weights = kQ8_0;
  GivenFlags given;
};

Hyperparameters Table(QuantizeFlags* flags) {
  Hyperparameter weights = WeightsRow(&flags->weights);
  weights.help =
      absl::StrCat("format of matrices: ", WeightFormatList(/*with_bytes=*/true),
                   " bytes a number, more if rows aren't multiples of 32; vectors, tables of positions and matrices of "
                   "fewer than 64 rows or columns stay in f32");
  weights.rules.group = "";
  ConvertOptions& options = flags->options;
  Hyperparameters table = {
      {"model", "the model to read, as for weft import", &options.model, {.type = "MODEL"}},
      {"out",
       "the folder to write: config.json, model.safetensors and the tokenizer's files",
       &options.out,
       {.type = "FOLDER", .required = true}},
      weights,
  };
  Append(ConvertRows(&options), &table);
  return table;
}

absl::Status Quantize(QuantizeFlags flags) {
  ConvertOptions& options = flags.options;
  if (!flags.argument.empty() && !options.model.empty()) {
    return InvalidArgument("--model=", options.model, " and the argument ", flags.argument, " exclude each other");
  }
  if (options.model.empty()) options.model = flags.argument;
  if (options.model.empty()) return InvalidArgument("the model is missing: weft quantize MODEL --out=FOLDER");
  options.write.weights = *flags.weights;
  WEFT_ASSIGN_OR_RETURN(const ModelConversion conversion, UsageError(ModelConversion::Prepare(options)));
  WEFT_RETURN_IF_ERROR(WriteConverted(conversion));
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

Command QuantizeCommand(CLI::App* weft) {
  auto flags = std::make_shared<QuantizeFlags>();
  Command command = MakeCommand(
      weft,
      {"quantize",
       "Writes a model with weights of fewer bytes, which the commands that use models read faster. They take the "
       "folder as --model.",
       "writes a model in fewer bytes",
       {{"Writes a run's model in about a quarter of its bytes.", "weft quantize runs/gpt-1 --out=gpt-q8"},
        {"Writes it in about a seventh, which changes its answers more.",
         "weft quantize --model=runs/gpt-1 --out=gpt-q4 --weights=q4_0"}}},
      flags, Table, Quantize);
  command.app->add_option("model_argument", flags->argument, "the model to read, as --model")->type_name("MODEL");
  return command;
}

}  // namespace weft
