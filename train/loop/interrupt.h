// An Interrupt catches Ctrl-C, SIGTERM, a lost terminal and SIGUSR1, so that a training run can save before it stops.
// Launchers of ranks pass SIGUSR1 on, and batch systems send it some time before they end a job.
//
//   const Interrupt interrupt;
//   while (!interrupt.requested()) Step();
#ifndef WEFT_TRAIN_LOOP_INTERRUPT_H_
#define WEFT_TRAIN_LOOP_INTERRUPT_H_

namespace weft {

// While an Interrupt exists, the first SIGINT, SIGTERM, SIGHUP or SIGUSR1 sets requested(). A second signal of the same
// kind ends the program. Signals that the program ignores stay ignored, so nohup works. Several Interrupts may exist on
// several threads, as in a test whose ranks are threads. All of them share one state.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool requested() const;
};

}  // namespace weft

#endif  // WEFT_TRAIN_LOOP_INTERRUPT_H_
