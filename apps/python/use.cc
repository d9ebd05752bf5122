// Functions that train and that use trained models. Options are texts by their names, and inputs are lists. The package
// in apps/python/weft calls these functions, and has the arguments that users see.
#include <cstdio>

#include "absl/strings/str_join.h"
#include "weft/apps/python/bind.h"
#include "weft/apps/train/run_training.h"
#include "weft/apps/use/generator_rows.h"
#include "weft/formats/model_formats.h"
#include "weft/inference/encode/bert_encoder.h"
#include "weft/inference/encode/classifier.h"
#include "weft/options/option_names.h"
#include "weft/text/tokenizers/load_tokenizer.h"
#include "weft/train/jobs/job_list.h"
#include "weft/train/run/build_info.h"

namespace weft {
namespace {

using Texts = std::vector<std::string>;
using Tokens = std::vector<std::vector<int32_t>>;

// Encodes each of `texts` with model.Encode(text).
template <class Model>
absl::StatusOr<Tokens> EncodeAll(const Texts& texts, const Model& model) {
  Tokens tokens;
  for (const std::string& text : texts) {
    WEFT_ASSIGN_OR_RETURN(tokens.emplace_back(), model.Encode(text));
  }
  return tokens;
}

std::string Train(const std::string& kind, const GivenFlags& texts) {
  RunFlags flags;
  flags.run.name = kind;
  const std::unique_ptr<TrainingJob> job = MakeJob(kind);
  if (job == nullptr) {
    Raise(InvalidArgument("train: '", kind, "' is no kind of training; wanted ", absl::StrJoin(JobNames(), ", ")));
  }
  Hyperparameters table = RunTable(&flags);
  Append(job->Table(), &table);
  flags.given = ToFlags(texts, table);
  Raise(SetFromTexts(flags.given, RunTable(&flags)));
  return WithoutGil([&] {
    std::unique_ptr<Messenger> messenger;
    absl::StatusOr<std::string> folder = RunTraining(flags, &messenger);
    std::fflush(stdout);  // the sample that the training has printed
    return folder;
  });
}

std::unique_ptr<TextGenerator> OpenGenerator(const std::string& path, const GivenFlags& texts) {
  TextGeneratorOptions options = kUsualGeneration;
  const GivenFlags given = SetOptions(texts, GenerateRows(&options));
  if (given.contains("logprobs")) Raise(InvalidArgument("logprobs: only the command weft generate has this option"));
  return WithoutGil([&]() -> absl::StatusOr<std::unique_ptr<TextGenerator>> {
    WEFT_ASSIGN_OR_RETURN(OpenedGpt gpt, OpenForCommand(path, given, /*beams=*/true, &options));
    return TextGenerator::Create(std::move(gpt), options);
  });
}

// Continues `prompts`. Calls on_text(index of the prompt, new piece of text) for each token. Stops at Ctrl-C, or at an
// exception of `on_text`.
void Generate(TextGenerator* self, const Texts& prompts, const py::function& on_text) {
  bool stopped = false;
  WithoutGil([&]() -> absl::Status {
    WEFT_ASSIGN_OR_RETURN(const Tokens tokens, EncodeAll(prompts, *self));
    return self->Continue(tokens, [&](const GeneratedToken& token) {
      const py::gil_scoped_acquire gil;
      const py::object index = py::int_(token.prompt), text = Recorded(token.text);
      stopped = stopped || PyErr_CheckSignals() != 0;
      if (!stopped) {
        PyObject* const result = PyObject_CallFunctionObjArgs(on_text.ptr(), index.ptr(), text.ptr(), nullptr);
        stopped = result == nullptr;
        Py_XDECREF(result);
      }
      return !stopped;
    });
  });
  if (stopped) throw py::error_already_set();
}

std::unique_ptr<LineTranslator> OpenLines(const std::string& path, const GivenFlags& texts) {
  TranslationOptions translation;
  const GivenFlags given = SetOptions(texts, TranslationRows(&translation));
  return WithoutGil([&] { return OpenTranslator(path, given, &translation); });
}

// Returns the best translations of each line.
std::vector<Texts> Translate(LineTranslator* self, const Texts& lines) {
  return WithoutGil([&]() -> absl::StatusOr<std::vector<Texts>> {
    WEFT_ASSIGN_OR_RETURN(const Tokens sources, EncodeAll(lines, *self));
    WEFT_ASSIGN_OR_RETURN(const auto translations, self->Translate(sources));
    std::vector<Texts> all(translations.size());
    for (size_t i = 0; i < all.size(); ++i) {
      for (const Hypothesis& each : translations[i]) {
        WEFT_ASSIGN_OR_RETURN(all[i].emplace_back(), self->Text(each));
      }
    }
    return all;
  });
}

// The options of an encoder, by the names of `weft embed`, or of `weft classify` if it `classifies`.
BertEncoderOptions ReadEncoder(const GivenFlags& texts, bool classifies) {
  BertEncoderOptions options;
  Hyperparameters table = {TruncateRow(&options.truncate), SpecialTokensRow(&options.special_tokens),
                           WeightsRow(&options.runtime.weights), ThreadsRow(&options.runtime.threads)};
  if (classifies) Append({{"pairs", "", &options.pairs}, BatchRow("", &options.runtime.batch)}, &table);
  SetOptions(texts, table);
  return options;
}

std::vector<std::vector<float>> Embed(BertEncoder* self, const Texts& texts) {
  return WithoutGil([&]() -> absl::StatusOr<std::vector<std::vector<float>>> {
    std::vector<std::vector<float>> embeddings;
    for (const std::string& text : texts) {
      WEFT_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, self->Tokens(text));
      WEFT_ASSIGN_OR_RETURN(embeddings.emplace_back(), self->Run(ids));
    }
    return embeddings;
  });
}

// Classifies pictures by their files, or lists of texts: one, two of a pair, or words. Returns for each result a list
// of words, empty if there is one result for the whole, and the labels with their probabilities for each.
py::list Classify(Classifier* self, const std::vector<Texts>& inputs) {
  std::vector<ClassifierResult> results;
  if (auto* const head = dynamic_cast<TextHead*>(self); head != nullptr) {
    LabelledExamples examples = {.paths = {"inputs"}};
    for (const Texts& texts : inputs) {
      const size_t wanted = head->task() == TextTask::kTokens ? texts.size() : head->pairs() ? 2 : 1;
      if (texts.size() != wanted) Raise(InvalidArgument("got ", texts.size(), " texts, wanted a ", head->example()));
      examples.examples.push_back({.texts = texts, .line = examples.examples.size() + 1});
    }
    results = WithoutGil([&] { return head->Run(examples); });
  } else {
    WithoutGil([&] {
      Texts files;
      for (const Texts& each : inputs) files.insert(files.end(), each.begin(), each.end());
      return self->Classify(files, [&](absl::Span<const ClassifierResult> some) {
        results.insert(results.end(), some.begin(), some.end());
      });
    });
  }
  py::list list;
  for (const ClassifierResult& result : results) {
    py::list scores;
    for (const std::vector<float>& values : result.values) {
      const py::dict labels;
      scores.append(labels);
      if (values.empty()) continue;  // a word that was cut
      for (const auto& each : RankLabels(self->labels(), values, self->scores())) {
        labels[Recorded(each.label)] = each.probability;
      }
    }
    list.append(py::make_tuple(result.words, scores));
  }
  return list;
}

}  // namespace

