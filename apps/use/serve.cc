// `weft serve` answers HTTP requests with models.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "weft/apps/commands.h"
#include "weft/apps/flags.h"
#include "weft/apps/serve/server.h"
#include "weft/apps/streams.h"
#include "weft/base/file.h"
#include "weft/base/status.h"

namespace weft {
namespace {

struct ServeFlags {
  std::string models;
  ServerOptions server;
  TextGeneratorOptions generator = {.runtime = {.batch = 32}};
  int64_t request_timeout = 10;
  GivenFlags given;
};

Hyperparameters Table(ServeFlags* flags) {
  return {
      ModelRow("MODEL or NAME=MODEL: a run, or a model in any format that weft reads, and the name by which requests "
               "choose it; several are separated by commas. Without a NAME it is the last part of the path",
               &flags->models),
      {"host", "address to listen on; 0.0.0.0 serves other machines, too", &flags->server.host, {.group = "Server"}},
      {"port", "port to listen on; 0: any free one", &flags->server.port, {.low = 0, .high = 65535, .group = "Server"}},
      {"api-key",
       "requests must have the header Authorization: Bearer KEY. Default: the environment variable WEFT_API_KEY. "
       "Without a key, requests need none, but those of other sites' pages, or with a Host that is no address or name "
       "of this machine, are refused",
       &flags->server.api_key,
       {.group = "Server", .type = "KEY"}},
      {"max-tokens",
       "maximum number of tokens of a generated text",
       &flags->server.max_tokens,
       {.low = 1, .group = "Limits"}},
      {"max-body",
       "maximum size of a request's body",
       &flags->server.limits.body,
       {.low = 1024, .high = 1e12, .is_bytes = true, .group = "Limits"}},
      {"queue",
       "maximum number of texts that wait; a further request gets the status 503",
       &flags->server.queue,
       {.low = 1, .high = 1e6, .group = "Limits"}},
      {"connections",
       "maximum number of open connections; a further client waits",
       &flags->server.limits.connections,
       {.low = 1, .high = 4096, .group = "Limits"}},
      {"request-timeout",
       "seconds in which a client must send a whole request",
       &flags->request_timeout,
       {.low = 1, .high = 3600, .group = "Limits"}},
      BatchRow("maximum number of texts continued at once; it changes no text", &flags->generator.runtime.batch),
      WeightsRow(&flags->generator.runtime.weights),
      ThreadsRow(&flags->generator.runtime.threads),
  };
}

// Returns {name, path} of "NAME=MODEL" or "MODEL". If there is a file called so, the whole text is its path.
std::pair<std::string, std::string> NameAndPath(const std::string& model) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(model, absl::MaxSplits('=', 1));
  if (!parts.second.empty() && !Exists(InputPath(model))) return parts;
  const std::filesystem::path path = std::filesystem::path(InputPath(model)).lexically_normal();
  return {(path.has_filename() ? path.filename() : path.parent_path().filename()).string(), model};
}

absl::Status Serve(ServeFlags flags) {
  ServerOptions& options = flags.server;
  options.limits.request = absl::Seconds(flags.request_timeout);
  if (const char* const key = std::getenv("WEFT_API_KEY"); key != nullptr && options.api_key.empty()) {
    if (*key == '\0') return InvalidArgument("WEFT_API_KEY is empty; unset it to need no key");
    options.api_key = key;
  }
  std::vector<std::unique_ptr<ServedModel>> models;
  for (const absl::string_view model : absl::StrSplit(flags.models, ',', absl::SkipEmpty())) {
    const auto [name, path] = NameAndPath(std::string(model));
    PrintMemoryNote(path);
    WEFT_ASSIGN_OR_RETURN(models.emplace_back(), UsageError(OpenServedModel(name, InputPath(path), flags.generator)));
  }
  if (models.empty()) return InvalidArgument("--model names no model");
  // The server's threads inherit the blocked signals, so only this thread receives them. It then stops the server.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  WEFT_ASSIGN_OR_RETURN(const auto server, UsageError(Server::Start(std::move(models), options)));
  const std::string host = absl::StrContains(options.host, ':') ? absl::StrCat("[", options.host, "]") : options.host;
  std::fprintf(stderr, "weft serve: http://%s:%d/ (Ctrl-C ends it)\n", host.c_str(), server->port());
  constexpr timespec kSecond = {.tv_sec = 1};
  while (sigtimedwait(&signals, nullptr, &kSecond) < 0) {
    if (server->ended()) return absl::UnavailableError("the server can no longer accept connections");
  }
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);  // a second one ends the program at once
  server->Stop();
  return absl::OkStatus();
}

}  // namespace

Command ServeCommand(CLI::App* weft, const std::string& name) {
  return MakeCommand(
      weft, name,
      {"Answers HTTP requests with models until it is interrupted. Programs that speak OpenAI's protocol can complete "
       "texts, chat and embed, and a browser gets a page. The same request gets the same tokens whatever other "
       "requests there are, and on any number of threads. The default seed is 0.",
       "answers HTTP requests, in OpenAI's protocol and from a browser",
       {{"Serves a run's model on port 8080 of this machine.", "weft serve --model=runs/gpt-1"},
        {"Serves two models under names of their own.",
         "weft serve --model=small=runs/gpt-1,embed=minilm --port=9000"}}},
      std::make_shared<ServeFlags>(), Table, Serve);
}

}  // namespace weft
