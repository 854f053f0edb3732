// Slurm's commands as scripts in a test's folder: they answer from files there and note how they were called.
#ifndef DSAT_TESTS_HOST_SLURM_SLURM_STAND_IN_H_
#define DSAT_TESTS_HOST_SLURM_SLURM_STAND_IN_H_

#include <string>
#include <vector>

#include "dsat/host/environment.h"
#include "host/runner/support.h"

namespace dsat::host {

class SlurmStandIn {
 public:
  explicit SlurmStandIn(std::filesystem::path dir) : dir_(std::move(dir)), environment_(current_environment()) {
    std::filesystem::create_directory(dir_ / "bin");
    set_variable(environment_, "PATH", (dir_ / "bin").string() + ":" + *get_variable(environment_, "PATH"));
  }
  // The script has what it was called with in `calls(name)`, and the test's folder in $dir.
  void command(const std::string& name, const std::string& script) {
    write_program(dir_ / "bin" / name, "#!/bin/sh\ndir='" + dir_.string() + "'\nprintf '%s\\n' \"$*\" >>\"$dir/" +
                                           name + ".calls\"\n" + script + "\n");
  }
  std::vector<std::string> calls(const std::string& name) const {
    std::ifstream file(dir_ / (name + ".calls"));
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }
  const Environment& environment() const { return environment_; }

 private:
  const std::filesystem::path dir_;
  Environment environment_;
};

}  // namespace dsat::host

#endif  // DSAT_TESTS_HOST_SLURM_SLURM_STAND_IN_H_
