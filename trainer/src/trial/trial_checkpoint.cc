// Saves a trial into a folder of its own and then points latest.json to it; loads the one it points to.
// Barriers part the steps, so that no rank reads what rank 0 is about to change.
#include "trial/trial_checkpoint.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "comm/gather_json.h"
#include "dsat/base/files.h"
#include "dsat/config/json.h"
#include "dsat/trainer/metrics.h"
#include "files/checkpoint_dir.h"

namespace dsat::trainer {
namespace {

namespace fs = std::filesystem;
constexpr int kFormat = 2;
constexpr const char* kLatest = "latest.json";
constexpr const char* kDescription = "trial.json";
constexpr const char* kPrefix = "step-";

std::string state_file(int rank) { return fmt::format("callbacks.rank{}.json", rank); }

// What a whole checkpoint's file must have, or an error that names it.
Json field(const Json& json, const fs::path& file, const char* key, Json::value_t type) {
  const Json value = json.is_object() ? json.value(key, Json()) : Json();
  const bool fits = type == Json::value_t::string ? value.is_string() : value.is_number_integer();
  if (!fits) {
    throw Error(
        fmt::format("{}: damaged, it lacks '{}': remove this checkpoint or take another folder", file.string(), key));
  }
  return value;
}

Json trial_file(const fs::path& file, const std::string& trial_name) {
  const Json json = config::load_file(file);
  const Json format = field(json, file, "format", Json::value_t::number_integer);
  if (format != kFormat) {
    throw Error(fmt::format("{}: a checkpoint of format {}, this dsat-trial reads format {}: take another folder",
                            file.string(), format.dump(), kFormat));
  }
  const Json name = field(json, file, "trial", Json::value_t::string);
  if (name != trial_name) {
    throw Error(fmt::format("{}: a checkpoint of {}, not of \"{}\": take another folder", file.string(), name.dump(),
                            trial_name));
  }
  return json;
}

TrialProgress progress_of(const Json& json, const fs::path& file) {
  const auto count = [&](const char* key, int64_t least) {
    const auto value = field(json, file, key, Json::value_t::number_integer).get<int64_t>();
    if (value >= least) return value;
    throw Error(fmt::format("{}: damaged, its '{}' is {}: remove this checkpoint or take another folder", file.string(),
                            key, value));
  };
  return {count("batch", 0), count("pass", 0),           count("samples_of_pass", 0),
          count("epoch", 0), count("batch_of_epoch", 0), count("batches_per_epoch", 1)};
}

// "" where there is none. Without the file that names it, it is the last one that was finished.
std::string latest_of(const fs::path& folder) {
  const fs::path file = folder / kLatest;
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return last_numbered(folder.string(), kPrefix, kDescription);
  const Json json = config::load_file(file);
  const Json checkpoint = json.is_object() ? json.value("checkpoint", Json()) : Json();
  const std::string name = checkpoint.is_string() ? checkpoint.get<std::string>() : "";
  if (name.empty() || name.find('/') != std::string::npos || !fs::is_directory(folder / name, ignored)) {
    throw Error(
        fmt::format("{}: names no checkpoint of this folder, but {}: take another folder", file.string(), json.dump()));
  }
  return name;
}

// Everybody's part before anybody goes on: what went wrong on one rank ends the others with it.
void make_folder(World& world, const fs::path& folder) {
  std::error_code error;
  if (world.rank() == 0) {
    fs::remove_all(folder, error);  // what was left of one that was interrupted
    fs::create_directories(folder, error);
    if (error) throw Error(fmt::format("{}: cannot be made: {}", folder.string(), error.message()));
  }
  world.comm().barrier();
}

void write_json(const fs::path& file, const Json& json) { write_file_atomically(file, json.dump(2) + "\n"); }

}  // namespace

TrialCheckpoints::TrialCheckpoints(fs::path folder, std::string trial_name, Trial& trial, TrialContext& context,
                                   Callbacks& callbacks)
    : folder_(std::move(folder)),
      trial_name_(std::move(trial_name)),
      trial_(trial),
      context_(context),
      callbacks_(callbacks) {}

void TrialCheckpoints::save(const TrialProgress& progress) {
  World& world = context_.world();
  const std::string name = fmt::format("{}{}", kPrefix, progress.batch);
  const fs::path path = folder_ / name;
  const std::string before = latest_of(folder_);
  if (before == name) return;  // nothing was trained since
  world.comm().barrier();      // every rank has read what rank 0 changes below
  make_folder(world, path);
  for (const auto& [key, callback] : callbacks_) callback->on_checkpoint_save_start(path.string());
  trial_.save(path.string());
  Json states = Json::object();
  for (const auto& [key, callback] : callbacks_) states[key] = callback->state_dict();
  check_serialisable(states, "state_dict");
  write_json(path / state_file(world.rank()), states);
  for (const auto& [key, callback] : callbacks_) callback->on_checkpoint_write_end(path.string());
  world.comm().barrier();
  if (world.rank() == 0) {
    write_json(path / kDescription, {{"format", kFormat},
                                     {"dsat", DSAT_TRAINER_VERSION},
                                     {"trial", trial_name_},
                                     {"batch", progress.batch},
                                     {"pass", progress.pass},
                                     {"samples_of_pass", progress.samples_of_pass},
                                     {"epoch", progress.epoch},
                                     {"batch_of_epoch", progress.batch_of_epoch},
                                     {"batches_per_epoch", progress.batches_per_epoch},
                                     {"world_size", world.size()}});
    write_json(folder_ / kLatest, {{"checkpoint", name}});
    std::error_code ignored;  // what is left of the old one takes room, no more
    if (!before.empty()) fs::remove_all(folder_ / before, ignored);
  }
  world.comm().barrier();
  for (const auto& [key, callback] : callbacks_) callback->on_checkpoint_end(path.string());
}

TrialProgress TrialCheckpoints::load() {
  const std::string name = latest_of(folder_);
  if (name.empty()) return {};
  std::error_code ignored;
  if (context_.world().rank() == 0 && !fs::exists(folder_ / kLatest, ignored)) {
    std::fprintf(stderr, "%s: warning: %s is missing: going on from %s, the last checkpoint there\n",
                 context_.world().program().c_str(), (folder_ / kLatest).c_str(), name.c_str());
  }
  const fs::path path = folder_ / name, file = path / kDescription;
  const Json json = trial_file(file, trial_name_);
  const TrialProgress progress = progress_of(json, file);
  const Json states = callbacks_.empty() ? Json::object() : callback_states(path, json);
  for (const auto& [key, callback] : callbacks_) callback->on_checkpoint_load_start(path.string());
  trial_.load(path.string());
  for (const auto& [key, callback] : callbacks_) {
    if (states.contains(key)) callback->load_state_dict(states[key]);
  }
  return progress;
}

// Each rank's own. On another number of ranks those that were not there then start from the first one's state, and
// states without a rank are left: a line reports it.
Json TrialCheckpoints::callback_states(const fs::path& folder, const Json& description) const {
  const World& world = context_.world();
  const auto saved = field(description, folder / kDescription, "world_size", Json::value_t::number_integer).get<int>();
  const auto warn = [&](const std::string& line) {
    if (world.rank() > 0) return;
    std::fputs(fmt::format("{}: warning: {}: {}\n", world.program(), folder.string(), line).c_str(), stderr);
  };
  if (saved != world.size()) {
    warn(fmt::format("it has the callbacks' states of {} ranks, and this run has {}: {}", saved, world.size(),
                     saved < world.size() ? fmt::format("rank {} and those after it take rank 0's", saved)
                                          : fmt::format("those of rank {} and after it are left out", world.size())));
  }
  const int rank = world.rank() < saved ? world.rank() : 0;
  const fs::path file = folder / state_file(rank);
  std::error_code ignored;
  if (!fs::exists(file, ignored)) {
    throw Error(
        fmt::format("{}: missing, it has the callbacks' states of rank {}: remove this checkpoint or take "
                    "another folder",
                    file.string(), rank));
  }
  Json states = config::load_file(file);
  for (const auto& [key, callback] : callbacks_) {
    if (!states.contains(key)) warn(fmt::format("it has no state of the callback '{}', which starts anew", key));
  }
  for (const auto& [key, state] : states.items()) {
    if (callbacks_.count(key) == 0)
      warn(fmt::format("its state of the callback '{}' is left out: no such callback", key));
  }
  return states;
}

}  // namespace dsat::trainer
