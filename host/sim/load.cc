#include "load.h"

#include <utility>

#include "cluster.h"
#include "dsat/config/json.h"

namespace dsat::host {
namespace sim {

Result<Simulation> simulation_from_source(const Json& source) {
  if (!source.is_object()) {
    return Status::invalid("this study was simulated by a program of its own: dsat-host cannot resume it");
  }
  return simulate_cluster(source.at("scenario"), source.at("file").get<std::string>());
}

}  // namespace sim

Result<Simulation> simulate_cluster(const Json& scenario, const std::string& file) {
  try {
    sim::Scenario read = sim::scenario_from_json(scenario, file);
    Simulation simulation;
    simulation.name = read.name;
    simulation.base_config = read.ds_config;
    simulation.slots = static_cast<int>(read.cluster.nodes * read.cluster.gpus_per_node);
    simulation.slots_per_trial = static_cast<int>(read.cluster.gpus_per_trial);
    simulation.surface = std::make_shared<sim::ClusterSurface>(std::move(read));
    simulation.source = {{"file", file}, {"scenario", scenario}};
    return simulation;
  } catch (const std::exception& e) {
    return Status::invalid(e.what());
  }
}

Result<Simulation> load_simulation(const std::filesystem::path& file) {
  try {
    return simulate_cluster(config::load_file(file), file.string());
  } catch (const std::exception& e) {
    return Status::invalid(e.what());
  }
}

}  // namespace dsat::host
