// The handler only stores the signal's number. The first signal of a kind removes its handler, so a second one of the
// same kind has its default effect.
#include "weft/train/interrupt.h"

namespace weft {
namespace {

volatile std::sig_atomic_t requested_signal = 0;

// Sets the signal's action and stores the old one. A signal that is ignored stays ignored: nohup and shells without job
// control ignore signals for the programs they start.
void Catch(int signal, const struct sigaction& action, struct sigaction* old) {
  sigaction(signal, nullptr, old);
  if (old->sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
}

}  // namespace

Interrupt::Interrupt() {
  requested_signal = 0;
  struct sigaction action = {};
  action.sa_handler = [](int signal) { requested_signal = signal; };
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  Catch(SIGINT, action, &old_interrupt_);
  Catch(SIGTERM, action, &old_terminate_);
  Catch(SIGHUP, action, &old_hang_up_);
}

Interrupt::~Interrupt() {
  sigaction(SIGINT, &old_interrupt_, nullptr);
  sigaction(SIGTERM, &old_terminate_, nullptr);
  sigaction(SIGHUP, &old_hang_up_, nullptr);
}

bool Interrupt::requested() const { return requested_signal != 0; }

}  // namespace weft
