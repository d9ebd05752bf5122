// While a RemovalOnSignal exists, SIGINT and SIGTERM remove a folder before they end the program.
#ifndef WEFT_APPS_CONVERT_REMOVAL_ON_SIGNAL_H_
#define WEFT_APPS_CONVERT_REMOVAL_ON_SIGNAL_H_

#include <csignal>
#include <string>
#include <thread>

namespace weft {

// A thread waits for the signals, because a handler may not remove files. So all other threads must begin while the
// object exists.
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

#endif  // WEFT_APPS_CONVERT_REMOVAL_ON_SIGNAL_H_
