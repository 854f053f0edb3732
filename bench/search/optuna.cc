// Starts the Python process with pipes and exchanges one JSON line a message. Open trials of the same configuration are
// distinguished by Optuna's ids, in the order of the requests.
#include "search/optuna.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "dsat/config/json.h"

extern char** environ;

namespace dsat::bench {
namespace {

void make_pipe(int (&ends)[2]) {
  if (pipe2(ends, O_CLOEXEC) != 0) throw Error(fmt::format("no pipe for Optuna: {}", std::strerror(errno)));
}

// The upper end of the micro batches: the largest upper end of an interval, but at most 1.5 times the expected ceiling.
int64_t highest_micro_batch(const Json& profile) {
  constexpr double kUnknown = 256;
  double highest = 8;
  for (const Json& stage : profile.at("stages")) {
    const Json& ceiling = stage.at("max_micro_batch");
    if (!ceiling.at("value").is_number()) return static_cast<int64_t>(kUnknown);
    const double expected = ceiling.at("value").get<double>();
    const double high = ceiling.at("high").is_number() ? ceiling.at("high").get<double>() : 1.5 * expected;
    highest = std::max(highest, std::min(high, 1.5 * expected));
  }
  return static_cast<int64_t>(highest);
}

// A measured trial of the profile as a point of Optuna's space. Keys that the user leaves out have DeepSpeed's
// defaults.
Json params_of(const Json& config, const config::Space& space) {
  const SurfacePoint point = point_of(config);
  const std::map<std::string, Json> defaults{
      {"zero_optimization.reduce_bucket_size", static_cast<int64_t>(point.reduce_bucket)},
      {"zero_optimization.allgather_bucket_size", static_cast<int64_t>(point.allgather_bucket)},
      {"zero_optimization.overlap_comm", point.overlap},
      {"zero_optimization.reduce_scatter", point.reduce_scatter},
      {"zero_optimization.contiguous_gradients", point.contiguous},
      {"zero_optimization.allgather_partitions", point.allgather_partitions},
      {"zero_optimization.offload_optimizer.device", point.offload_optimizer ? "cpu" : "none"}};
  Json params{{"stage", std::to_string(point.stage)}, {"micro_batch", point.micro_batch}};
  for (const config::Axis& axis : space.stage(point.stage)->axes) {
    const auto it = defaults.find(axis.key);
    if (it != defaults.end()) params[axis.key] = it->second;
  }
  return params;
}

}  // namespace

OptunaProcess::OptunaProcess(const std::string& python, const std::string& script) {
  int to[2], from[2];
  make_pipe(to);
  make_pipe(from);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to[0], 0);
  posix_spawn_file_actions_adddup2(&actions, from[1], 1);
  std::string program = python, file = script;
  char* argv[] = {program.data(), file.data(), nullptr};
  const int failed = posix_spawnp(&pid_, program.c_str(), &actions, nullptr, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(to[0]);
  close(from[1]);
  to_ = fdopen(to[1], "w");
  from_ = fdopen(from[0], "r");
  if (failed != 0) {
    pid_ = -1;
    return;  // Python cannot be started, so version() stays empty
  }
  version_ = receive().value("version", "");
}

OptunaProcess::~OptunaProcess() {
  if (to_ != nullptr) fclose(to_);
  if (from_ != nullptr) fclose(from_);
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
}

void OptunaProcess::send(const Json& message) {
  const std::string line = message.dump() + "\n";
  if (fwrite(line.data(), 1, line.size(), to_) != line.size() || fflush(to_) != 0)
    throw Error("Optuna's process ended");
}

Json OptunaProcess::receive() {
  char* line = nullptr;
  size_t capacity = 0;
  const ssize_t length = getline(&line, &capacity, from_);
  const std::string text = length > 0 ? std::string(line, static_cast<size_t>(length)) : "";
  free(line);
  if (text.empty()) throw Error("Optuna's process ended without an answer");
  Json answer = Json::parse(text, nullptr, false);
  if (answer.is_discarded()) throw Error(fmt::format("Optuna's process sent no JSON: {}", text));
  return answer;
}

OptunaStudy::OptunaStudy(OptunaProcess& process, const std::string& sampler, const std::string& out_of_memory,
                         const StudySetting& setting, const ProfileRun& profile)
    : process_(process) {
  Json known = Json::array();
  for (const Json& seen : profile.observations) {
    const bool fits = seen.at("metrics").is_object();
    known.push_back({{"params", params_of(seen.at("config"), *setting.space)},
                     {"value", fits ? seen.at("metrics").at("throughput") : Json()}});
  }
  process_.send({{"new",
                  {{"sampler", sampler},
                   {"seed", setting.seed},
                   {"concurrent", setting.concurrency > 1},
                   {"oom", out_of_memory},
                   {"max_micro_batch", highest_micro_batch(profile.profile)},
                   {"stages", config::to_json(*setting.space).at("stages")},
                   {"known", known}}}});
}

Json OptunaStudy::ask() {
  process_.send({{"ask", true}});
  const Json asked = process_.receive();
  Json overrides = Json::object();
  config::set(overrides, "zero_optimization.stage", asked.at("stage"));
  for (const auto& [key, value] : asked.at("axes").items()) config::set(overrides, key, value);
  config::set(overrides, "train_micro_batch_size_per_gpu", asked.at("micro_batch"));
  ids_[overrides.dump()].push_back(asked.at("id"));
  return overrides;
}

void OptunaStudy::tell(const Json& overrides, const testing::Answer& answer) {
  std::vector<Json>& ids = ids_.at(overrides.dump());
  Json value;
  if (answer.outcome == Outcome::completed) value = answer.metrics.at("throughput");
  process_.send({{"tell", ids.front()}, {"value", value}});
  ids.erase(ids.begin());
}

}  // namespace dsat::bench
