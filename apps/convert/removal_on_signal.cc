#include "weft/apps/convert/removal_on_signal.h"

#include <filesystem>
#include <system_error>

namespace weft {

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

}  // namespace weft
