// Keeps the folders and the request of a study in DIR/deepspeed.json, and compares a new request with the stored one
// part by part. A file that cannot be read counts as missing: the study was not started in DeepSpeed's form.
#include "deepspeed/study_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <system_error>

#include "dsat/base/files.h"
#include "dsat/config/json.h"
#include "dsat/host/record.h"

namespace dsat::cli {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const DeepspeedStudy& study, const std::string& what) {
  throw Error(fmt::format("{} holds {}: set \"overwrite\": true in the autotuning section, or give another results_dir",
                          study.results_dir.string(), what));
}

// " ('ds_confg.json' here, 'ds_config.json' there)": the first word in which two commands differ.
std::string difference(const Json& now, const Json& then) {
  if (!now.is_array() || !then.is_array()) return "";
  const auto word = [](const Json& words, size_t i) {
    if (i >= words.size()) return std::string("nothing");
    return fmt::format("'{}'", words[i].is_string() ? words[i].get<std::string>() : words[i].dump());
  };
  for (size_t i = 0; i < std::max(now.size(), then.size()); ++i) {
    if (i >= now.size() || i >= then.size() || now[i] != then[i]) {
      return fmt::format(" ({} here, {} there)", word(now, i), word(then, i));
    }
  }
  return "";
}

// The run directory that a folder of results names; empty: none.
fs::path run_dir_of(const fs::path& experiment) {
  try {
    const fs::path trial = config::load_file(experiment / "exp.json").at("trial_dir").get<std::string>();
    return trial.parent_path().parent_path();  // RUN_DIR/trials/3
  } catch (const Error&) {
    return {};
  } catch (const Json::exception&) {
    return {};
  }
}

// The dsat study that wrote these results, if its run directory is not the one that the user named.
std::optional<DeepspeedStudy> study_of_results(const fs::path& results_dir) {
  std::set<fs::path> dirs{results_dir / kDeepspeedRunDir};
  std::error_code error;
  for (fs::directory_iterator it(results_dir, error), end; !error && it != end; it.increment(error)) {
    dirs.insert(run_dir_of(it->path()));
  }
  for (const fs::path& dir : dirs) {
    if (dir.empty() || !fs::exists(dir / "dsat.db", error)) continue;
    auto study = read_deepspeed_study(dir);
    if (study && study->results_dir == results_dir) return study;
  }
  return std::nullopt;
}

// "--output-dir=there", as the study's user typed it; empty: the option was not given.
std::string output_dir_option(const DeepspeedStudy& study) {
  for (const Json& option : study.request.value("options", Json::array())) {
    std::string text = option.is_string() ? option.get<std::string>() : "";
    if (text.rfind("--output-dir=", 0) == 0) return text;
  }
  return "";
}

[[noreturn]] void refuse_results_of(const DeepspeedStudy& earlier) {
  const std::string option = output_dir_option(earlier);
  throw Error(fmt::format("{} holds results of the study in {}: {} to go on with it, or give another results_dir",
                          earlier.results_dir.string(), earlier.dir.string(),
                          option.empty() ? "leave --output-dir out" : "type " + option));
}

bool holds_results(const fs::path& results_dir) {
  std::error_code error;
  for (const char* file : {"summary.txt", "ds_config_optimal.json", "cmd_optimal.txt", "profile_model_info"}) {
    if (fs::exists(results_dir / file, error)) return true;
  }
  for (fs::directory_iterator it(results_dir, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (fs::exists(it->path() / "exp.json", ignored)) return true;
  }
  return false;
}

}  // namespace

std::optional<DeepspeedStudy> read_deepspeed_study(const fs::path& dir) {
  try {
    const Json json = config::load_file(dir / kDeepspeedStudyFile);
    DeepspeedStudy study;
    study.dir = dir;
    study.results_dir = json.at("results_dir").get<std::string>();
    study.exps_dir = json.at("exps_dir").get<std::string>();
    study.run = json.at("run").get<bool>();
    study.request = json.at("request");
    if (!study.request.is_object()) return std::nullopt;
    return study;
  } catch (const Error&) {
    return std::nullopt;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

void write_deepspeed_study(const DeepspeedStudy& study) {
  const Json json{{"results_dir", study.results_dir.string()},
                  {"exps_dir", study.exps_dir.string()},
                  {"run", study.run},
                  {"request", study.request}};
  write_file_atomically(study.dir / kDeepspeedStudyFile, config::text_of(json, 2) + "\n", Durability::synced,
                        Access::owner);
}

ExistingResults existing_results(const DeepspeedStudy& study) {
  std::error_code ignored;
  if (!fs::exists(study.dir / "dsat.db", ignored)) {
    if (!holds_results(study.results_dir)) return ExistingResults::none;
    if (const auto earlier = study_of_results(study.results_dir)) refuse_results_of(*earlier);
    refuse(study, "results that dsat did not write");
  }
  const auto earlier = read_deepspeed_study(study.dir);
  if (!earlier) refuse(study, "a study that was not started with --autotuning");
  // A study that ended before it measured anything has nothing to lose. The cause (an error in the script, a missing
  // package) may be gone by now.
  const host::Result<host::StudyRecord> record = host::read_study(study.dir);
  if (record.ok() && record->status != host::StudyStatus::running && !record->best) return ExistingResults::none;
  constexpr std::array<std::pair<const char*, const char*>, 4> kParts{
      {{"command", "results of another command"},
       {"configuration", "results of another configuration"},
       {"options", "results of a study with other options"},
       {"script", "results of another version of the script"}}};
  for (const auto& [part, what] : kParts) {
    const Json now = study.request.value(part, Json()), then = earlier->request.value(part, Json());
    if (now == then) continue;
    refuse(study, fmt::format("{}{}", what, part == std::string_view("command") ? difference(now, then) : ""));
  }
  return ExistingResults::of_same_request;
}

std::string fingerprint(const fs::path& file) {
  const FileText text = try_read_file(file);
  if (!text.ok()) return {};
  uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a: enough to notice an edit
  for (const char c : text.bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return fmt::format("{}-{}", text.bytes.size(), hash);
}

}  // namespace dsat::cli
