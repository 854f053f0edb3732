// Uses MLflow's REST interface, version 2.0: one experiment for each study, one run for each trial, batches within the
// documented limits (1,000 items, at most 100 of them parameters). MLFLOW_TRACKING_TOKEN, or _USERNAME and _PASSWORD,
// sign in.
#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <cstdlib>

#include "dsat/base/secrets.h"
#include "dsat/config/json.h"
#include "dsat/error.h"
#include "export/flat_study.h"
#include "export/formats.h"
#include "export/mlflow_run.h"
#include "terminal/console.h"

namespace dsat::cli {
namespace {

constexpr const char* kApi = "/api/2.0/mlflow/";

class MlflowServer {
 public:
  explicit MlflowServer(const std::string& uri) : uri_(uri) {
    const size_t scheme = uri.find("://");
    if (uri.rfind("http://", 0) != 0 && uri.rfind("https://", 0) != 0) {
      throw Error(fmt::format("--mlflow-uri is '{}': give http://HOST:PORT or https://HOST:PORT", one_line(uri)));
    }
    const size_t path = uri.find('/', scheme + 3);
    client_ = std::make_unique<httplib::Client>(uri.substr(0, path));
    if (!client_->is_valid()) throw Error(fmt::format("--mlflow-uri is '{}': this is not an address", one_line(uri)));
    prefix_ = path == std::string::npos ? "" : uri.substr(path);
    while (!prefix_.empty() && prefix_.back() == '/') prefix_.pop_back();
    client_->set_connection_timeout(5);
    client_->set_read_timeout(30);
    client_->set_write_timeout(30);
    sign_in();
  }

  Json post(const std::string& what, const Json& body) {
    httplib::Request request;
    request.method = "POST";
    request.path = path_of(what);
    request.set_header("Content-Type", "application/json");
    request.body = config::text_of(body);
    return answer(what, send(std::move(request)));
  }

  // The id of the experiment of that name, which is created if there is none.
  std::string experiment(const std::string& name) {
    httplib::Request by_name;
    by_name.method = "GET";
    by_name.path = httplib::append_query_params(path_of("experiments/get-by-name"), {{"experiment_name", name}});
    const auto found = send(std::move(by_name));
    if (found && found->status == 200) {
      return text_at(answer("experiments/get-by-name", found), {"experiment", "experiment_id"});
    }
    return text_at(post("experiments/create", {{"name", name}}), {"experiment_id"});
  }

  std::string text_at(Json json, const std::vector<std::string>& keys) const {
    for (const std::string& key : keys) json = json.is_object() && json.contains(key) ? Json(json[key]) : Json();
    if (!json.is_string()) throw Error(DSAT_INTERNAL, fmt::format("{}: its answer has no {}", shown(), keys.back()));
    return json.get<std::string>();
  }

 private:
  std::string shown() const { return one_line(mask_secrets(uri_)); }
  std::string path_of(const std::string& what) const { return prefix_ + kApi + what; }

  void sign_in() {
    const char* token = std::getenv("MLFLOW_TRACKING_TOKEN");
    const char* user = std::getenv("MLFLOW_TRACKING_USERNAME");
    const char* password = std::getenv("MLFLOW_TRACKING_PASSWORD");
    if (token != nullptr) {
      client_->set_bearer_token_auth(token);
    } else if (user != nullptr) {
      client_->set_basic_auth(user, password == nullptr ? "" : password);
    }
  }

  // An answer of MLflow's has a few hundred bytes. More than kMostBytes is not read.
  httplib::Result send(httplib::Request request) {
    constexpr size_t kMostBytes = size_t{4} << 20;
    std::string body;
    bool is_too_long = false;
    request.content_receiver = [&](const char* data, size_t bytes, uint64_t, uint64_t) {
      is_too_long = body.size() + bytes > kMostBytes;
      if (!is_too_long) body.append(data, bytes);
      return !is_too_long;
    };
    httplib::Result result = client_->send(request);
    if (is_too_long) {
      throw Error(DSAT_INTERNAL, fmt::format("{}: its answer is longer than {} MB: this is no MLflow server", shown(),
                                             kMostBytes >> 20));
    }
    if (result) result->body = std::move(body);
    return result;
  }

  Json answer(const std::string& what, const httplib::Result& result) const {
    if (!result) {
      throw Error(DSAT_INTERNAL,
                  fmt::format("{}: {} (does the server run there?)", shown(), to_string(result.error())));
    }
    const Json body = Json::parse(result->body, nullptr, false);
    if (result->status == 200 && body.is_object()) return body;
    std::string why = body.is_object() ? leaf_text(body.value("message", Json())) : "no JSON";
    throw Error(DSAT_INTERNAL,
                fmt::format("{}: {} was answered with status {}: {}", shown(), what, result->status, why));
  }

  const std::string uri_;
  std::string prefix_;
  std::unique_ptr<httplib::Client> client_;
};

Json pairs(const std::vector<std::pair<std::string, std::string>>& list, size_t from, size_t to) {
  Json json = Json::array();
  for (size_t i = from; i < std::min(to, list.size()); ++i)
    json.push_back({{"key", list[i].first}, {"value", list[i].second}});
  return json;
}

void send_run(MlflowServer& server, const std::string& experiment, const MlflowRun& run) {
  const Json created = server.post("runs/create", {{"experiment_id", experiment},
                                                   {"run_name", run.name},
                                                   {"start_time", run.start_ms},
                                                   {"tags", pairs(run.tags, 0, run.tags.size())}});
  const std::string id = server.text_at(created, {"run", "info", "run_id"});
  Json metrics = Json::array();
  for (const auto& [key, value] : run.metrics) {
    metrics.push_back({{"key", key}, {"value", value}, {"timestamp", run.end_ms}, {"step", 0}});
  }
  constexpr size_t kMostParams = 100;
  for (size_t from = 0; from == 0 || from < run.params.size(); from += kMostParams) {
    server.post("runs/log-batch", {{"run_id", id},
                                   {"params", pairs(run.params, from, from + kMostParams)},
                                   {"metrics", from == 0 ? metrics : Json::array()}});
  }
  Json end{{"run_id", id}, {"status", run.status}};
  if (run.end_ms > 0) end["end_time"] = run.end_ms;
  server.post("runs/update", end);
}

}  // namespace

std::string send_to_mlflow(const host::StudyFacts& facts, const std::string& uri) {
  MlflowServer server(uri);
  const std::string name = name_of(facts), experiment = server.experiment(name);
  const std::vector<MlflowRun> runs = mlflow_runs(facts);
  for (const MlflowRun& run : runs) send_run(server, experiment, run);
  return fmt::format("{} runs in the experiment {} ({}) at {}", runs.size(), name, experiment,
                     one_line(mask_secrets(uri)));
}

}  // namespace dsat::cli
