// Writes the folders of MLflow's file store: EXPERIMENT/RUN/{meta.yaml,params,metrics,tags,artifacts}. A text in
// meta.yaml is a JSON string in UTF-8 without \u escapes, because YAML does not join the two of a surrogate pair.
#include <fmt/format.h>

#include <filesystem>

#include "dsat/base/encode.h"
#include "dsat/base/files.h"
#include "dsat/error.h"
#include "export/files.h"
#include "export/flat_study.h"
#include "export/formats.h"
#include "export/mlflow_run.h"
#include "terminal/times.h"

namespace dsat::cli {
namespace {

namespace fs = std::filesystem;

std::string quoted(const std::string& text) { return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace); }

// mlflow.entities.RunStatus.
int status_number(const std::string& status) {
  return status == "RUNNING" ? 1 : status == "SCHEDULED" ? 2 : status == "FINISHED" ? 3 : status == "FAILED" ? 4 : 5;
}

std::string file_uri(const fs::path& path) {
  return "file://" + percent_encoded(path.string(), "/");
}

std::string experiment_meta(const host::StudyFacts& facts, const std::string& id, const fs::path& folder) {
  return fmt::format(
      "artifact_location: {}\ncreation_time: {}\nexperiment_id: '{}'\nlast_update_time: {}\nlifecycle_stage: active\n"
      "name: {}\n",
      quoted(file_uri(folder)), microseconds_of(facts.progress.started_at) / 1000, id,
      microseconds_of(facts.progress.last_at) / 1000, quoted(name_of(facts)));
}

std::string run_meta(const MlflowRun& run, const std::string& experiment, const fs::path& folder) {
  return fmt::format(
      "artifact_uri: {}\nend_time: {}\nentry_point_name: ''\nexperiment_id: '{}'\nlifecycle_stage: active\n"
      "run_id: {}\nrun_name: {}\nrun_uuid: {}\nsource_name: dsat-host\nsource_type: 4\nsource_version: ''\n"
      "start_time: {}\nstatus: {}\ntags: []\nuser_id: ''\n",
      quoted(file_uri(folder / "artifacts")), run.end_ms > 0 ? fmt::to_string(run.end_ms) : "null", experiment,
      quoted(run.id), quoted(run.name), quoted(run.id), run.start_ms, status_number(run.status));
}

void write_run(const MlflowRun& run, const std::string& experiment, const fs::path& folder) {
  // An export of the running trial may have written other names.
  for (const char* part : {"params", "metrics", "tags"}) {
    std::error_code ignored;
    fs::remove_all(folder / part, ignored);
    make_folder(folder / part);
  }
  make_folder(folder / "artifacts");
  for (const auto& [key, value] : run.params) write_export(folder / "params" / key, value);
  for (const auto& [key, value] : run.tags) write_export(folder / "tags" / key, value);
  for (const auto& [key, value] : run.metrics) {
    write_export(folder / "metrics" / key, fmt::format("{} {} 0\n", run.end_ms, value));
  }
  write_export(folder / "meta.yaml", run_meta(run, experiment, folder));
}

}  // namespace

void write_mlflow(const host::StudyFacts& facts, const fs::path& folder) {
  std::error_code error;
  const fs::path root = fs::absolute(folder, error).lexically_normal();
  const std::string id = mlflow_experiment_id(facts);
  const fs::path experiment = root / id;
  make_folder(experiment);
  write_export(experiment / "meta.yaml", experiment_meta(facts, id, experiment));
  for (const MlflowRun& run : mlflow_runs(facts)) {
    make_folder(experiment / run.id);
    write_run(run, id, experiment / run.id);
  }
}

}  // namespace dsat::cli
