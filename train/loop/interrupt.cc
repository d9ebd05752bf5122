// The handler only stores the signal's number. The first signal of a kind removes its handler, so a second one of the
// same kind has its default effect.
#include "weft/train/loop/interrupt.h"

#include <array>
#include <atomic>
#include <csignal>
#include <mutex>

namespace weft {
namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};

std::atomic<int> requested_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);  // so the handler may write it

std::mutex mutex;  // guards the following
int interrupts = 0;
std::array<struct sigaction, kSignals.size()> old_actions;

}  // namespace

// A signal that is ignored stays ignored: nohup and shells without job control ignore signals for the programs they
// start.
Interrupt::Interrupt() {
  const std::lock_guard lock(mutex);
  if (++interrupts > 1) return;
  requested_signal = 0;
  struct sigaction action = {};
  action.sa_handler = [](int signal) { requested_signal = signal; };
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &old_actions[i]);
    if (old_actions[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

Interrupt::~Interrupt() {
  const std::lock_guard lock(mutex);
  if (--interrupts > 0) return;
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &old_actions[i], nullptr);
}

bool Interrupt::requested() const { return requested_signal != 0; }

}  // namespace weft
