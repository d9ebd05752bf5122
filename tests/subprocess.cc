#include "weft/tests/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace weft {
namespace {

constexpr int kPipeBytes = 4096;

[[noreturn]] void Start(const std::vector<std::string>& command, const std::string& folder, int out, int err) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const int in = open("/dev/null", O_RDONLY);
  dup2(in, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  unsetenv("BUILD_WORKING_DIRECTORY");  // set if `bazel run` started the test
  if (folder.empty() || chdir(folder.c_str()) == 0) execvp(arguments[0], arguments.data());
  std::fprintf(stderr, "can't start %s in '%s': %s\n", arguments[0], folder.c_str(), std::strerror(errno));
  _exit(127);
}

}  // namespace

CommandResult RunCommand(const std::vector<std::string>& command, const CommandOptions& options) {
  CommandResult result;
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0) return result;
  if (pipe2(err, O_CLOEXEC) != 0) {
    close(out[0]), close(out[1]);
    return result;
  }
  for (const int fd : {out[1], err[1]}) fcntl(fd, F_SETPIPE_SZ, kPipeBytes);
  const pid_t child = fork();
  if (child == 0) Start(command, options.folder, out[1], err[1]);
  close(out[1]), close(err[1]);

  bool signal_left = options.signal != 0;
  pollfd streams[] = {{out[0], POLLIN, 0}, {err[0], POLLIN, 0}};
  std::string* const texts[] = {&result.out, &result.err};
  for (int open_streams = child < 0 ? 0 : 2; open_streams > 0;) {
    if (poll(streams, 2, -1) < 0 && errno != EINTR) break;
    for (int i = 0; i < 2; ++i) {
      if (streams[i].revents == 0) continue;
      char buffer[kPipeBytes];
      const ssize_t size = read(streams[i].fd, buffer, sizeof buffer);
      if (size > 0) texts[i]->append(buffer, static_cast<size_t>(size));
      if (size > 0 || (size < 0 && errno == EINTR)) continue;
      streams[i].fd = -1;  // poll skips it
      streams[i].revents = 0;
      --open_streams;
    }
    const bool shown = texts[0]->find(options.signal_after) != std::string::npos ||
                       texts[1]->find(options.signal_after) != std::string::npos;
    if (signal_left && shown) {
      signal_left = false;
      kill(child, options.signal);
    }
  }
  close(out[0]), close(err[0]);
  int status = 0;
  rusage usage = {};
  while (child > 0 && wait4(child, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  result.resident = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  if (child > 0) result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace weft
