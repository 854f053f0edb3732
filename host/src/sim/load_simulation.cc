// A Simulation keeps its source text, so that a resumed study can make it again.
#include "sim/load_simulation.h"

#include <system_error>
#include <utility>

#include "base/guarded.h"
#include "base/installed.h"
#include "dsat/base/files.h"
#include "dsat/config/json.h"
#include "sim/cluster.h"
#include "sim/trace.h"

namespace dsat::host {
namespace sim {
namespace {

Simulation make_cluster(const Json& scenario, const std::string& file) {
  Scenario read = scenario_from_json(scenario, file);
  Simulation simulation;
  simulation.name = read.name;
  simulation.base_config = read.ds_config;
  simulation.slots = static_cast<int>(read.cluster.nodes * read.cluster.gpus_per_node);
  simulation.slots_per_trial = static_cast<int>(read.cluster.gpus_per_trial);
  simulation.surface = std::make_shared<ClusterSurface>(std::move(read));
  simulation.source = {{"file", file}, {"scenario", scenario}};
  return simulation;
}

Simulation make_trace(const std::string& csv, const std::string& file) {
  auto surface = std::make_shared<TraceSurface>(csv, file);
  Simulation simulation;
  simulation.name = std::filesystem::path(file).stem().string();
  simulation.base_config = surface->base_config();
  simulation.metrics = surface->metrics();
  simulation.slots = surface->slots();
  simulation.slots_per_trial = surface->slots();
  simulation.slots_are_all = false;
  simulation.surface = std::move(surface);
  simulation.source = {{"file", file}, {"trace", csv}};
  return simulation;
}

// The file itself, or the cluster of that name which comes with dsat.
std::filesystem::path file_or_bundled(const std::filesystem::path& file) {
  std::error_code error;
  if (file.has_parent_path() || std::filesystem::exists(file, error)) return file;
  const std::filesystem::path bundled = find_bundled_simulation(file.string());
  return bundled.empty() ? file : bundled;
}

Simulation load(const std::filesystem::path& given) {
  const std::filesystem::path file = file_or_bundled(given);
  if (file.extension() != ".csv") return make_cluster(config::load_input(file), file.string());
  const FileText text = try_read_input(file);
  if (!text.ok()) throw Error(file.string() + ": cannot be read");
  return make_trace(text.bytes, file.string());
}

}  // namespace

Simulation simulation_from_source(const Json& source) {
  if (source.is_null()) return {};
  const std::string file = source.at("file").get<std::string>();
  if (source.contains("trace")) return make_trace(source.at("trace").get<std::string>(), file);
  return make_cluster(source.at("scenario"), file);
}

}  // namespace sim

Result<Simulation> simulate_cluster(const Json& scenario, const std::string& file) {
  return as_result([&] { return sim::make_cluster(scenario, file); });
}

Result<Simulation> simulate_trace(const std::string& csv, const std::string& file) {
  return as_result([&] { return sim::make_trace(csv, file); });
}

Result<Simulation> load_simulation(const std::filesystem::path& file) {
  return as_result([&] { return sim::load(file); });
}

}  // namespace dsat::host
