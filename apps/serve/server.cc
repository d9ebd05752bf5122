#include "weft/apps/serve/server.h"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <nlohmann/json.hpp>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "weft/apps/serve/json_fields.h"
#include "weft/apps/serve/serve_page.h"
#include "weft/base/arena.h"
#include "weft/base/json.h"
#include "weft/base/status.h"
#include "weft/lab/page.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxKeys = 2000;  // of a request; looking for a key takes a time in proportion to their number

int HttpStatus(const absl::Status& error) {
  using Code = absl::StatusCode;
  static constexpr std::pair<Code, int> kStatus[] = {
      {Code::kCancelled, 400},  // the client has closed its side, but may still read
      {Code::kInvalidArgument, 400},  {Code::kUnimplemented, 400}, {Code::kUnauthenticated, 401},
      {Code::kPermissionDenied, 403}, {Code::kNotFound, 404},      {Code::kResourceExhausted, 503},
      {Code::kUnavailable, 503},
  };
  for (const auto& [code, status] : kStatus) {
    if (code == error.code()) return status;
  }
  return 500;
}

Json ErrorJson(int status, const absl::Status& error) {
  const std::string field = FieldOf(error);
  // Only an unknown model is NotFound; the error of an unknown route is Unimplemented.
  const Json code = absl::IsNotFound(error) ? "model_not_found"
                    : status == 404         ? "unknown_url"
                    : status == 401         ? "invalid_api_key"
                                            : Json();
  return {{"error",
           {{"message", error.message()},
            {"type", status == 401  ? "authentication_error"
                     : status < 500 ? "invalid_request_error"
                                    : "server_error"},
            {"param", field.empty() ? Json() : Json(field)},
            {"code", code}}}};
}

// Reports whether `host`, of the header Host, is an address or a name of this machine. Other names may have been led
// here by DNS rebinding.
bool IsOwnHost(absl::string_view host) {
  const absl::string_view name = host.substr(0, host.find_last_not_of("0123456789") + 1);  // up to the port
  const absl::string_view bare = absl::EndsWith(name, ":") ? absl::StripSuffix(name, ":") : host;
  char own[256] = "";
  gethostname(own, sizeof(own) - 1);
  const bool is_address =
      bare.find_first_not_of("0123456789.") == bare.npos || (absl::StartsWith(bare, "[") && absl::EndsWith(bare, "]"));
  return is_address || absl::EqualsIgnoreCase(bare, "localhost") || absl::EndsWithIgnoreCase(bare, ".localhost") ||
         absl::EqualsIgnoreCase(bare, own);
}

void SetError(int status, const absl::Status& error, httplib::Response* response) {
  response->status = status;
  response->set_content(JsonLine(ErrorJson(status, error)), kJsonType);
  if (status == 503) response->set_header("Retry-After", "1");
}

}  // namespace

Server::Server(std::vector<std::unique_ptr<ServedModel>> models, const ServerOptions& options)
    : models_(std::move(models)),
      options_(options),
      started_(absl::Now()),
      engine_(models_, options.queue),
      http_(options.limits),
      first_tokens_(std::size(kFirstTokenSeconds) + 1) {
  Route("/v1/completions", "completions", &Server::Generate<false>);
  Route("/v1/chat/completions", "chat", &Server::Generate<true>);
  Route("/v1/embeddings", "embeddings", &Server::Embed);
  Route("/v1/classify", "classify", &Server::Classify);
  Route("/translate", "translate", &Server::Translate);
  Route("/attention", "attention", &Server::Attention);
  // This handler answers requests without a body. It compares paths, where httplib's routes use regular expressions.
  http_.set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
    if (const absl::Status allowed = Allows(request); !allowed.ok()) {
      SetError(HttpStatus(allowed), allowed, &response);
    } else if (request.method == "GET" || request.method == "HEAD") {
      Get(request, &response);
    } else if (request.method == "POST" && routes_.contains(request.path)) {
      return httplib::Server::HandlerResponse::Unhandled;
    } else {  // httplib would read its body, of any size
      SetError(404, absl::UnimplementedError("there is no such route"), &response);
    }
    return httplib::Server::HandlerResponse::Handled;
  });
  http_.set_error_handler([](const httplib::Request&, httplib::Response& response) {
    if (!response.body.empty()) return;
    const char* const message = response.status == 413 ? "the body is too large" : "the request can't be read";
    response.set_content(JsonLine(ErrorJson(response.status, absl::UnknownError(message))), kJsonType);
  });
  http_.set_exception_handler([](const httplib::Request&, httplib::Response& response, std::exception_ptr) {
    SetError(500, absl::InternalError("the request could not be answered"), &response);
  });
  http_.set_logger([this](const httplib::Request& request, const httplib::Response& response) {
    static const std::set<std::string> kPages = {"/", "/health", "/metrics", "/v1/models"};
    const bool known = routes_.contains(request.path) || kPages.contains(request.path);
    const std::lock_guard lock(mutex_);
    ++requests_[{known ? request.path : "other", response.status}];
  });
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(std::vector<std::unique_ptr<ServedModel>> models,
                                                      const ServerOptions& options) {
  // httplib replaces %41 by A in headers, and drops white space around a value.
  if (!absl::c_all_of(options.api_key, absl::ascii_isgraph) || absl::StrContains(options.api_key, '%')) {
    return InvalidArgument("api-key: it has a character that is not a visible one of ASCII, or a %");
  }
  std::set<std::string> names;
  for (const auto& model : models) {
    if (!names.insert(model->name).second) {
      return InvalidArgument("two models have the name '", model->name, "'; NAME=MODEL gives another one");
    }
  }
  auto server = std::unique_ptr<Server>(new Server(std::move(models), options));
  const int port = server->http_.Bind(options.host, static_cast<int>(options.port));
  if (port < 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", options.host, ":", options.port, "; another program may do so already"));
  }
  server->port_ = port;
  server->listens_ = std::thread([server = server.get()] { server->http_.listen_after_bind(); });
  return server;
}

