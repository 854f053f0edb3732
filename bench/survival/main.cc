// bench_survival: does the configuration that a study hands back still fit after a thousand further steps, how fast is
// it, and how many of the user's keys does it change? Whole studies of the host, phases after the search included, on
// simulated jobs whose memory drifts: drift.h.
#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <vector>

#include "dsat/config/batch.h"
#include "dsat/config/json.h"
#include "dsat/error.h"
#include "dsat/host/study.h"
#include "search/surfaces/hash.h"
#include "search/surfaces/measure.h"
#include "search/surfaces/surfaces.h"
#include "survival/drift.h"

namespace {

namespace po = boost::program_options;
using namespace dsat::bench;  // NOLINT: a program of one file
using dsat::Json;
using dsat::host::Outcome;
using dsat::host::SimulatedRun;
using dsat::host::SimulatedTrial;

constexpr int kTrialSteps = 6, kFurtherSteps = 1000;  // the default profile window; what is asked of the winner

using Job = dsat::bench::Surface;  // within a surface of the host's, Surface is another

Outcome outcome_of(dsat::Outcome outcome) {
  if (outcome == dsat::Outcome::completed) return Outcome::completed;
  return outcome == dsat::Outcome::out_of_memory ? Outcome::out_of_memory : Outcome::failed;
}

// A surface of bench_search as the host's simulation sees one, with drifting memory.
class DriftingSurface : public dsat::host::Surface {
 public:
  DriftingSurface(Job surface, Drift drift, uint64_t seed) : surface_(std::move(surface)), drift_(drift), seed_(seed) {}

  SimulatedRun run(const SimulatedTrial& trial) const override {
    Json config = trial.config;
    if (trial.model_info) config["autotuning"]["model_info"]["profile"] = true;
    const SurfacePoint point = point_of(config);
    const int steps = config.value("/autotuning/end_profile_step"_json_pointer, kTrialSteps - 1) + 1;
    const double share = peak_bytes(point, steps, trial.seed) / truth_bytes(point);
    Job drifted = surface_;
    drifted.twists.push_back([share](const TrainingJob&, const SurfacePoint&, Truth& truth) {
      truth.peak_bytes *= share;
      truth.reported_bytes *= share;
    });
    const SurfaceTrial answer = measure(drifted, config, trial.seed, 0);
    SimulatedRun run;
    run.outcome = outcome_of(answer.answer.outcome);
    run.reason = answer.answer.reason;
    run.peak_bytes = answer.answer.peak_bytes;
    run.seconds = answer.duration_s;
    for (const auto& [name, value] : answer.answer.metrics) run.metrics[name] = value;
    if (surface_.reports_device_memory) run.device_memory_bytes = static_cast<uint64_t>(surface_.job.device_memory);
    return run;
  }

  // A fresh run of so many steps: another draw than any trial had.
  bool survives(const Json& config, int steps) const {
    const double bytes = peak_bytes(point_of(config), steps, dsat::mix64(seed_ ^ 0x5eed));
    return bytes <= surface_.job.usable_share * surface_.job.device_memory;
  }

 private:
  double truth_bytes(const SurfacePoint& point) const { return surface_.truth(point).peak_bytes; }
  double peak_bytes(const SurfacePoint& point, int steps, uint64_t run) const {
    return drifted_peak_bytes(drift_, surface_, point, steps, dsat::mix64(surface_.id) ^ seed_, run);
  }

