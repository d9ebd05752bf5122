// While a SignalBlock exists, its thread receives no signals, except those that an instruction of the thread causes,
// such as SIGSEGV. A signal that arrives is handled afterwards, or by another thread.
//
//   {
//     const SignalBlock block;
//     kernel();
//   }
//
// A process that uses Weft expects its signal handlers to run on its own threads, between calls of Weft. So the
// library's threads, and threads that run kernels, block signals.
#ifndef WEFT_BASE_SIGNAL_BLOCK_H_
#define WEFT_BASE_SIGNAL_BLOCK_H_

#include <csignal>

namespace weft {

class SignalBlock {
 public:
  SignalBlock() {
    sigset_t signals;
    sigfillset(&signals);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) sigdelset(&signals, own);
    pthread_sigmask(SIG_BLOCK, &signals, &old_);
  }
  ~SignalBlock() { pthread_sigmask(SIG_SETMASK, &old_, nullptr); }
  SignalBlock(const SignalBlock&) = delete;
  SignalBlock& operator=(const SignalBlock&) = delete;

 private:
  sigset_t old_;
};

}  // namespace weft

#endif  // WEFT_BASE_SIGNAL_BLOCK_H_
