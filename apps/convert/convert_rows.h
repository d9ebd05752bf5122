// The flags and the end that the commands share which write a model.
#ifndef WEFT_APPS_CONVERT_CONVERT_ROWS_H_
#define WEFT_APPS_CONVERT_CONVERT_ROWS_H_

#include <csignal>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "weft/formats/convert.h"
#include "weft/options/hyperparameters.h"

namespace weft {

// Returns the rows for the tokenizer, the output folder's files and the tensors of the input.
Hyperparameters ConvertRows(ConvertOptions* options);
// Writes the model, and prints a note on stderr that names the tensors that were left out. If SIGINT or SIGTERM ends
// the program meanwhile, its temporary folder is removed. While the files are moved to their places, these signals
// wait, so that the folder has the files of one model.
absl::Status WriteConverted(const ModelConversion& conversion);

// While a RemovalOnSignal exists, SIGINT and SIGTERM remove a folder before they end the program. A thread waits for
// the signals, because a handler may not remove files. So all other threads must begin while the object exists.
class RemovalOnSignal {
 public:
  explicit RemovalOnSignal(const std::string& folder);
  ~RemovalOnSignal();
  RemovalOnSignal(const RemovalOnSignal&) = delete;
  RemovalOnSignal& operator=(const RemovalOnSignal&) = delete;

  // Makes SIGINT and SIGTERM wait until the object is destroyed.
  void Hold();

 private:
  sigset_t signals_, before_;
  std::thread waiter_;
};

}  // namespace weft

#endif  // WEFT_APPS_CONVERT_CONVERT_ROWS_H_
