#include "sim/load_simulation.h"

#include <fstream>
#include <sstream>
#include <utility>

#include "dsat/config/json.h"
#include "sim/cluster.h"
#include "sim/trace.h"

namespace dsat::host {
namespace sim {

Result<Simulation> simulation_from_source(const Json& source) {
  if (!source.is_object()) {
    return Status::invalid("this study was simulated by a program of its own: dsat-host cannot resume it");
  }
  const std::string file = source.at("file").get<std::string>();
  if (source.contains("trace")) return simulate_trace(source.at("trace").get<std::string>(), file);
  return simulate_cluster(source.at("scenario"), file);
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

Result<Simulation> simulate_trace(const std::string& csv, const std::string& file) {
  try {
    auto surface = std::make_shared<sim::TraceSurface>(csv, file);
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
  } catch (const std::exception& e) {
    return Status::invalid(e.what());
  }
}

Result<Simulation> load_simulation(const std::filesystem::path& file) {
  try {
    if (file.extension() == ".csv") {
      std::ifstream in(file, std::ios::binary);
      std::ostringstream text;
      text << in.rdbuf();
      if (!in) return Status::invalid(file.string() + ": cannot be read");
      return simulate_trace(text.str(), file.string());
    }
    return simulate_cluster(config::load_file(file), file.string());
  } catch (const std::exception& e) {
    return Status::invalid(e.what());
  }
}

}  // namespace dsat::host