  Job surface_;
  Drift drift_;
  uint64_t seed_;
};

struct Setting {
  double margin = 0;
  int verify = 0;
  bool keeps_all_changes = false;
};

struct Tally {
  int studies = 0, winners = 0, survivors = 0;
  std::vector<double> speeds;  // true, of each study's winner; 0: none
  std::vector<int> changed;    // keys of each winner
};

// The keys in which a configuration differs from the user's own; the global batch follows from the others.
int keys_changed(const Json& own, const Json& best) {
  int count = 0;
  for (const auto& [key, value] : dsat::config::leaves_of(best)) {
    const Json* before = dsat::config::find(own, key);
    count += key != dsat::config::kTrainBatchKey && (before == nullptr || *before != value) ? 1 : 0;
  }
  return count;
}

dsat::host::StudyOptions options_for(const Surface& surface, std::shared_ptr<const DriftingSurface> drifting,
                                     const Setting& setting, const po::variables_map& given, uint64_t seed) {
  dsat::host::StudyOptions options;
  options.isolation = dsat::host::Isolation::none;
  options.searcher.plugin = given["searcher"].as<std::string>();
  options.metric = "throughput";
  options.zero_stages = surface.stages;
  options.max_trials = given["trials"].as<int>();
  options.seed = seed;
  options.max_restarts = 0;
  if (setting.margin >= 0) options.memory_margin = setting.margin;
  options.verify_steps = setting.verify;
  options.keep_all_changes = setting.keeps_all_changes;
  options.trial_timeout = std::chrono::hours(1000);
  dsat::host::Simulation simulation;
  simulation.surface = std::move(drifting);
  simulation.base_config = surface.base_config();
  simulation.slots = static_cast<int>(surface.job.gpus);
  simulation.slots_per_trial = simulation.slots;
  simulation.keep = false;
  options.simulation = std::move(simulation);
  return options;
}

void run_one(const Surface& surface, Drift drift, const Setting& setting, const po::variables_map& given, uint64_t seed,
             Tally& tally) {
  const auto drifting = std::make_shared<const DriftingSurface>(surface, drift, seed);
  auto study = dsat::host::Study::create(options_for(surface, drifting, setting, given, seed));
  if (!study.ok()) throw dsat::Error(surface.name + ": " + study.status().message());
  dsat::host::Observer silent;
  const dsat::host::StudyResult result = study.value()->run(silent);
  ++tally.studies;
  tally.speeds.push_back(result.best ? surface.throughput(point_of(result.best->config)) : 0);
  if (!result.best) return;
  ++tally.winners;
  tally.changed.push_back(keys_changed(surface.base_config(), result.best->config));
  const bool survives = drifting->survives(result.best->config, kTrialSteps + kFurtherSteps);
  tally.survivors += survives ? 1 : 0;
  if (!survives && given.count("failures") != 0) {
    std::cout << fmt::format("  {} seed {}: {}\n", surface.name, seed, result.best->config.dump());
  }
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream in(list);
  for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
  return parts;
}

std::vector<Surface> surfaces_of(const po::variables_map& given) {
  const auto seed = static_cast<uint64_t>(given["family-seed"].as<int>());
  const bool reports_peaks = given["peaks"].as<std::string>() != "silent";
  std::vector<Surface> all;
  for (const std::vector<Surface>& family : {six_surfaces(seed), job_surfaces(seed, 20), odd_surfaces(seed)}) {
    for (const Surface& surface : family) {
      all.push_back(reports_peaks ? reporting(surface) : silent(surface));
      all.back().offload_axis = false;
    }
  }
  return all;
}

// How much slower the winners are than those of the first setting, in percent: the mean over studies that both ended.
double cost_percent(const Tally& tally, const Tally& first) {
  double sum = 0;
  int both = 0;
  for (size_t i = 0; i < tally.speeds.size(); ++i) {
    if (tally.speeds[i] <= 0 || first.speeds[i] <= 0) continue;
    sum += 1 - tally.speeds[i] / first.speeds[i];
    ++both;
  }
  return both > 0 ? 100 * sum / both : 0;
}

std::string row(const std::string& name, const Setting& setting, const Tally& tally, const Tally& first) {
  std::vector<int> changed = tally.changed;
  std::sort(changed.begin(), changed.end());
  const std::string keys =
      changed.empty() ? "-" : fmt::format("{}, {}", changed[(changed.size() - 1) / 2], changed.back());
  return fmt::format("{:<12} {:>7} {:>7} {:>5} {:>8} {:>8} {:>9} {:>9.1f} {:>7.2f} {:>8}\n", name,
                     setting.margin < 0 ? "default" : fmt::format("{}", setting.margin), setting.verify,
                     setting.keeps_all_changes ? "yes" : "no", tally.studies, tally.winners, tally.survivors,
                     100.0 * tally.survivors / std::max(tally.winners, 1), cost_percent(tally, first), keys);
}

po::options_description described() {
  po::options_description options("bench_survival [options]");
  auto add = options.add_options();
  add("help", "this text");
  add("margins", po::value<std::string>()->default_value("default"), "--memory-margin, several by commas");
  add("verify", po::value<std::string>()->default_value("0"), "--verify, several by commas");
  add("keep-all-changes", po::value<std::string>()->default_value("no"), "yes, no or yes,no: --keep-all-changes");
  add("drifts", po::value<std::string>(), "none, jitter, fragments, leak, lengths; several by commas; default: all");
  add("peaks", po::value<std::string>()->default_value("reported"), "reported (the memory probe's case) or silent");
  add("trials", po::value<int>()->default_value(24), "--max-trials");
  add("seeds", po::value<int>()->default_value(1), "studies of each surface");
  add("family-seed", po::value<int>()->default_value(2), "draws the families six, jobs and odd");
  add("searcher", po::value<std::string>()->default_value("guided"), "a plugin");
  add("failures", "name each winner that does not survive");
  return options;
}

// A row for each drift. The first setting of each is what the others' cost is measured against.
void run_setting(const Setting& setting, const std::vector<Surface>& surfaces, const po::variables_map& given,
                 std::map<std::string, Tally>& first) {
  for (const DriftKind& kind : kDrifts) {
    const std::string wanted = given.count("drifts") != 0 ? given["drifts"].as<std::string>() : kind.name;
    if (("," + wanted + ",").find(fmt::format(",{},", kind.name)) == std::string::npos) continue;
    Tally tally;
    for (const Surface& surface : surfaces) {
      for (int seed = 1; seed <= given["seeds"].as<int>(); ++seed) {
        run_one(surface, kind.drift, setting, given, static_cast<uint64_t>(seed), tally);
      }
    }
    std::cout << row(kind.name, setting, tally, first.emplace(kind.name, tally).first->second) << std::flush;
  }
}

void run(const po::variables_map& given) {
  const std::vector<Surface> surfaces = surfaces_of(given);
  std::cout << fmt::format("{:<12} {:>7} {:>7} {:>5} {:>8} {:>8} {:>9} {:>9} {:>7} {:>8}\n", "drift", "margin",
                           "verify", "all", "studies", "winners", "survivors", "survive %", "cost %", "keys");
  std::map<std::string, Tally> first;
  for (const std::string& margin : split(given["margins"].as<std::string>())) {
    for (const std::string& verify : split(given["verify"].as<std::string>())) {
      for (const std::string& all : split(given["keep-all-changes"].as<std::string>())) {
        run_setting({margin == "default" ? -1 : std::stod(margin), std::stoi(verify), all == "yes"}, surfaces, given,
                    first);
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    po::variables_map given;
    po::store(po::parse_command_line(argc, argv, described()), given);
    po::notify(given);
    if (given.count("help") != 0) return std::cout << described(), 0;
    run(given);
  } catch (const std::exception& e) {
    return std::cerr << "bench_survival: " << e.what() << '\n', 2;
  }
  return 0;
}
