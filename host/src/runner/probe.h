// The memory probe: a start-up hook of Python (host/probe), and what its report adds to a trial's end.
//
// The host puts the hook's folder first on a trial's PYTHONPATH. After the trial's end it reads one small file per rank
// from the folder `probe` of the trial (outputs/probe_report.h). docs/probe.md has the hook's rules.
// Threading: pure except for the files. Errors: none. A trial can run without its probe.
#ifndef DSAT_HOST_RUNNER_PROBE_H_
#define DSAT_HOST_RUNNER_PROBE_H_

#include <filesystem>
#include <string>
#include <vector>

#include "dsat/host/environment.h"
#include "outputs/probe_report.h"
#include "runner/runner.h"

namespace dsat::host {

// Returns the hook's folder for a study: the one beside dsat-launch, or a copy in the run directory if that folder is
// not writable or trials run on other hosts. Empty: there is none; `notices` has the reason.
std::filesystem::path find_probe(const std::filesystem::path& launcher, const std::filesystem::path& run_dir,
                                 bool on_other_hosts, std::vector<std::string>& notices);

// Makes the folder for the probe's files and puts the hook first on PYTHONPATH. If the folder cannot be made, the trial
// runs without probe. `on_other_hosts`: copies the hook into that folder, so that it finds the trial by its own path;
// launchers pass on PYTHONPATH, but not our variables.
void add_probe(const std::filesystem::path& hook, const std::filesystem::path& trial_dir, bool on_other_hosts,
               Environment& environment);

// Adds the report to a trial's end. The result file has priority. A trial that ran out of memory gets no peak, because
// its ranks held less than they needed.
void add_to_end(const ProbeReport& report, TrialEnd& end);

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_PROBE_H_
