// Measures the time that a Messenger adds to the time of a network: two ranks of one process exchange messages. These
// figures decided the pauses between its polls (distributed/messenger.cc).
//
//   bazel run -c opt //bench:messenger_bench -- --busy=0
//   bazel run -c opt //bench:messenger_bench -- --busy=2 --latency=50e-6 --bandwidth=1.25e9
//
// Prints the median time that a byte takes from rank to rank, after the receiver has waited for the printed time. Then
// it prints the speed of long messages. With --busy=0, it also prints the fraction of a core that both messengers use
// while one of them waits for a second.
#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <memory>
#include <semaphore>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "weft/bench/command_line.h"
#include "weft/distributed/communicator.h"
#include "weft/distributed/in_process.h"
#include "weft/distributed/messenger.h"
#include "weft/graph/run/transport.h"
#include "weft/lab/machine/measure.h"

namespace weft {
namespace {

struct Options {
  InProcessOptions network;
  int busy = 0;
  int messages = 2000;
  int bytes = 64'000'000;
};

void Sleep(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

double CpuSeconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec + 1e-9 * time.tv_nsec;
}

// A communicator that a messenger must poll, like MPI's.
class Polled final : public Communicator {
 public:
  explicit Polled(std::unique_ptr<Communicator> communicator) : communicator_(std::move(communicator)) {}

  int rank() const override { return communicator_->rank(); }
  int size() const override { return communicator_->size(); }
  Request Send(absl::Span<const std::byte> bytes, int to, int tag) override {
    return communicator_->Send(bytes, to, tag);
  }
  Request Receive(absl::Span<std::byte> bytes, int from, int tag) override {
    return communicator_->Receive(bytes, from, tag);
  }
  void Progress(std::vector<Request>* ended) override { communicator_->Progress(ended); }
  void Abort(int exit_code) override { communicator_->Abort(exit_code); }

 private:
  const std::unique_ptr<Communicator> communicator_;
};

// The end of a message.
struct End {
  std::binary_semaphore reached{0};
  Clock::time_point time;

  Transport::Done done() {
    return {.call =
                [](void* object, uint32_t) {
                  End* const end = static_cast<End*>(object);
                  end->time = Clock::now();
                  end->reached.release();
                },
            .object = this};
  }
};

// Sends `sent` from rank 0 to rank 1, after the receiver has waited for `pause` seconds. Returns the seconds from the
// start of the send to the end of the receive.
double Carry(Transport* from, Transport* to, absl::Span<const std::byte> sent, absl::Span<std::byte> received,
             double pause) {
  End sent_end, received_end;
  to->Receive(received, 0, 0, received_end.done());
  if (pause > 0) Sleep(pause);
  const Clock::time_point start = Clock::now();
  from->Send(sent, 1, 0, sent_end.done());
  received_end.reached.acquire();
  sent_end.reached.acquire();
  return std::chrono::duration<double>(received_end.time - start).count();
}

void Run(const Options& options) {
  std::atomic<bool> stop = false;
  std::vector<std::thread> busy;
  for (int i = 0; i < options.busy; ++i) {
    busy.emplace_back([&] {
      while (!stop.load(std::memory_order_relaxed)) {
      }
    });
  }
  {
    InProcessNetwork network(2, options.network);
    Messenger first(std::make_unique<Polled>(network.Connect(0)));
    Messenger second(std::make_unique<Polled>(network.Connect(1)));
    const std::vector<std::byte> sent(options.bytes, std::byte{1});
    std::vector<std::byte> received(options.bytes);
    const auto median = [&](size_t bytes, double pause, int repeats) {
      std::vector<double> seconds;
      for (int i = 0; i < repeats; ++i) {
        seconds.push_back(Carry(&first, &second, absl::MakeConstSpan(sent).first(bytes),
                                absl::MakeSpan(received).first(bytes), pause));
      }
      return Median(seconds);
    };
    std::printf("1 byte                 %8.1f us\n", 1e6 * median(1, 0, options.messages));
    for (const double pause : {1e-4, 1e-3, 1e-2}) {
      std::printf("1 byte after %6.1f ms %8.1f us\n", 1e3 * pause, 1e6 * median(1, pause, 50));
    }
    std::printf("%-22s %8.2f GB/s\n", (std::to_string(options.bytes) + " bytes").c_str(),
                options.bytes * 1e-9 / median(options.bytes, 0, 10));
    if (options.busy == 0) {
      const double cpu_seconds = CpuSeconds();
      Carry(&first, &second, absl::MakeConstSpan(sent).first(1), absl::MakeSpan(received).first(1), 1);
      std::printf("waiting for 1 s        %8.2f %% of a core\n", 100 * (CpuSeconds() - cpu_seconds));
    }
  }
  stop = true;
  for (std::thread& thread : busy) thread.join();
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  weft::Options options;
  CLI::App app("Measures the time that a messenger adds to a network.", "messenger_bench");
  weft::SetUp(&app);
  app.add_option("--latency", options.network.latency_seconds, "imitated latency in seconds")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--bandwidth", options.network.bytes_per_second, "imitated bytes per second; 0: no limit")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--busy", options.busy, "number of threads that compute meanwhile")->check(CLI::Range(0, 1024));
  app.add_option("--messages", options.messages, "number of messages of one byte")->check(CLI::Range(1, 1'000'000));
  app.add_option("--bytes", options.bytes, "length of long messages")->check(CLI::Range(1, 1'000'000'000));
  return weft::RunProgram(&app, argc, argv, [&options] {
    weft::Run(options);
    return 0;
  });
}