void Server::Stop() {
  engine_.Stop();
  if (!listens_.joinable()) return;
  // The thread that listens may not have begun yet.
  while (!http_.is_running() && !http_.closed()) absl::SleepFor(absl::Milliseconds(1));
  if (!http_.closed()) http_.stop();
  listens_.join();
}

absl::Status Server::Allows(const httplib::Request& request) const {
  if (options_.api_key.empty()) {
    const std::string host = request.get_header_value("Host"), origin = request.get_header_value("Origin");
    const bool own_page = origin.empty() || absl::EndsWithIgnoreCase(origin, absl::StrCat("://", host));
    if (own_page && IsOwnHost(host)) return absl::OkStatus();
    return absl::PermissionDeniedError(absl::StrCat("got Origin '", Shortened(origin, 100), "' and Host '",
                                                    Shortened(host, 100),
                                                    "', wanted a page of this server, and an address or own name of "
                                                    "its machine; with --api-key, others work, too"));
  }
  if (request.path == "/" || request.path == "/health") return absl::OkStatus();
  const std::string given = request.get_header_value("Authorization"), wanted = "Bearer " + options_.api_key;
  // The loop compares all characters, so its duration does not tell how many of them are right.
  unsigned difference = given.size() == wanted.size() ? 0 : 1;
  for (size_t i = 0; i < wanted.size(); ++i) {
    difference |= static_cast<unsigned>((i < given.size() ? given[i] : '\0') ^ wanted[i]);
  }
  if (difference == 0) return absl::OkStatus();
  return absl::UnauthenticatedError("wrong API key, wanted the header Authorization: Bearer KEY");
}

void Server::Route(const std::string& path, const char* task, Answerer answerer) {
  routes_.insert(path);
  http_.Post(path, [this, task, answerer](const httplib::Request& request, httplib::Response& response,
                                          const httplib::ContentReader& reader) {
    if (request.is_multipart_form_data()) return SetError(415, InvalidArgument("wanted a JSON object"), &response);
    std::string body;
    // The limit is for the body after decompression.
    bool large = false;
    const bool read = reader([&](const char* data, size_t size) {
      large = body.size() + size > options_.limits.body;
      if (large) return false;
      body.append(data, size);
      return true;
    });
    if (!read) {
      large = large || response.status == 413;
      return SetError(large ? 413 : 400,
                      InvalidArgument("the body can't be read, or has more than ", options_.limits.body, " bytes"),
                      &response);
    }
    const absl::StatusOr<Json> answer = [&]() -> absl::StatusOr<Json> {
      WEFT_ASSIGN_OR_RETURN(const Json json, ParseJsonObject(body, kMaxKeys));
      WEFT_ASSIGN_OR_RETURN(ServedModel* const model, ModelOf(json, task));
      return (this->*answerer)(json, model, &response);
    }();
    if (!answer.ok()) return SetError(HttpStatus(answer.status()), answer.status(), &response);
    if (!answer->is_null()) response.set_content(JsonLine(*answer), kJsonType);
  });
}

