// Uses MLflow's REST interface, version 2.0: one experiment for each study, one run for each trial, batches within the
// documented limits (1,000 items, at most 100 of them parameters). MLFLOW_TRACKING_TOKEN, or _USERNAME and _PASSWORD,
// sign in.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "dsat/base/encode.h"
#include "dsat/base/secrets.h"
#include "dsat/config/json.h"
#include "dsat/error.h"
#include "export/flat_study.h"
#include "export/formats.h"
#include "export/http_client.h"
#include "export/mlflow_run.h"
#include "terminal/console.h"

namespace dsat::cli {
namespace {

constexpr const char* kApi = "/api/2.0/mlflow/";

class MlflowServer {
 public:
  explicit MlflowServer(const std::string& uri) : uri_(uri) {
    if (uri.rfind("http://", 0) != 0 && uri.rfind("https://", 0) != 0) {
      throw Error(fmt::format("--mlflow-uri is '{}': give http://HOST:PORT or https://HOST:PORT", shown()));
    }
    const std::optional<Site> site = site_of(uri);
    if (!site) throw Error(fmt::format("--mlflow-uri is '{}': this is not an address", shown()));
    site_ = *site;
  }

  Json post(const std::string& what, const Json& body) {
    ClientRequest request{"POST", target_of(what), config::text_of(body), {{"Content-Type", "application/json"}}};
    return answer(what, ask(std::move(request)));
  }

  // The id of the experiment of that name, which is created if there is none.
  std::string experiment(const std::string& name) {
    const std::string what = "experiments/get-by-name";
    const ClientAnswer found = ask({"GET", target_of(what) + "?experiment_name=" + percent_encoded(name), "", {}});
    if (found.status == kOk) return text_at(answer(what, found), {"experiment", "experiment_id"});
    return text_at(post("experiments/create", {{"name", name}}), {"experiment_id"});
  }

  std::string text_at(Json json, const std::vector<std::string>& keys) const {
    for (const std::string& key : keys) json = json.is_object() && json.contains(key) ? Json(json[key]) : Json();
    if (!json.is_string()) throw Error(DSAT_INTERNAL, fmt::format("{}: its answer has no {}", shown(), keys.back()));
    return json.get<std::string>();
  }

 private:
  static constexpr unsigned kOk = 200;
  static constexpr size_t kMostBytes = size_t{4} << 20;  // an answer of MLflow's has a few hundred bytes

  std::string shown() const { return one_line(mask_secrets(uri_)); }
  std::string target_of(const std::string& what) const { return site_.path + kApi + what; }

  ClientAnswer ask(ClientRequest request) const {
    const char* token = std::getenv("MLFLOW_TRACKING_TOKEN");
    const char* user = std::getenv("MLFLOW_TRACKING_USERNAME");
    const char* password = std::getenv("MLFLOW_TRACKING_PASSWORD");
    if (token != nullptr) {
      request.headers.emplace_back("Authorization", std::string("Bearer ") + token);
    } else if (user != nullptr) {
      const std::string pair = fmt::format("{}:{}", user, password == nullptr ? "" : password);
      request.headers.emplace_back("Authorization", "Basic " + base64(pair));
    }
    try {
      return send(site_, request, kMostBytes);
    } catch (const Error& error) {
      throw Error(DSAT_INTERNAL, fmt::format("{}: {} (does the server run there?)", shown(), error.what()));
    }
  }

  Json answer(const std::string& what, const ClientAnswer& given) const {
    const Json body = Json::parse(given.body, nullptr, false);
    if (given.status == kOk && body.is_object()) return body;
    const std::string why = body.is_object() ? leaf_text(body.value("message", Json())) : "no JSON";
    throw Error(DSAT_INTERNAL, fmt::format("{}: {} was answered with status {}: {}", shown(), what, given.status, why));
  }

  const std::string uri_;
  Site site_;
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
