// Puts the memory probe's hook on PYTHONPATH, and merges what its files report with what the trial itself reported.
#include "runner/probe.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>

#include "dsat/base/files.h"
#include "dsat/error.h"
#include "variables/injection.h"

namespace dsat::host {

namespace fs = std::filesystem;

namespace {

constexpr const char* kHook = "sitecustomize.py";
// Parts of the hook, which it loads if they are there: always, and for studies that inject configurations.
constexpr const char* kEngineProbe = "dsat_engine_probe.py";
constexpr const char* kPipeline = "dsat_pipeline.py";
constexpr const char* kStepProbe = "dsat_step_probe.py";
constexpr const char* kInjection = "dsat_inject.py";

fs::path copy_of(const fs::path& hook, const fs::path& run_dir) {
  const fs::path folder = run_dir / kProbeFolder;
  std::error_code error;
  fs::create_directories(folder, error);
  write_file_atomically(folder / kHook, read_file(hook / kHook), Durability::renamed);
  for (const char* part : {kEngineProbe, kPipeline, kStepProbe, kInjection}) {
    if (!fs::exists(hook / part, error)) continue;
    write_file_atomically(folder / part, read_file(hook / part), Durability::renamed);
  }
  return folder;
}

}  // namespace

fs::path find_probe(const fs::path& launcher, const fs::path& run_dir, bool on_other_hosts,
                    std::vector<std::string>& notices) {
  fs::path folder = launcher.parent_path() / kProbeFolder;
  try {
    std::error_code error;
    if (!fs::is_regular_file(folder / kHook, error)) throw Error("no file " + (folder / kHook).string());
    // Python writes the compiled hook beside its source. If it cannot, every start compiles the hook again.
    if (on_other_hosts || access(folder.c_str(), W_OK) != 0) folder = copy_of(folder, run_dir);
    if (folder.string().find(':') == std::string::npos) return folder;
    throw Error("PYTHONPATH cannot name " + folder.string() + ", which has a colon");
  } catch (const Error& error) {
    notices.push_back(fmt::format("trials run without the memory probe: {} (--no-probe silences this)", error.what()));
    return {};
  }
}

void add_probe(const fs::path& hook, const fs::path& trial_dir, bool on_other_hosts, Environment& environment) {
  std::error_code error;
  const fs::path folder = trial_dir / kProbeFolder;
  fs::create_directory(folder, error);
  if (error) return;
  if (on_other_hosts) {
    fs::copy_file(hook / kHook, folder / kHook, fs::copy_options::overwrite_existing, error);
    const auto copy_part = [&](const char* part) {
      std::error_code ignored;
      fs::copy_file(hook / part, folder / part, fs::copy_options::overwrite_existing, ignored);
    };
    copy_part(kEngineProbe);
    copy_part(kPipeline);
    copy_part(kStepProbe);
    if (get_variable(environment, kInjectVariable)) copy_part(kInjection);  // there it stands for DSAT_INJECT
  }
  if (error) return;
  const std::string path = (on_other_hosts ? folder : hook).string();
  const std::string users = get_variable(environment, "PYTHONPATH").value_or("");
  set_variable(environment, "PYTHONPATH", users.empty() ? path : path + ":" + users);
}

void add_to_end(const ProbeReport& report, TrialEnd& end) {
  end.warnings.insert(end.warnings.end(), report.warnings.begin(), report.warnings.end());
  if (!end.device_memory_bytes) end.device_memory_bytes = report.device_memory_bytes;
  end.allocator_retries = std::max(end.allocator_retries, report.allocator_retries);
  end.engine_version = report.engine_version;
  end.torch_version = report.torch_version;
  end.driver_version = report.driver_version;
  if (end.outcome == Outcome::out_of_memory) {
    end.peak_above_bytes = std::max(end.peak_above_bytes, report.peak_bytes);
    return;
  }
  if (end.outcome != Outcome::completed || !report.peak_bytes) return;
  // An engine resets torch's counters when it starts, so the script's own value may be too low. The probe keeps the
  // peak.
  if (end.peak_bytes && !(report.on_device && *report.peak_bytes > *end.peak_bytes)) return;
  end.peak_bytes = report.peak_bytes;
  end.peak_source = report.on_device ? kPeakOfProbe : kPeakOfProcess;
  if (report.world_size && report.ranks < *report.world_size) {
    end.warnings.push_back(
        fmt::format("memory probe: only {} of {} ranks left a file; the peak is the largest among these", report.ranks,
                    *report.world_size));
  }
}

}  // namespace dsat::host