absl::StatusOr<ServedModel*> Server::ModelOf(const Json& request, const char* task) const {
  JsonFields fields(&request);
  std::string name;
  WEFT_RETURN_IF_ERROR(fields.Text("model", &name));
  std::vector<std::string> names;
  for (const auto& model : models_) {
    const bool does = absl::c_linear_search(model->tasks, task);
    if (model->name == name && !does) {
      return FieldError("model",
                        absl::StrCat("'", name, "' can't do this; it does ", absl::StrJoin(model->tasks, ", ")));
    }
    if ((name.empty() || model->name == name) && does) return model.get();
    names.push_back(model->name);
  }
  return absl::NotFoundError(name.empty() ? absl::StrCat("no model of this server does ", task)
                                          : absl::StrCat("there is no model '", name, "'", DidYouMean(name, names),
                                                         ", wanted one of ", absl::StrJoin(names, ", ")));
}

Json Server::ModelJson(const ServedModel& model) const {
  return {{"id", model.name},
          {"object", "model"},
          {"created", absl::ToUnixSeconds(started_)},
          {"owned_by", "weft"},
          {"weft", {{"kind", model.kind}, {"tasks", model.tasks}, {"context", model.context}}}};
}

void Server::Get(const httplib::Request& request, httplib::Response* response) {
  const auto send = [&](const std::string& text, const char* type) {
    response->status = 200;
    response->set_content(text, type);
  };
  absl::string_view path = request.path;
  if (path == "/") {
    response->set_header("Cache-Control", "no-store");
    response->set_header("Content-Security-Policy", "frame-ancestors 'none'");
    response->set_header("X-Content-Type-Options", "nosniff");
    return send(kServePage, "text/html; charset=utf-8");
  }
  if (path == "/health") return send(R"({"status":"ok"})", kJsonType);
  if (path == "/metrics") return send(Metrics(), "text/plain; version=0.0.4");
  Json all = Json::array();
  const bool one = absl::ConsumePrefix(&path, "/v1/models/");
  for (const auto& model : models_) {
    if (one && model->name == path) return send(JsonLine(ModelJson(*model)), kJsonType);
    all.push_back(ModelJson(*model));
  }
  if (path == "/v1/models") return send(JsonLine({{"object", "list"}, {"data", all}}), kJsonType);
  const std::string error = absl::StrCat("GET ", request.path.substr(0, 200), ": no such ", one ? "model" : "route");
  SetError(404, one ? absl::NotFoundError(error) : absl::UnimplementedError(error), response);
}

std::string Server::Metrics() {
  const Engine::Counts& counts = engine_.counts();
  std::string text;
  const auto describe = [&](const char* name, const char* type, const char* help) {
    absl::StrAppend(&text, "# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
  };
  const auto add = [&](const char* name, const char* type, const char* help, auto value) {
    describe(name, type, help);
    absl::StrAppend(&text, name, " ", value, "\n");
  };
  const std::lock_guard lock(mutex_);
  add("weft_prompt_tokens_total", "counter", "Tokens of prompts.", counts.prompt_tokens.load());
  add("weft_tokens_total", "counter", "Generated tokens.", counts.tokens.load());
  add("weft_texts_running", "gauge", "Texts in the batches.", counts.running.load());
  add("weft_queue_length", "gauge", "Texts that wait.", counts.waiting.load());
  add("weft_pages_used", "gauge", "Pages of the caches that texts hold.", counts.used_pages.load());
  add("weft_pages", "gauge", "Pages of the caches.", counts.pages.load());
  add("weft_connections", "gauge", "Open connections.", http_.open());
  add("process_resident_memory_bytes", "gauge", "Resident memory.", ResidentBytes());
  describe("weft_requests_total", "counter", "Requests by path and status.");
  for (const auto& [key, count] : requests_) {
    absl::StrAppend(&text, "weft_requests_total{path=\"", key.first, "\",status=\"", key.second, "\"} ", count, "\n");
  }
  describe("weft_first_token_seconds", "histogram", "From a request to its first token.");
  int64_t below = 0;
  for (size_t i = 0; i < first_tokens_.size(); ++i) {
    below += first_tokens_[i];
    const std::string limit = i < std::size(kFirstTokenSeconds) ? absl::StrCat(kFirstTokenSeconds[i]) : "+Inf";
    absl::StrAppend(&text, "weft_first_token_seconds_bucket{le=\"", limit, "\"} ", below, "\n");
  }
  absl::StrAppend(&text, "weft_first_token_seconds_sum ", first_token_sum_, "\nweft_first_token_seconds_count ", below,
                  "\n");
  return text;
}

void Server::CountFirstToken(absl::Duration wait) {
  const double seconds = absl::ToDoubleSeconds(wait);
  const std::lock_guard lock(mutex_);
  const auto bucket = std::lower_bound(std::begin(kFirstTokenSeconds), std::end(kFirstTokenSeconds), seconds);
  ++first_tokens_[static_cast<size_t>(bucket - std::begin(kFirstTokenSeconds))];
  first_token_sum_ += seconds;
}

}  // namespace weft
