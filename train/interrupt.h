// An Interrupt catches Ctrl-C, SIGTERM and a lost terminal, so that a training run can save before it stops.
//
//   const Interrupt interrupt;
//   while (!interrupt.requested()) Step();
#ifndef WEFT_TRAIN_INTERRUPT_H_
#define WEFT_TRAIN_INTERRUPT_H_

namespace weft {

// While an Interrupt exists, the first SIGINT, SIGTERM or SIGHUP sets requested(). A second signal of the same kind
// ends the program. Signals that the program ignores stay ignored, so nohup works. Several may exist on several
// threads, as in a test whose ranks are threads: all have the same state.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool requested() const;
};

}  // namespace weft

#endif  // WEFT_TRAIN_INTERRUPT_H_