void BindUse(py::module_ m) {
  m.attr("__version__") = kVersion;
  m.def("_train", Train);
  m.def("_option", [](const std::string& name, const Texts& options) { return FindOption(name, options); });
  m.def("_family", [](const std::string& path) { return Get(FindFamily(path))->name; });
  py::class_<TextGenerator>(m, "_Generator").def(py::init(&OpenGenerator)).def("run", Generate);
  py::class_<LineTranslator>(m, "_Translator").def(py::init(&OpenLines)).def("run", Translate);
  py::class_<BertEncoder>(m, "_Encoder")
      .def(py::init([](const std::string& path, const GivenFlags& texts, const std::string& prompt) {
        return Get(OpenSentenceEncoder(path, ReadEncoder(texts, /*classifies=*/false), prompt));
      }))
      .def_property_readonly("width", [](const BertEncoder& self) { return self.config().width; })
      .def("run", Embed);
  py::class_<Classifier>(m, "_Classifier")
      .def(py::init([](const std::string& path, const GivenFlags& texts) {
        return Get(OpenClassifier(path, ReadEncoder(texts, /*classifies=*/true)));
      }))
      .def("run", Classify)
      .def_property_readonly("labels_words", [](const Classifier& self) { return self.task() == TextTask::kTokens; });
  py::class_<Tokenizer>(m, "Tokenizer", "The tokenizer in a file or folder of a model.")
      .def(py::init([](const std::string& path) { return Get(LoadTokenizer(path)); }), py::arg("path"))
      .def_property_readonly("vocabulary_size", &Tokenizer::vocabulary_size);
}

}  // namespace weft
