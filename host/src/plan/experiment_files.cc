// Writes the experiment into the run directory if it is missing or different, and looks for the packages beside
// dsat-launch.
#include "plan/experiment_files.h"

#include "dsat/base/files.h"
#include "variables/hyperparameters.h"
#include "variables/python_package.h"

namespace dsat::host {

void add_experiment(const std::filesystem::path& launcher, const Environment& environment, Plan& plan) {
  if (!plan.hyperparameters.is_object() || plan.simulation) return;
  if (plan.experiment.is_object()) {
    const std::filesystem::path file = plan.dir / kExperimentFile;
    const std::string text = plan.experiment.dump(2) + "\n";
    if (try_read_file(file, text.size() + 1).bytes != text)
      write_file_atomically(file, text, Durability::renamed, Access::owner);
    set_variable(plan.variables, kExperimentVariable, file.string());
  }
  const std::filesystem::path package =
      find_python_package(launcher, plan.dir, !plan.slots.hostfile.empty(), plan.notices);
  if (!package.empty()) add_python_package(package, environment, plan.variables);
}

}  // namespace dsat::host
