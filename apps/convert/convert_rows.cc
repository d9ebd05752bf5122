// These rows and the note are shared by `weft import`, `weft export` and `weft quantize`.
#include "weft/apps/convert/convert_rows.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_join.h"
#include "weft/apps/memory_note.h"
#include "weft/base/status.h"

namespace weft {

Hyperparameters ConvertRows(ConvertOptions* options) {
  return {
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

// The wake-up signal ends the thread. A signal that the program ignores stays ignored, as nohup needs.
RemovalOnSignal::RemovalOnSignal(const std::string& folder) {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGRTMIN);
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction action = {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&signals_, signal);
  }
  pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  waiter_ = std::thread([this, folder] {
    int signal = 0;
    sigwait(&signals_, &signal);
    if (signal == SIGRTMIN) return;
    // The other thread may create files in the folder until the folder is gone.
    std::error_code error;
    for (int i = 0; i < 100 && std::filesystem::exists(folder, error); ++i) std::filesystem::remove_all(folder, error);
    std::signal(signal, SIG_DFL);
    sigset_t this_one;  // without SIGRTMIN: Hold may have sent it, and it would end the process first
    sigemptyset(&this_one);
    sigaddset(&this_one, signal);
    pthread_sigmask(SIG_UNBLOCK, &this_one, nullptr);
    std::raise(signal);
  });
}

void RemovalOnSignal::Hold() {
  if (!waiter_.joinable()) return;
  pthread_kill(waiter_.native_handle(), SIGRTMIN);
  waiter_.join();
}

RemovalOnSignal::~RemovalOnSignal() {
  Hold();
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

absl::Status WriteConverted(const ModelConversion& conversion) {
  RemovalOnSignal removal(conversion.TemporaryFolder());
  WEFT_RETURN_IF_ERROR(conversion.Write([&] { removal.Hold(); }));
  if (conversion.extra().empty()) return absl::OkStatus();
  PrintNotes({"left out, because the model does not have them: " + absl::StrJoin(conversion.extra(), ", ")});
  return absl::OkStatus();
}

}  // namespace weft
